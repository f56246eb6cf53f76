"""What a kubelet and its device plugin owe pods: the hook before SIGTERM, one GPU for one pod, an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.checks.departures import exit_code
from harness.checks.device import Lost, device_ids, doubles, losses, rejected
from harness.checks.hurried import hurried_pods
from harness.checks.leftovers import GRACE_S as LEFT_S
from harness.checks.units import count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.scope import nodes_hit, pods_hit
from harness.diagnosis.suspect import DEVICE_PLUGIN, KUBELET, LOST_STREAMS, Suspect
from harness.history.gpus import bought
from harness.history.lives import Life, allocatable, going, gpus_of, node_of, terminal
from harness.verdict import Evidence

_LOST_S = 60.0
_BLANK_S = 120.0


def hooks(case: Case) -> Iterator[Suspect]:
    early = sorted(hurried_pods(case.fates.lives, case.scale), key=lambda h: h.fate.asked.t_ns if h.fate.asked else 0)
    if not early:
        return
    hook_s = early[0].fate.pre_stop_s
    after = [h.after_s for h in early]
    span = f"{min(after):.1f} to {max(after):.1f} s" if len(after) > 1 else f"{after[0]:.1f} s"
    nodes = sorted({h.fate.node_name for h in early})
    act = (
        f"told {count(len(early), 'pod')} to stop before the preStop hook of {hook_s:.0f} s was over: containers"
        " exited with 0 "
    )
    act += f"{span} after the pods were asked to go"
    rows = tuple(
        Evidence(
            f"objects:{h.fate.ended.index}",
            h.fate.ended.t_ns,
            f"{h.fate.name} on {h.fate.node_name}: ended {h.after_s:.1f} s after it was asked to go",
        )
        for h in early[:SHOWN]
        if h.fate.ended
    )
    clean = (f for f in case.fates.lives if f.asked and f.ended and exit_code(f.ended.object) == 0)
    asked = [f.name for f in clean if f.pre_stop_s]
    scope = pods_hit(case, [h.fate.name for h in early], asked)
    failed = [e for e in case.history.objects.of_kind("Event") if e.object.get("reason") == "FailedPreStopHook"]
    otherwise = "skipped, or run beside SIGTERM: both end so, and the kubelet's log tells which; "
    otherwise += f"{count(len(failed), 'FailedPreStopHook Event')} seen"
    otherwise += "; of pods that had streams to the end of the hook it cannot be told"
    yield Suspect(
        f"{KUBELET} of {listed(nodes)}",
        act,
        early[0].fate.asked.t_ns if early[0].fate.asked else 0,
        LOST_STREAMS,
        scope=scope,
        seen=rows,
        otherwise=otherwise,
    )


def devices(case: Case) -> Iterator[Suspect]:
    pods = [pod for pod in case.of("Pod") if gpus_of(pod.last)]
    nodes = [node for node in case.of("Node") if bought(node.last)]
    yield from _rejected(case, pods, nodes)
    yield from _given_twice(case, pods, nodes)
    lost = [s for node in nodes for s in losses(case.history, node)]
    yield from _never_there(case, [s for s in lost if s.never_there])
    yield from _gone_for_long(case, [s for s in lost if not s.never_there], nodes)


def _rejected(case: Case, pods: list[Life], nodes: list[Life]) -> Iterator[Suspect]:
    refused = [(pod, event) for pod in pods if (event := pod.when(rejected)) is not None]
    if refused:
        _, event = refused[0]
        node = node_of(event.object)
        said = str(event.object.get("status", {}).get("message") or "")
        claims = allocatable(case.nodes[node].last) if node in case.nodes else 0
        has = bought(case.nodes[node].last) if node in case.nodes else 0
        more = f": allocatable says {claims}, and it has {has}" if claims > has else ""
        act = (
            f"rejected {count(len(refused), 'pod')} that the scheduler had bound by what the node claims to"
            f" have{more} ({said})"
        )
        rows = tuple(
            Evidence(
                f"objects:{e.index}", e.t_ns, f"{p.name} on {node_of(e.object)}: {e.object['status'].get('message')}"
            )
            for p, e in refused[:SHOWN]
        )
        hit = [node_of(e.object) for _, e in refused]
        yield Suspect(
            f"{KUBELET} and {DEVICE_PLUGIN} of {listed(sorted(set(hit)))}",
            act,
            event.t_ns,
            frozenset({"device", "recovery", "graceful_drain", "scale_up", "capacity", "slo", "gang", "baseline"}),
            scope=nodes_hit(case, hit, [n.name for n in nodes]),
            seen=rows,
            otherwise=(
                "who counts wrongly, the plugin's list of devices or the kubelet: the plugin's log on that node would"
                " tell"
            ),
        )


def _given_twice(case: Case, pods: list[Life], nodes: list[Life]) -> Iterator[Suspect]:
    if doubled := doubles(nodes, pods):
        ids = Counter(twice for d in doubled for twice in _twice(d.why))
        hit = sorted({d.node for d in doubled})
        which = f"{listed(sorted(ids), 3)}" if ids else doubled[0].why
        act = f"gave GPUs to two pods at once, on {listed(hit)} ({which})"
        rows = tuple(
            Evidence(f"objects:{d.event.index}", d.event.t_ns, f"{d.node}: {_holders(case, d.pods, d.event.t_ns)}")
            for d in doubled[:SHOWN]
        )
        yield Suspect(
            f"{KUBELET} (device manager)",
            act,
            doubled[0].event.t_ns,
            frozenset({"device", "slo", "baseline"}),
            scope=nodes_hit(case, hit, [n.name for n in nodes]),
            seen=rows,
            otherwise=(
                "the scheduler bound no more than allocatable allows, so it is not to blame; the kubelet's checkpoint"
                " file of devices on such a node would tell whether the kubelet forgot, or the plugin offered one"
                " device twice"
            ),
        )


def _gone_for_long(case: Case, spans: list[Lost], nodes: list[Life]) -> Iterator[Suspect]:
    if lost := [s for s in spans if s.length_ns > case.ns(_LOST_S)]:
        worst = max(lost, key=lambda s: s.length_ns)
        hit = sorted({s.node for s in lost})
        act = f"of {listed(hit)} lost {count(worst.missing, 'GPU')} for {case.span(worst.length_ns)}"
        act += "" if worst.found else ", until the recording ended"
        act += ", while the node was Ready"
        rows = tuple(
            Evidence(f"objects:{s.event.index}", s.event.t_ns, f"{s.node} lacked {s.missing}") for s in lost[:SHOWN]
        )
        yield Suspect(
            DEVICE_PLUGIN,
            act,
            min(s.event.t_ns for s in lost),
            frozenset({"device", "scale_up", "capacity", "recovery", "baseline"}),
            scope=nodes_hit(case, hit, [n.name for n in nodes]),
            seen=rows,
            otherwise="plugin dead, or the GPUs: dmesg and the plugin's log on that node would tell",
            change="restart the plugin on that node, and replace nodes whose GPUs do not come back",
        )


def _never_there(case: Case, blank: list[Lost]) -> Iterator[Suspect]:
    blank = [span for span in blank if span.length_ns > case.ns(_BLANK_S)]
    if blank:
        hit = sorted({span.node for span in blank})
        act = f"never showed the GPUs of {listed(hit)}, Ready for {case.span(max(span.length_ns for span in blank))}"
        rows = tuple(
            Evidence(f"objects:{s.event.index}", s.event.t_ns, f"{s.node}: Ready, no GPU") for s in blank[:SHOWN]
        )
        yield Suspect(
            DEVICE_PLUGIN,
            act,
            min(span.event.t_ns for span in blank),
            frozenset({"device", "scale_up", "capacity", "recovery", "baseline"}),
            scope=nodes_hit(case, hit),
            seen=rows,
            change="see that its DaemonSet runs on new nodes and finds the driver",
        )


def _twice(why: str) -> list[str]:
    said = why.partition(" belongs to")[0]
    return (
        [name for name in said.replace(" and ", ", ").split(", ") if name.startswith("GPU")] if "belongs" in why else []
    )


def _holders(case: Case, pods: tuple[str, ...], t_ns: int) -> str:
    """``GPU-a: pod-1, pod-2``, for those that more than one has."""
    by: dict[str, list[str]] = {}
    for pod in case.of("Pod"):
        if pod.name in pods and (at := pod.at(t_ns)) is not None:
            for gpu in device_ids(at):
                by.setdefault(gpu, []).append(pod.name)
    return "; ".join(f"{gpu}: {listed(names)}" for gpu, names in sorted(by.items()) if len(names) > 1) or listed(
        list(pods)
    )


def pods_that_stay(case: Case) -> Iterator[Suspect]:
    """Ended, asked to go, nothing holds them, and still there: the last step of a deletion is the kubelet's."""
    until = case.history.recorded_until_ns
    stay = []
    for pod in case.of("Pod"):
        asked, ended = pod.when(going), pod.when(terminal)
        there = node_of(pod.last) in case.nodes and case.nodes[node_of(pod.last)].gone is None
        if pod.gone is not None or asked is None or not there or pod.last["metadata"].get("finalizers"):
            continue
        grace = float(pod.last["metadata"].get("deletionGracePeriodSeconds") or 0) + LEFT_S
        if until - asked.t_ns > case.ns(grace):
            stay.append((pod, asked, ended, asked.t_ns + case.ns(grace - LEFT_S)))
    if not stay:
        return
    nodes = sorted({node_of(pod.last) for pod, *_ in stay})
    done = sum(1 for _, _, ended, _ in stay if ended is not None)
    act = f"never took away {count(len(stay), 'pod')} that had been asked to go: {done} of them had ended"
    act += ", none has a finalizer, and the grace of each is long over"
    rows = tuple(
        Evidence(
            f"objects:{pod.seen[-1].index}",
            over,
            f"{pod.name} on {node_of(pod.last)}: asked at {case.at(asked.t_ns)},"
            f" {f'ended at {case.at(ended.t_ns)} with {exit_code(ended.object)}' if ended else 'not ended'}, grace"
            f" over at {case.at(over)}",
        )
        for pod, asked, ended, over in stay[:SHOWN]
    )
    went = [f.name for f in case.fates.lives if f.asked]
    yield Suspect(
        f"{KUBELET} of {listed(nodes)}",
        act,
        min(over for *_, over in stay),
        frozenset({"recovery", "capacity", "scale_down", "baseline"}),
        scope=pods_hit(case, [pod.name for pod, *_ in stay], went),
        seen=rows,
        otherwise="a runtime that cannot remove the sandbox looks the same: the kubelet's log would tell",
    )
