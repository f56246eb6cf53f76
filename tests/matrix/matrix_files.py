"""Experiments that are wrong themselves, one row each: the world is set up so that a promise breaks."""

from __future__ import annotations

from matrix_mishaps import records_lost, records_written_twice
from matrix_row import Row


def _file(
    name: str, breaks: str, check: str, *words: str, status: str = "fail", real: bool = False,
    also: tuple[tuple[str, str], ...] = (), innocent: tuple[str, ...] = (),
) -> Row:  # fmt: skip
    return Row(breaks, check, words, (), f"experiments/negative/{name}.yaml", status, real, also, innocent)


FILES: tuple[Row, ...] = (
    _file("gang-bound-one-by-one", "the same, as a file of its own", "gang", "held 2 of the 4"),
    _file("autoscaler-does-not-answer", "the same, as a file of its own", "scale_up", "no replica was decided"),
    _file("budget-blocks-for-ever", "a budget allows nothing, ever", "pdb", "even with all pods healthy"),
    _file("budget-selects-nothing", "a budget's selector matches no pod", "pdb", "selects nothing"),
    _file("two-budgets-share", "two budgets cover the same pods", "pdb", "at once"),
    _file("fault-hits-nothing", "the fault hits no replica", "graceful_drain", "no stream", status="unknown"),
    _file("load-not-offered", "the load goes out late", "load_offered", "late", status="unknown"),
    _file(
        "grace-too-short",
        "the grace of its pods is shorter than its answers",
        "graceful_drain",
        "killed at the end of its grace",
        "set terminationGracePeriodSeconds to",
        real=True,
        innocent=("pdb",),
    ),
    _file("queue-too-short", "busy servers answer 503, as their limit on the queue says", "slo", "good"),
    _file("two-autoscalers", "two autoscalers have one workload", "controllers", "for autoscalers at once"),
    _file("two-half-gangs", "two gangs each hold half of what they need", "gang", "deadlock"),
    _file("too-much-spot", "all replicas stand on spot nodes", "capacity", "spot_ratio was 1", "off spot"),
    _file("gpus-idle", "three quarters of the GPUs serve nobody", "capacity", "gpu_idle_ratio was"),
    _file(
        "unsteady-start",
        "it is not steady before the fault",
        "steady_before",
        "not met before the fault",
        status="unknown",
    ),
    _file(
        "broken-off-by-its-guard",
        "the run is broken off by its own guard",
        "run_complete",
        "a stop condition ended the run early",
        status="unknown",
    ),
    _file("too-few-requests", "too few requests for what is asked", "slo", "too few to be sure", status="unknown"),
    Row(
        "records of requests are lost before anybody reads them",
        "requests_accounted",
        ("were planned, but",),
        status="unknown",
        mishap=records_lost,
    ),
    Row(
        "records of requests are written twice",
        "requests_accounted",
        ("with more than one row",),
        status="unknown",
        mishap=records_written_twice,
    ),
)
