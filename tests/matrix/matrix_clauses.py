"""Each check's promise clause by clause, and the rows that break it: what no row breaks, nobody has seen fail."""

from __future__ import annotations

from collections.abc import Sequence

from matrix_row import Row

Clause = tuple[str, tuple[str, ...]]

CLAUSES: dict[str, tuple[Clause, ...]] = {
    "slo": (
        ("time to first token", ("server_answers_late",)),
        ("time per output token", ("server_decodes_slowly",)),
        ("gaps between tokens", ("server_stutters",)),
        ("end to end", ("server_decodes_slowly",)),
        ("goodput; a request that failed counts", ("server_fails_some_requests", "server_sends_away",
         "server_engine_stuck", "gateway_routes_before_ready", "queue-too-short")),
        ("for one tenant, one priority", ("server_serves_the_urgent_late",)),
        ("for one size of prompts", ("server_chokes_on_long_prompts",)),
        ("enough samples, or not measured", ("too-few-requests",)),
    ),
    "scale_up": (
        ("a need that is read is acted on", ("hpa_blind", "autoscaler-does-not-answer")),
        ("in time", ("hpa_hesitates",)),
        ("names quota", ("replicas_never_created",)),
        ("names cloud capacity", ("provisioner_idle",)),
        ("names the start of the node", ("node_never_ready", "instance_never_boots")),
        ("names the device plugin", ("device_plugin_never_comes",)),
        ("names the image", ("image_pull_hangs",)),
        ("names the model's load", ("model_loads_slowly",)),
        ("names the probe", ("probe_never_passes",)),
        ("names routing; a first token is required", ("endpoint_never_added", "gateway_ignores_new_endpoints")),
    ),
    "scale_down": (
        ("back at the floor in time", ("hpa_never_scales_in",)),
        ("no reversals", ("hpa_thrashes",)),
        ("no node given up as soon as it came", ("new_node_removed_at_once",)),
        ("no replica lost with work in it", ("scale_in_kills",)),
    ),
    "graceful_drain": (
        ("not aborted on SIGTERM", ("server_aborts_on_sigterm", "server_hangs_on_sigterm")),
        ("not killed at the end of its grace", ("grace-too-short",)),
        ("not killed before it", ("grace_cut_short",)),
        ("not reset with its node", ("instance_ended_undrained", "notice_cut_short")),
        ("not cut by the gateway", ("gateway_cuts_all_on_change",)),
        ("not lost with its process", ("server_crashes_under_load", "server_engine_dies")),
        ("not left without any answer", ("server_never_answers",)),
        ("not lost on a node that only seems alive", ("dead_node_keeps_its_lease",)),
        ("what nothing explains is said to be so", ("gateway_cuts_long_answers",)),
        ("no new work for pods that are going", ("gateway_routes_to_terminating", "endpoint_removed_late")),
        ("no work for pods that cannot serve", ("ready_before_serving", "server_healthy_while_loading")),
        ("preStop runs, to its end, before SIGTERM", ("pre_stop_skipped", "sigterm_beside_pre_stop")),
        ("put to the test at all", ("fault-hits-nothing",)),
    ),
    "pdb": (
        ("evictions admitted against the state at that moment", ("eviction_ignores_budget", "budget_counts_unready")),
        ("no drain past the Eviction API", ("drain_ignores_pdb",)),
        ("no budget that blocks for ever", ("budget-blocks-for-ever",)),
        ("no budget that selects nothing", ("budget-selects-nothing",)),
        ("no two budgets on one pod", ("two-budgets-share",)),
        ("a pod that asks to be left alone is", ("do_not_disrupt_ignored",)),
    ),
    "gang": (
        ("never bound in part for long", ("gang_bound_one_by_one", "gang-bound-one-by-one", "gang_bound_slowly")),
        ("whole again after a loss, or nothing held", ("gang_member_never_replaced",)),
        ("no deadlock of two half gangs", ("two-half-gangs",)),
    ),
    "capacity": (
        ("no more nodes than needed", ("provisioner_orders_too_many",)),
        ("no pod short of GPUs for long", ("provisioner_idle",)),
        ("idle GPUs within the limit", ("gpus-idle",)),
        ("price, and cost per million tokens", ("provisioner_ignores_price",)),
        ("share of spot nodes, and replicas off spot", ("too-much-spot",)),
    ),
    "device": (
        ("a GPU that is bought appears", ("device_plugin_never_comes",)),
        ("one that is lost is found again", ("device_plugin_dies",)),
        ("no pod is rejected by its node", ("allocatable_lies",)),
        ("none is given to two", ("gpus_given_twice",)),
    ),
    "controllers": (
        ("no two writers of one size", ("second_writer_of_replicas",)),
        ("no two autoscalers of one target", ("two-autoscalers",)),
        ("no oscillation", ("hpa_thrashes",)),
        ("acts on what it reads", ("hpa_blind",)),
    ),
    "metrics_path": (
        ("seen in time", ("metrics_stale",)),
        ("no holes", ("metrics_hole",)),
        ("0 is not the same as nothing", ("metrics_hole_as_zero", "hpa_reads_empty_as_zero")),
    ),
    "requests": (
        ("no duplicate answer", ("gateway_sends_twice",)),
        ("no token repeated, also by a retry", ("gateway_repeats_tokens", "gateway_retries_mid_stream")),
        ("no token lost", ("gateway_drops_tokens",)),
    ),
    "recovery": (
        ("steady again within the bound", ("replicas_never_replaced",)),
        ("no taint left", ("drain_taints_another_node",)),
        ("no cordon left", ("drain_cordons_another_node",)),
        ("no orphaned pod", ("orphaned_pods_kept",)),
        ("no pod that never goes", ("pod_never_goes",)),
        ("no orphaned node or claim", ("node_left_over", "claim_left_over")),
        ("no gang in half", ("gang_member_never_replaced",)),
    ),
    "validity": (
        ("the fault took effect", ("interruption_without_effect",)),
        ("the load was offered", ("load-not-offered",)),
        ("the recorder saw all", ("api_loses_watch_history",)),
        ("it was steady before", ("unsteady-start",)),
        ("the harness's own change was undone", ("deletion_refused",)),
        ("clocks agree", ("clock_of_a_node_is_off",)),
        ("it went to its planned end", ("broken-off-by-its-guard",)),
        ("every planned request has one row and one end", ("records_lost", "records_written_twice")),
        ("it is known what was tested", ("api_server_replaced",)),
    ),
}  # fmt: skip
"""By check; ``validity`` stands for the premises of all of them."""

HEAD = "| check | promises | broken by |\n| --- | --- | --- |"


def clause_table() -> str:
    lines = [
        f"| {'validity' if check == 'validity' else f'`{check}`'} | {text} | {', '.join(f'`{row}`' for row in rows)} |"
        for check, clauses in CLAUSES.items()
        for text, rows in clauses
    ]
    return "\n".join([HEAD, *lines])


def without_a_clause(rows: Sequence[Row]) -> set[str]:
    """Rows that break nothing that anybody promises."""
    return {row.name for row in rows} - {name for clauses in CLAUSES.values() for _, names in clauses for name in names}
