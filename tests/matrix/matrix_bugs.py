"""Bugs that are planted into the fakes, one row each: what it breaks, and who must say so in which words."""

from __future__ import annotations

from matrix_row import Row

from fakes.config import PlantedBug


def _planted(
    bug: PlantedBug, breaks: str, check: str, *words: str, with_: PlantedBug | None = None, status: str = "fail",
    real: bool = False, experiment: str = "all-checks", also: tuple[tuple[str, str], ...] = (),
    innocent: tuple[str, ...] = (),
) -> Row:  # fmt: skip
    file = f"experiments/matrix/{experiment}.yaml"
    return Row(breaks, check, words, (bug, with_) if with_ else (bug,), file, status, real, also, innocent)


B = PlantedBug
BUGS: tuple[Row, ...] = (
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
    _planted(
        B.SERVER_NEVER_ANSWERS, "the server takes connections and answers nothing", "graceful_drain", "never answered"
    ),
    _planted(B.SERVER_SENDS_AWAY, "a busy server answers 429", "slo", "good"),
    _planted(B.SERVER_FAILS_SOME_REQUESTS, "one request in seven is answered with an error", "slo", "good"),
    _planted(B.SERVER_ANSWERS_LATE, "the first token comes seconds late", "slo", "ttft_ms_p95"),
    _planted(B.SERVER_DECODES_SLOWLY, "tokens come ten times slower", "slo", "tpot_ms_p95", "e2e_ms_p95"),
    _planted(B.SERVER_STUTTERS, "its answers stand still for a second now and then", "slo", "itl_ms_p95"),
    _planted(B.MODEL_LOADS_SLOWLY, "the weights take minutes to load", "scale_up", "model"),
    _planted(
        B.SERVER_HEALTHY_WHILE_LOADING,
        "/health says 200 while the model still loads, and what comes waits for it",
        "graceful_drain",
        "its pod was called Ready before it served",
        with_=B.MODEL_LOADS_SLOWLY,
    ),
    _planted(
        B.SERVER_CHOKES_ON_LONG_PROMPTS,
        "long prompts are answered seconds late",
        "slo",
        "with 900 prompt tokens or more",
        experiment="each-its-own-promise",
    ),
    _planted(
        B.SERVER_SERVES_THE_URGENT_LATE,
        "who should go first is answered seconds late",
        "slo",
        "of tenant urgent",
        experiment="each-its-own-promise",
    ),
    # The router.
    _planted(B.GATEWAY_ROUTES_BEFORE_READY, "the gateway sends work to pods that are not Ready yet", "slo", "good"),
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
    _planted(
        B.GATEWAY_IGNORES_NEW_ENDPOINTS,
        "the gateway never hears of added replicas",
        "scale_up",
        "traffic",
    ),
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
    _planted(
        B.DEVICE_PLUGIN_NEVER_COMES,
        "a new node never shows its GPUs",
        "device",
        "never showed",
        also=(("scale_up", "the GPU to appear"),),
    ),
    _planted(B.DEVICE_PLUGIN_DIES, "a node loses its GPUs, and they do not come back", "device", "lacked"),
    _planted(B.ALLOCATABLE_LIES, "a node claims more GPUs than it has", "device", "rejected by the node", real=True),
    _planted(B.GPUS_GIVEN_TWICE, "the kubelet gives out GPUs that others hold", "device", "gave GPUs out twice"),
    _planted(B.PROBE_NEVER_PASSES, "the readiness probe of added replicas never passes", "scale_up", "its probe"),
    _planted(
        B.SIGTERM_BESIDE_PRE_STOP,
        "SIGTERM comes while the preStop hook still runs",
        "graceful_drain",
        "before the preStop hook",
    ),
    _planted(
        B.POD_NEVER_GOES,
        "a pod that has ended is never taken away",
        "recovery",
        "is terminating beyond its grace",
        experiment="back-to-the-floor",
    ),
    _planted(
        B.DEAD_NODE_KEEPS_ITS_LEASE,
        "a node is dead, and its lease is renewed all the same",
        "graceful_drain",
        "its node is dead",
        experiment="scaled-away-with-work",
    ),
    # The autoscaler and its metric.
    _planted(
        B.HPA_BLIND,
        "the autoscaler reads its metric and never changes a size",
        "scale_up",
        "no replica was decided",
        real=True,
        also=(("controllers", "and did nothing for"),),
    ),
    _planted(B.HPA_HESITATES, "the autoscaler sleeps on a need for minutes", "scale_up", "served only after"),
    _planted(
        B.HPA_NEVER_SCALES_IN,
        "the autoscaler never takes a replica away",
        "scale_down",
        "still above its floor",
        experiment="back-to-the-floor",
    ),
    _planted(
        B.HPA_THRASHES,
        "the size goes up and down at every sync",
        "scale_down",
        "reversal",
        also=(("controllers", "oscillation"),),
    ),
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
    _planted(
        B.SCALE_IN_KILLS,
        "replicas that are scaled away get no grace",
        "scale_down",
        "lost on pods that were scaled away",
        experiment="scaled-away-with-work",
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
        B.GANG_MEMBER_NEVER_REPLACED,
        "a gang that lost a member keeps its GPUs for nothing",
        "gang",
        "after a loss",
        also=(("recovery", "of 2 members"),),
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
    _planted(
        B.INSTANCE_ENDED_UNDRAINED,
        "an instance is ended while pods run on it",
        "graceful_drain",
        "node lost",
        innocent=("pdb",),
    ),
    _planted(B.NODE_LEFT_OVER, "the Node of an instance that is gone stays", "recovery", "Node spot-1"),
    _planted(B.CLAIM_LEFT_OVER, "the NodeClaim of a node that is gone stays", "recovery", "has no node"),
    _planted(B.NEW_NODE_REMOVED_AT_ONCE, "a new node is given up again at once", "scale_down", "went again too soon"),
    _planted(
        B.PROVISIONER_IDLE,
        "no node is ever ordered",
        "scale_up",
        "cloud capacity",
        also=(("capacity", "short for too long"),),
    ),
    _planted(
        B.PROVISIONER_ORDERS_TOO_MANY, "three nodes are ordered in the place of one", "capacity", "more than needed"
    ),
    _planted(
        B.PROVISIONER_IGNORES_PRICE,
        "nodes come from the dearest pool",
        "capacity",
        "cost_per_hour",
        "cost_per_million_tokens",
    ),
    _planted(B.INSTANCE_NEVER_BOOTS, "an instance is billed and never registers", "scale_up", "its node to start"),
    _planted(
        B.NOTICE_CUT_SHORT, "the cloud takes the instance seconds after its notice", "graceful_drain", "node lost"
    ),
    _planted(B.DRAIN_CORDONS_ANOTHER_NODE, "a second node is cordoned, and stays so", "recovery", "is cordoned"),
    _planted(
        B.DO_NOT_DISRUPT_IGNORED,
        "consolidation takes nodes whose pods forbid it",
        "pdb",
        "in spite of karpenter.sh/do-not-disrupt",
        experiment="left-alone",
    ),
    # Premises.
    _planted(
        B.CLOCK_OF_A_NODE_IS_OFF, "the clocks of two nodes are minutes ahead", "clocks_agree", "ahead", status="unknown"
    ),
    _planted(
        B.API_SERVER_REPLACED,
        "the API server becomes another version in the middle of the run",
        "versions_known",
        "no one version was tested",
        status="unknown",
    ),
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
)
