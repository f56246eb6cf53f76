"""How pods of a model server end: grace, preStop, and what vLLM does on SIGTERM."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import dig, items, text, texts, whole
from harness.inspection.workloads import DEFAULT_GRACE_S, LONGEST_STREAM, RUNS_ON, Workload, prestop_s
from harness.kube.port import Json

SPOT_NOTICE_S = {
    ("karpenter.sh/capacity-type", "spot"): 120,
    ("eks.amazonaws.com/capacityType", "SPOT"): 120,
    ("cloud.google.com/gke-spot", "true"): 30,
    ("cloud.google.com/gke-provisioning", "spot"): 30,
    ("kubernetes.azure.com/scalesetpriority", "spot"): 30,
}
"""By the label that asks for spot: seconds from the notice to the end (EC2 two minutes, Google and Azure thirty)."""
_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_VLLM = re.compile(r"(^|[/_-])vllm([/:_@-]|$)|^vllm\.entrypoints\.")
_MORE_ARGUMENTS = re.compile(r"\$[({]?[A-Za-z_]*(ARG|OPT|FLAG|EXTRA)|\$[@*]|^--config(=|$)", re.IGNORECASE)
"""What may hold a --shutdown-timeout that nobody sees here."""


def longest_stream(objects: Objects, workload: Workload) -> tuple[float, str] | None:
    """Seconds, and who says so. What stands at the object goes before what holds for all."""
    if (said_s := workload.said_s(LONGEST_STREAM)) is not None:
        return said_s, f"its annotation {LONGEST_STREAM}"
    known = objects.known
    return None if known.longest_stream_s is None else (known.longest_stream_s, known.longest_stream_from)


def _streaming(objects: Objects) -> Iterator[Workload]:
    """Model servers, and whatever else says how long its streams are: a gateway cuts them just as well."""
    yield from objects.gpu_servers
    for workload in objects.workloads:
        named = LONGEST_STREAM in workload.annotations or LONGEST_STREAM in workload.object.annotations
        if named and workload.object.kind in RUNS_ON and workload not in objects.gpu_servers:
            yield workload


def _written_grace(workload: Workload) -> str:
    written = whole(workload.pod_spec, "terminationGracePeriodSeconds")
    return f"a grace of {workload.grace_s} s" + ("" if written is not None else " (the default; none is written)")


def _grace_at(workload: Workload) -> tuple[str | int, ...]:
    return (*workload.spec_at, "terminationGracePeriodSeconds")


def _grace_below_longest_stream(objects: Objects) -> Iterator[Sighting]:
    for workload in _streaming(objects):
        longest = longest_stream(objects, workload)
        if longest is not None and workload.grace_s < longest[0]:
            yield Sighting(
                workload.object, _grace_at(workload),
                f"{_written_grace(workload)}, but streams last up to {longest[0]:g} s ({longest[1]})",
                f"terminationGracePeriodSeconds: {longest[0] + (workload.prestop_s or 0) + 5:.0f} or more",
            )  # fmt: skip


def _no_longest_stream(objects: Objects) -> str:
    if all(longest_stream(objects, workload) for workload in objects.gpu_servers):
        return ""
    return f"nobody says how long the longest stream is (--longest-stream-s, --experiment, or {LONGEST_STREAM})"


def _grace_below_prestop(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.workloads:
        ending = ((prestop_s(c) or 0.0, text(c, "name")) for _, c in workload.running)
        longest_s, name = max(ending, default=(0.0, ""))
        if longest_s and workload.object.kind in RUNS_ON and workload.grace_s <= longest_s:
            yield Sighting(
                workload.object, _grace_at(workload),
                f"{_written_grace(workload)}, of which preStop of container {name} takes {longest_s:g} s",
                f"terminationGracePeriodSeconds well above {longest_s:g}",
            )  # fmt: skip


def _grace_by_default(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        written = whole(workload.pod_spec, "terminationGracePeriodSeconds")
        if longest_stream(objects, workload) is not None:
            continue  # the rule on the longest stream judges it exactly
        if written is None:
            yield Sighting(workload.object, workload.spec_at, f"no grace is written, so it is {DEFAULT_GRACE_S} s")
        elif objects.live and written == DEFAULT_GRACE_S:  # a server writes the default into every object
            yield Sighting(workload.object, _grace_at(workload), f"its grace is {written} s, the default")


def _no_prestop(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        place, container = workload.main
        at = (*place, "lifecycle", "preStop")
        if workload.prestop_s is None:
            yield Sighting(workload.object, at, f"container {text(container, 'name')} has no preStop")
        elif dig(container, "lifecycle", "preStop", "sleep", "seconds") == 0:
            yield Sighting(workload.object, at, f"preStop of container {text(container, 'name')} sleeps 0 s")


def _vllm_server(container: Json) -> bool:
    image = text(container, "image").rpartition("@")[0] or text(container, "image")
    return any(_VLLM.search(word) for word in (image, *_words(container)))


def _words(container: Json) -> list[str]:
    """Of its command line up to the first option, and of every script in it."""
    found = []
    for text_ in texts(container, "command") + texts(container, "args"):
        if text_.startswith("--"):
            break
        found += re.split(r"[\s;&|]+", text_)
    return found


def _shutdown_timeout_s(container: Json) -> float | None:
    arguments = texts(container, "command") + texts(container, "args")
    joined = " ".join(arguments)
    found = re.search(r"--shutdown[-_]timeout[= ]+(\d+(?:\.\d+)?)", joined)
    return float(found[1]) if found else None


def _aborts_on_sigterm(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        place, container = workload.main
        arguments = " ".join((*texts(container, "command"), *texts(container, "args"))).split()
        if not _vllm_server(container) or any(_MORE_ARGUMENTS.search(word) for word in arguments):
            continue
        longest = longest_stream(objects, workload)
        if longest is not None and (workload.prestop_s or 0) >= longest[0]:
            continue  # by the time of SIGTERM nothing is in flight
        if not _shutdown_timeout_s(container):
            yield Sighting(
                workload.object, (*place, "args"),
                f"container {text(container, 'name')} runs vLLM without --shutdown-timeout, which is 0 by default",
            )  # fmt: skip


def _drain_beyond_grace(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        timeout_s = _shutdown_timeout_s(workload.main[1])
        slept_s = workload.prestop_s or 0.0
        if timeout_s and slept_s + timeout_s > workload.grace_s:
            yield Sighting(
                workload.object, _grace_at(workload),
                f"preStop {slept_s:g} s and --shutdown-timeout {timeout_s:g} s exceed {_written_grace(workload)}",
                f"terminationGracePeriodSeconds above {slept_s + timeout_s:g}",
            )  # fmt: skip


def _only_on(workload: Workload, label: str, value: str) -> bool:
    """Whether its pods go to nodes with this label and value alone, by a nodeSelector or by each term of what the
    affinity requires."""
    if text(workload.pod_spec.get("nodeSelector"), label) == value:
        return True
    terms = items(workload.pod_spec, *_REQUIRED)
    return bool(terms) and all(
        any(
            text(e, "key") == label and text(e, "operator") == "In" and texts(e, "values") == [value]
            for _, e in items(term, "matchExpressions")
        )
        for _, term in terms
    )


def _grace_beyond_spot_notice(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.gpu_servers:
        for (label, value), notice_s in SPOT_NOTICE_S.items():
            if _only_on(workload, label, value) and workload.grace_s > notice_s:
                yield Sighting(
                    workload.object, _grace_at(workload),
                    f"{_written_grace(workload)} on spot nodes ({label}: {value}), which are gone {notice_s} s after "
                    "their notice",
                    f"a grace within {notice_s} s, or nodes that are not spot",
                )  # fmt: skip


GRACE_BELOW_LONGEST_STREAM = Rule(
    "grace-below-longest-stream", Severity.ERROR,
    "The pod is killed before its longest stream can end.",
    "a grace of at least preStop plus the longest stream",
    "raise terminationGracePeriodSeconds, or bound the streams (max_tokens)",
    "A gateway with 30 s of grace cut streams of several minutes at every rollout.",
    "preloop/preloop#217, maximhq/bifrost#1923", RUNS_ON, _grace_below_longest_stream, unless_known=_no_longest_stream,
)  # fmt: skip
GRACE_BELOW_PRESTOP = Rule(
    "grace-below-prestop", Severity.ERROR,
    "preStop uses up the whole grace, so the server is killed without a SIGTERM to drain on.",
    "a grace above preStop plus what the server needs to drain",
    "raise terminationGracePeriodSeconds, or shorten preStop",
    "The grace runs while preStop does; what is left of it is all that in-flight requests have.",
    "kserve/kserve#5485, llm-d/llm-d#1525", RUNS_ON, _grace_below_prestop,
)  # fmt: skip
GRACE_BY_DEFAULT = Rule(
    "grace-by-default", Severity.WARNING,
    "A model server has the default grace of 30 s, which is shorter than many a stream.",
    "terminationGracePeriodSeconds: preStop plus the longest stream",
    "write it down; 30 s is right only if no stream is longer",
    "A gateway with 30 s of grace cut streams of several minutes at every rollout.",
    "preloop/preloop#217, maximhq/bifrost#1923", RUNS_ON, _grace_by_default,
)  # fmt: skip
NO_PRESTOP = Rule(
    "no-prestop", Severity.WARNING,
    "The server gets SIGTERM while gateways still send to it.",
    "lifecycle: {preStop: {sleep: {seconds: 5}}}, or longer than endpoints take to spread",
    "add a preStop that sleeps",
    "Requests that were routed to a pod between its deletion and the news of it were refused or aborted.",
    "vllm-project/vllm#24885, llm-d/llm-d#927", RUNS_ON, _no_prestop,
)  # fmt: skip
ABORTS_ON_SIGTERM = Rule(
    "server-aborts-on-sigterm", Severity.ERROR,
    "vLLM aborts all requests in flight as soon as it gets SIGTERM.",
    "--shutdown-timeout of the longest stream (vLLM v0.18 or later), within the grace",
    "add --shutdown-timeout, or let preStop sleep as long as the longest stream",
    "Every rollout, drain and scale-down cut the streams of its pods, answered 200 and `abort`.",
    "vllm-project/vllm#24885, #34730, #36666", RUNS_ON, _aborts_on_sigterm,
)  # fmt: skip
DRAIN_BEYOND_GRACE = Rule(
    "drain-beyond-grace", Severity.ERROR,
    "The server may drain for longer than the kubelet lets it live.",
    "preStop + --shutdown-timeout < terminationGracePeriodSeconds",
    "raise the grace, or lower --shutdown-timeout",
    "Servers that were still draining got SIGKILL, exit code 137, with their last streams.",
    "kserve/kserve#5496, llm-d/llm-d#1525, HabanaAI/vllm-fork#1426", RUNS_ON, _drain_beyond_grace,
)  # fmt: skip
GRACE_BEYOND_SPOT_NOTICE = Rule(
    "grace-beyond-spot-notice", Severity.WARNING,
    "The instance is gone before the pod's grace is over.",
    "a grace within the notice, or nodes that are not spot",
    "bound the streams, lower the grace, or keep long streams off spot",
    "GPU pods with ten minutes of grace were still draining when their spot instance vanished.",
    "aws/karpenter-provider-aws#8160, #3562", RUNS_ON, _grace_beyond_spot_notice,
)  # fmt: skip

TERMINATION = (
    GRACE_BELOW_LONGEST_STREAM, GRACE_BELOW_PRESTOP, GRACE_BY_DEFAULT, NO_PRESTOP, ABORTS_ON_SIGTERM,
    DRAIN_BEYOND_GRACE, GRACE_BEYOND_SPOT_NOTICE,
)  # fmt: skip
