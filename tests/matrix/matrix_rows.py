"""What the matrix runs: every planted bug and every broken premise, and who must say so in which words.

This is the one place where an expectation is declared. A row names the experiment that exercises the bug, the check
that promises what the bug breaks, and words that its sentence or story must have: the sub-cause, not only the check.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fakes.config import PlantedBug

ROOT = Path(__file__).resolve().parents[2]
ALL_CHECKS = "experiments/matrix/all-checks.yaml"
HEALTHY = (ALL_CHECKS,)
"""Worlds without any bug: each must pass, or say why it cannot be judged."""


@dataclass(frozen=True, slots=True)
class Row:
    """``bugs`` are planted into ``experiment``; without any the experiment itself is what is wrong. The first is the
    row's own; a second one only gives it the occasion to do harm."""

    breaks: str
    check: str
    words: tuple[str, ...]
    bugs: tuple[PlantedBug, ...] = ()
    experiment: str = ALL_CHECKS
    status: str = "fail"
    real: bool = False
    """One of those that are short and telling enough for every run of the tests."""

    @property
    def name(self) -> str:
        return self.bugs[0].value if self.bugs else Path(self.experiment).stem


def _planted(
    bug: PlantedBug, breaks: str, check: str, *words: str, with_: PlantedBug | None = None, status: str = "fail",
    real: bool = False,
) -> Row:  # fmt: skip
    return Row(breaks, check, words, (bug, with_) if with_ else (bug,), status=status, real=real)


def _file(name: str, breaks: str, check: str, *words: str, status: str = "fail", real: bool = False) -> Row:
    return Row(breaks, check, words, (), f"experiments/negative/{name}.yaml", status, real)


B = PlantedBug
ROWS: tuple[Row, ...] = (
    # The model server.
    _planted(
        B.SERVER_ABORTS_ON_SIGTERM,
        "the model server cuts its streams on SIGTERM",
        "graceful_drain",
        "aborted on SIGTERM",
        real=True,
    ),
    _planted(
        B.SERVER_HANGS_ON_SIGTERM,
        "at SIGTERM its streams fall silent, and nobody ends them",
        "graceful_drain",
        "aborted on SIGTERM",
        "stalled",
    ),
    _planted(
        B.SERVER_CRASHES_UNDER_LOAD,
        "the model server runs out of memory in the middle of its answers",
        "graceful_drain",
        "its container ended",
    ),
    _planted(
        B.SERVER_ENGINE_DIES,
        "the engine dies in the middle of its answers, and the process ends with exit code 0",
        "graceful_drain",
        "its container ended",
    ),
    _planted(B.SERVER_ENGINE_STUCK, "the engine makes no step any more while /health says 200", "slo", "good"),
    _planted(B.SERVER_NEVER_ANSWERS, "the server takes connections and answers nothing", "slo", "good"),
    _planted(B.SERVER_SENDS_AWAY, "a busy server answers 429", "slo", "good"),
    _planted(B.SERVER_FAILS_SOME_REQUESTS, "one request in seven is answered with an error", "slo", "good"),
    _planted(B.SERVER_ANSWERS_LATE, "the first token comes seconds late", "slo", "ttft_ms_p95"),
    _planted(B.SERVER_DECODES_SLOWLY, "tokens come ten times slower", "slo", "tpot_ms_p95"),
    _planted(B.MODEL_LOADS_SLOWLY, "the weights take minutes to load", "scale_up", "model"),
    # The router.
    _planted(
        B.GATEWAY_ROUTES_BEFORE_READY,
        "the gateway sends work to pods that are not Ready yet",
        "slo",
        "good",
    ),
    _planted(
        B.GATEWAY_ROUTES_TO_TERMINATING,
        "the gateway sends new work to pods that are going",
        "graceful_drain",
        "sent to a pod that was already going",
        "its endpoint had been closed",
        real=True,
    ),
    _planted(
        B.GATEWAY_CUTS_ALL_ON_CHANGE,
        "the gateway cuts all streams when an endpoint leaves",
        "graceful_drain",
        "cut by the gateway",
    ),
    _planted(
        B.GATEWAY_CUTS_LONG_ANSWERS,
        "the gateway cuts answers that take long, and nothing in the cluster shows it",
        "graceful_drain",
        "unexplained",
    ),
    _planted(
        B.GATEWAY_RETRIES_MID_STREAM,
        "the gateway asks another replica in the middle of an answer",
        "requests",
        "repeated",
        real=True,
    ),
    _planted(B.GATEWAY_SENDS_TWICE, "each request goes to two replicas", "requests", "given more than once"),
    _planted(B.GATEWAY_DROPS_TOKENS, "tokens get lost on their way", "requests", "lost"),
    _planted(B.GATEWAY_REPEATS_TOKENS, "tokens are passed on twice", "requests", "repeated"),
    # A node and its kubelet.
    _planted(
        B.READY_BEFORE_SERVING,
        "a pod says that it is Ready before it serves",
        "graceful_drain",
        "answered with an error though its pod was in service",
        real=True,
    ),
    _planted(
        B.GRACE_CUT_SHORT,
        "the kubelet kills seconds after SIGTERM, whatever the grace",
        "graceful_drain",
        "before its grace was over",
    ),
    _planted(B.PRE_STOP_SKIPPED, "the kubelet runs no preStop hook", "graceful_drain", "preStop"),
    _planted(B.NODE_NEVER_READY, "a new node never becomes Ready", "scale_up", "its node to start"),
    _planted(B.IMAGE_PULL_HANGS, "a new node never gets its image", "scale_up", "its image"),
    _planted(B.DEVICE_PLUGIN_NEVER_COMES, "a new node never shows its GPUs", "device", "never showed"),
    _planted(B.DEVICE_PLUGIN_DIES, "a node loses its GPUs, and they do not come back", "device", "lacked"),
    _planted(B.ALLOCATABLE_LIES, "a node claims more GPUs than it has", "device", "rejected by the node", real=True),
    _planted(B.GPUS_GIVEN_TWICE, "the kubelet gives out GPUs that others hold", "device", "gave GPUs out twice"),
    # The autoscaler and its metric.
    _planted(
        B.HPA_BLIND,
        "the autoscaler reads its metric and never changes a size",
        "scale_up",
        "no replica was decided",
        real=True,
    ),
    _planted(B.HPA_HESITATES, "the autoscaler sleeps on a need for minutes", "scale_up", "served only after"),
    Row(
        "the autoscaler never takes a replica away",
        "scale_down",
        ("still above its floor",),
        (B.HPA_NEVER_SCALES_IN,),
        "experiments/matrix/back-to-the-floor.yaml",
    ),
    _planted(B.HPA_THRASHES, "the size goes up and down at every sync", "scale_down", "reversal"),
    _planted(
        B.HPA_READS_EMPTY_AS_ZERO,
        "the autoscaler takes a missing value for 0",
        "metrics_path",
        "scaled down blind",
        with_=B.METRICS_HOLE,
        real=True,
    ),
    _planted(B.METRICS_STALE, "the metric is minutes old", "metrics_path", "of the past"),
    _planted(B.METRICS_HOLE, "the metric cannot be read for minutes", "metrics_path", "hole"),
    _planted(B.METRICS_HOLE_AS_ZERO, "a hole in the metric is served as 0", "metrics_path", "0 was read"),
    # Workload controllers, endpoints, budgets, scheduler.
    _planted(B.SECOND_WRITER_OF_REPLICAS, "two controllers write one size", "controllers", "fight"),
    _planted(B.REPLICAS_NEVER_CREATED, "a quota keeps added replicas from being made", "scale_up", "quota"),
    _planted(
        B.REPLICAS_NEVER_REPLACED,
        "a replica that was evicted gets no successor",
        "recovery",
        "had 1 of 2 members",
    ),
    Row(
        "replicas that are scaled away get no grace",
        "scale_down",
        ("lost on pods that were scaled away",),
        (B.SCALE_IN_KILLS,),
        "experiments/matrix/scaled-away-with-work.yaml",
    ),
    _planted(B.ENDPOINT_NEVER_ADDED, "added replicas never become endpoints", "scale_up", "traffic"),
    _planted(
        B.ENDPOINT_REMOVED_LATE,
        "endpoints of pods that go are taken away late",
        "graceful_drain",
        "its endpoint still took new work",
    ),
    _planted(
        B.BUDGET_COUNTS_UNREADY,
        "pods that are not ready count as healthy for their budget",
        "pdb",
        "was evicted, leaving",
    ),
    _planted(B.EVICTION_IGNORES_BUDGET, "the API admits every eviction", "pdb", "was evicted, leaving"),
    _planted(B.GANG_BOUND_ONE_BY_ONE, "members of a gang are bound singly", "gang", "held 3 of the 4", real=True),
    _planted(B.GANG_BOUND_SLOWLY, "minutes pass between the members of a gang", "gang", "longer than allowed"),
    _planted(
        B.GANG_MEMBER_NEVER_REPLACED, "a gang that lost a member keeps its GPUs for nothing", "gang", "after a loss"
    ),
    _planted(
        B.ORPHANED_PODS_KEPT,
        "pods of a node that is gone stay",
        "recovery",
        "which is gone",
        with_=B.INSTANCE_ENDED_UNDRAINED,
    ),
    # Provisioner and cloud.
    _planted(
        B.DRAIN_IGNORES_PDB,
        "the drain deletes pods past their disruption budget",
        "pdb",
        "deleted past the Eviction API",
        real=True,
    ),
    _planted(B.DRAIN_TAINTS_ANOTHER_NODE, "a second node is tainted, and stays so", "recovery", "has the taint"),
    _planted(B.INSTANCE_ENDED_UNDRAINED, "an instance is ended while pods run on it", "graceful_drain", "node lost"),
    _planted(B.NODE_LEFT_OVER, "the Node of an instance that is gone stays", "recovery", "Node spot-1"),
    _planted(B.CLAIM_LEFT_OVER, "the NodeClaim of a node that is gone stays", "recovery", "has no node"),
    _planted(B.NEW_NODE_REMOVED_AT_ONCE, "a new node is given up again at once", "scale_down", "went again too soon"),
    _planted(B.PROVISIONER_IDLE, "no node is ever ordered", "scale_up", "cloud capacity"),
    _planted(
        B.PROVISIONER_ORDERS_TOO_MANY, "three nodes are ordered in the place of one", "capacity", "more than needed"
    ),
    _planted(B.PROVISIONER_IGNORES_PRICE, "nodes come from the dearest pool", "capacity", "cost_per_hour"),
    _planted(B.INSTANCE_NEVER_BOOTS, "an instance is billed and never registers", "scale_up", "its node to start"),
    _planted(
        B.NOTICE_CUT_SHORT, "the cloud takes the instance seconds after its notice", "graceful_drain", "node lost"
    ),
    # Premises.
    _planted(
        B.INTERRUPTION_WITHOUT_EFFECT,
        "the fault has no effect",
        "faults_observed",
        "spot_interruption",
        status="unknown",
    ),
    _planted(
        B.API_LOSES_WATCH_HISTORY, "the recorder's watches have gaps", "recorder_complete", "gap", status="unknown"
    ),
    _planted(
        B.DELETION_REFUSED, "what the harness created cannot be deleted", "change_undone", "gang-b", status="unknown"
    ),
    _file("server-aborts-on-sigterm", "the same, as a file of its own", "graceful_drain", "aborted on SIGTERM"),
    _file("drain-ignores-pdb", "the same, as a file of its own", "pdb", "deleted past the Eviction API"),
    _file("gang-bound-one-by-one", "the same, as a file of its own", "gang", "held 2 of the 4"),
    _file("autoscaler-does-not-answer", "the same, as a file of its own", "scale_up", "no replica was decided"),
    _file("budget-blocks-for-ever", "a budget allows nothing, ever", "pdb", "even with all pods healthy"),
    _file("budget-selects-nothing", "a budget's selector matches no pod", "pdb", "selects nothing"),
    _file("two-budgets-share", "two budgets cover the same pods", "pdb", "at once"),
    _file("fault-hits-nothing", "the fault hits no replica", "graceful_drain", "no stream", status="unknown"),
    _file("load-not-offered", "the load goes out late", "load_offered", "late", status="unknown"),
)
