"""The story of a fail of `graceful_drain`: the first loss that anything explains, and what would have kept it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.checks import causes
from harness.checks.departures import ended_undrained, lost_ns
from harness.checks.rows import Request, rows_of
from harness.checks.story import moment, tell
from harness.checks.units import count, scenario_s
from harness.history.lives import lives
from harness.history.tables import Outcome

if TYPE_CHECKING:
    from harness.checks.causes import Cause
    from harness.checks.departures import Fates, PodFate
    from harness.history.reader import History

_OBJECTS = 8
CUT, REFUSED, UNANSWERED = "cut in the answer", "refused with an error", "never answered"
UNRECORDED = "without a recorded end"


def kind_of_loss(row: Request) -> str:
    """In the words of whoever waited for it."""
    if row.end_ns is None:
        return UNRECORDED
    if row.first_token_ns is not None:
        return CUT
    return REFUSED if row.outcome == Outcome.HTTP_5XX else UNANSWERED


def counted(lost: Sequence[Request]) -> str:
    """``2 streams lost``, or ``5 requests lost: 2 cut in the answer, 3 refused with an error``."""
    kinds = Counter(kind_of_loss(row) for row in lost)
    if set(kinds) <= {CUT}:
        return f"{count(len(lost), 'stream')} lost"
    parts = ", ".join(f"{kinds[kind]} {kind}" for kind in (CUT, REFUSED, UNANSWERED, UNRECORDED) if kinds[kind])
    return f"{count(len(lost), 'request')} lost: {parts}"


def drain_story(history: History, allowed: int, lost: Sequence[tuple[Request, Cause]], fates: Fates) -> str:
    """Told of the first loss that anything bears out: what came after it may be its consequence."""
    explained = [pair for pair in lost if pair[1].explained]
    row, cause = min(explained or lost, key=lambda pair: (pair[1].fell_ns or pair[0].end_ns or 0, pair[0].request_id))
    fate = fates.of(row)
    longest_s = longest_stream_s(history)
    unexplained = len(lost) - len(explained)
    rest = f"; {unexplained} of them unexplained" if unexplained and explained else ""
    why, change = _drain_cause(history, cause, fate, longest_s)
    nodes = [row.node for row, _ in lost if row.node]
    others = Counter(c.name for _, c in explained if c.name != cause.name)
    later = f"; later also {', '.join(f'{n} {name}' for name, n in others.most_common(2))}" if others else ""
    return tell(
        promised=f"a request that was sent is answered whole, also when its pod or node is asked to go ({allowed} may "
        "be lost)",
        happened=f"request {row.request_id} on {row.pod or 'no named pod'} was {kind_of_loss(row)} ({row.outcome}); "
        f"{counted([row for row, _ in lost])}{rest}{later}",
        when=moment(history, cause.fell_ns if cause.fell_ns is not None else row.end_ns),
        objects=[*(row.pod for row, _ in lost if row.pod), *nodes][:_OBJECTS],
        cause=why,
        change=change,
    )


def longest_stream_s(history: History) -> float:
    """In scenario seconds, cut ones as long as they gave tokens: what a drain has to wait for at least."""
    table = rows_of(history)
    until = np.where(table.ok, table.numbers("end_ns"), table.numbers("last_token_ns"))
    spans = (until - table.numbers("sent_ns"))[table.on_a_pod]
    return scenario_s(int(spans[~np.isnan(spans)].max(initial=0)), history.run.time_scale)


def _drain_cause(history: History, cause: Cause, fate: PodFate | None, longest_s: float) -> tuple[str, str]:
    """What the history bears out, and what to change; both empty where it bears out nothing."""
    longest = f"longest stream {longest_s:.0f} s"
    if fate is None or not cause.explained:
        return (f"{cause.name}: {cause.detail}" if cause.explained else "", "")
    need_s = math.ceil(fate.pre_stop_s + longest_s) + 5
    said = f"{cause.name}, {cause.detail}" if cause.detail else cause.name
    match cause.name:
        case causes.GRACE_END:
            return f"{said}; {longest}", f"set terminationGracePeriodSeconds to {need_s} s or more"
        case causes.KILLED_EARLY:
            killer = f"the kubelet of {fate.node_name} killed it early: see its log"
            return f"{said}; {longest}", f"{killer}, and whether somebody deleted it again with a shorter grace"
        case causes.SIGTERM:
            return f"{said}; {longest}", finish_streams(fate, longest_s)
        case causes.NODE_LOST:
            return _node_cause(history, said, fate, longest_s, cause.fell_ns)
        case causes.SENT_TOO_LATE if "had been closed" in cause.detail:
            change = "see why the gateway sends to endpoints that are closed: its cache, its watch, its retries"
            return said, change
        case causes.SENT_TOO_LATE:
            return said, "see why its EndpointSlice kept it for new work: what the endpoint controller waits for"
        case causes.BEFORE_SIGTERM:
            return said, "see what cut it: its server had not been told to stop yet, so look at the gateway first"
        case causes.NOT_YET:
            return said, "let the readiness probe ask what only a loaded model answers"
        case causes.REFUSED if "connection" in cause.detail:
            return said, "let the readiness probe pass only once the model answers"
        case causes.REFUSED:
            return said, f"see in the log of {fate.name} why it answers with errors while it is Ready"
        case causes.SILENT:
            return said, "let a liveness probe ask for a token, so that a server that hangs is restarted"
        case causes.NODE_DEAD:
            return (
                said,
                "see what renews that node's lease, and let something ask the pods themselves whether they serve",
            )
        case causes.GATEWAY:
            return said, "see what the gateway did at that moment: a reload or a restart must let its streams end"
    return said, "see why the container ended: its last log lines, memory, and probes"


def finish_streams(fate: PodFate, longest_s: float) -> str:
    """Only what can hold: time to finish that is longer than what the grace leaves helps nobody."""
    left_s, need_s = fate.grace_s - fate.pre_stop_s, math.ceil(longest_s) + 5
    text = f"let the server finish its streams on SIGTERM (vLLM: --shutdown-timeout {need_s}; the longest stream was "
    text += f"{longest_s:.0f} s"
    if need_s <= left_s:
        return f"{text}, and grace leaves {left_s:.0f} s after preStop)"
    return f"{text}), and raise terminationGracePeriodSeconds to {math.ceil(fate.pre_stop_s) + need_s + 5} s"


def _node_cause(history: History, said: str, fate: PodFate, longest_s: float, fell_ns: int | None) -> tuple[str, str]:
    """Who ended the machine, and was there time for what it took to let the pod go?"""
    node = fate.node
    if node is None or node.noticed_ns is None or node.gone_ns is None:
        return said, "spread replicas over nodes, and let the gateway retry what has no token yet"
    scale = history.run.time_scale
    notice_s = scenario_s(lost_ns(node.gone_ns, fell_ns) - node.noticed_ns, scale)
    if (ended := ended_undrained(lives(history.objects, "NodeClaim"), node.name, fell_ns)) is not None:
        by = f"the provisioner ended the instance of NodeClaim {ended.name}, which never said that it was drained"
        return f"{said}; {by}", "see why the provisioner ends instances that still have pods: its drain, its grace"
    if fate.asked is None or fate.asked.t_ns > node.gone_ns:
        return f"{said}; it went {notice_s:.0f} s after the notice, and {fate.name} had not been asked to go", ""
    held_s = scenario_s(max(0, fate.asked.t_ns - node.noticed_ns), scale)
    text = f"{said}; it went {notice_s:.0f} s after the notice, {fate.name} was asked to go after {held_s:.0f} s"
    change = f"cap streams at {max(0.0, notice_s - held_s):.0f} s"
    if held_s > notice_s / 2:
        change = f"let the budget allow more at once, or keep spare replicas ready; or {change}"
    return f"{text}; longest stream {longest_s:.0f} s", change
