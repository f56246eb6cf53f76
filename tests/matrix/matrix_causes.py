"""What the first cause of each row's verdict must name: the component that does wrong, and its wrong act.

Decided from what the row plants, by whoever plants it, not from what a diagnosis happens to say. A run that must end
unknown has no cause: there the verdict's sentence must name the premise that was broken.
"""

from __future__ import annotations

from matrix_cells import Cell
from matrix_row import Row

SERVER, GATEWAY, KUBELET, PROVISIONER = "the model server", "the gateway", "the kubelet", "the provisioner"
NAMES: dict[str, tuple[str, ...]] = {
    # As a real vLLM by default: some streams are cut, others fall silent; either may be the more.
    "server_aborts_on_sigterm": (SERVER, "SIGTERM"),
    "server_hangs_on_sigterm": (SERVER, "silent", "SIGTERM"),
    "server_crashes_under_load": (SERVER, "was killed", "137"),
    "server_engine_dies": (SERVER, "ended by itself", "exit code 0"),
    "server_engine_stuck": (SERVER, "fell silent", "Ready"),
    "server_never_answers": (SERVER, "fell silent", "got no token"),
    "server_sends_away": (SERVER, "turned", "429"),
    "server_fails_some_requests": (SERVER, "status 500", "one in"),
    "server_answers_late": (SERVER, "first token late"),
    "server_decodes_slowly": (SERVER, "tokens slowly"),
    "server_stutters": (SERVER, "stood still"),
    "model_loads_slowly": (SERVER, "load its model"),
    "server_healthy_while_loading": ("the readiness probe", "Ready before they served"),
    "server_chokes_on_long_prompts": (SERVER, "first token late", "prompts of about 900 tokens"),
    "server_serves_the_urgent_late": (SERVER, "first token late", "tenant urgent"),
    "gateway_routes_before_ready": (GATEWAY, "before the API called them Ready"),
    "gateway_routes_to_terminating": (GATEWAY, "already going", "endpoints had been closed"),
    "gateway_cuts_all_on_change": (GATEWAY, "at once", "endpoint had left"),
    "gateway_cuts_long_answers": (GATEWAY, "cut", "had passed since they were asked for"),
    "gateway_retries_mid_stream": (GATEWAY, "another replica in the middle", "came twice"),
    "gateway_sends_twice": (GATEWAY, "every request to two replicas"),
    "gateway_drops_tokens": (GATEWAY, "dropped", "tokens"),
    "gateway_repeats_tokens": (GATEWAY, "passed on twice", "tokens"),
    "gateway_ignores_new_endpoints": (GATEWAY, "no request", "added pods"),
    "ready_before_serving": ("the readiness probe", "Ready before they served"),
    "grace_cut_short": (KUBELET, "killed", "though the grace is 100 s"),
    "pre_stop_skipped": (KUBELET, "before the preStop hook", "was over"),
    "node_never_ready": (KUBELET, "on-demand-", "never became Ready"),
    "image_pull_hangs": ("image pull", "did not get the image"),
    "device_plugin_never_comes": ("the device plugin", "never showed the GPUs"),
    "device_plugin_dies": ("the device plugin", "lost 4 GPUs"),
    "allocatable_lies": ("the device plugin", "rejected", "claims to have"),
    "gpus_given_twice": (KUBELET, "gave GPUs to two pods at once"),
    "probe_never_passes": ("the readiness probe", "never passes", "nodes that came during the load"),
    "sigterm_beside_pre_stop": (KUBELET, "before the preStop hook", "was over"),
    "pod_never_goes": (KUBELET, "never took away", "had ended"),
    "dead_node_keeps_its_lease": ("node leases", "kept the lease of", "alive though the machine serves nobody"),
    "hpa_blind": ("the autoscaler", "never raised the size"),
    "hpa_hesitates": ("the autoscaler", "raised the size only"),
    "hpa_never_scales_in": ("the autoscaler", "kept 7 replicas", "although it read"),
    "hpa_thrashes": ("the autoscaler", "turned the size of llm round"),
    "hpa_reads_empty_as_zero": ("the autoscaler", "could not be read for 0", "lowered"),
    "metrics_stale": ("the metrics path", "minutes old"),
    "metrics_hole": ("the metrics path", "no value", "hole"),
    "metrics_hole_as_zero": ("the metrics path", "as 0"),
    "second_writer_of_replicas": ("two writers", "gitops", "in turns"),
    "replicas_never_created": ("the ReplicaSet controller", "did not make", "were missing"),
    "replicas_never_replaced": ("the ReplicaSet controller", "did not make", "in the place of lost ones"),
    "scale_in_kills": ("the ReplicaSet controller", "grace of 0 s", "fewer replicas"),
    "endpoint_never_added": ("the endpoint controller", "never listed"),
    "endpoint_removed_late": ("the endpoint controller", "kept", "after they were asked to go"),
    "budget_counts_unready": ("the disruption controller", "counted pods as healthy that were not Ready"),
    "eviction_ignores_budget": ("the Eviction API", "admitted", "beyond the budget"),
    "gang_bound_one_by_one": ("the scheduler", "one by one", "3 of 4"),
    "gang_bound_slowly": ("the scheduler", "one by one", "the rest came later"),
    "gang_member_never_replaced": ("the scheduler", "neither placed nor refused"),
    "orphaned_pods_kept": ("the garbage collector of pods", "bound to spot-1, which is gone"),
    "drain_ignores_pdb": ("the drain", "past the Eviction API"),
    "drain_taints_another_node": ("the drain", "the taint", "which nobody had asked for"),
    "instance_ended_undrained": (PROVISIONER, "ended the instance", "while pods were on it"),
    "node_left_over": (PROVISIONER, "never let go of the Node spot-1"),
    "claim_left_over": (PROVISIONER, "never let go of the NodeClaim spot-1"),
    "new_node_removed_at_once": (PROVISIONER, "gave on-demand-2 up as soon as it came"),
    "provisioner_idle": (PROVISIONER, "ordered no node"),
    "provisioner_orders_too_many": (PROVISIONER, "ordered 3 nodes at once for 1 pod"),
    "provisioner_ignores_price": (PROVISIONER, "dearest pool"),
    "instance_never_boots": ("the cloud", "instance", "never registered"),
    "notice_cut_short": ("the cloud", "took spot-1", "after its notice"),
    "drain_cordons_another_node": ("the drain", "cordoned", "which nobody had asked for"),
    "do_not_disrupt_ignored": (PROVISIONER, "karpenter.sh/do-not-disrupt"),
    "clock_of_a_node_is_off": ("clocks_agree", "on-demand-1", "ahead"),
    "interruption_without_effect": ("faults_observed", "spot_interruption-1", "effect"),
    "api_loses_watch_history": ("recorder_complete", "gap"),
    "deletion_refused": ("change_undone", "gang-b", "Forbidden"),
    "api_server_replaced": ("versions_known", "no one version was tested"),
    "broken-off-by-its-guard": ("run_complete", "a stop condition ended the run early"),
    "records_lost": ("requests_accounted", "were planned, but"),
    "records_written_twice": ("requests_accounted", "with more than one row"),
    "gang-bound-one-by-one": ("the scheduler", "one by one"),
    "autoscaler-does-not-answer": ("the autoscaler", "never raised the size"),
    "budget-blocks-for-ever": ("settings", "allows no disruption even with all pods healthy"),
    "budget-selects-nothing": ("settings", "selects nothing"),
    "two-budgets-share": ("settings", "under llm and llm-too at once"),
    "fault-hits-nothing": ("graceful_drain", "no stream was in flight"),
    "load-not-offered": ("load_offered", "was not offered as planned"),
    "grace-too-short": ("settings", "a grace of 20 s is shorter than answers last"),
    "queue-too-short": (SERVER, "503"),
    "two-autoscalers": ("HorizontalPodAutoscaler", "two autoscalers of one target"),
    "two-half-gangs": ("the scheduler", "gang-b and gang-c", "each holds what another waits for"),
    "too-much-spot": ("settings", "on spot nodes"),
    "gpus-idle": ("settings", "GPU time serves nobody"),
    "unsteady-start": ("steady_before", "steady"),
    "too-few-requests": ("slo", "too few"),
}


def first_line(cell: Cell) -> str:
    """What a reader reads first: the first cause, else the verdict's sentence."""
    return cell.causes[0] if cell.causes else cell.sentence


def missing_words(row: Row, cell: Cell) -> list[str]:
    """Of the words that its first line must have."""
    return [word for word in NAMES[row.name] if word not in first_line(cell)]


def cause_line(row: Row, cell: Cell) -> str:
    named = "no" if missing_words(row, cell) else "yes"
    return f"| `{row.name}` | {named} | {first_line(cell).replace('|', '/')[:300]} |"
