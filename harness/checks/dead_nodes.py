"""Nodes that the API calls Ready, and whose pods answer nobody: what keeps a lease alive is not what serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.departures import Fates, PodFate, exit_code
from harness.checks.rows import Places, Rows, rows_of
from harness.checks.units import NS_PER_S, listed
from harness.history.lives import ready

if TYPE_CHECKING:
    from harness.history.reader import History

_SERVED_ELSEWHERE = 10
"""So many answers must have begun elsewhere meanwhile: else nobody asked."""
_SILENT_NS = 3 * NS_PER_S


@dataclass(frozen=True, slots=True)
class DeadNode:
    node: str
    since_ns: int
    """When the last token came from it."""
    pods: tuple[str, ...]

    @property
    def detail(self) -> str:
        verb = "are" if len(self.pods) > 1 else "is"
        return f"the API goes on to call {self.node} Ready, and {listed(list(self.pods))} on it {verb} silent for good"


def dead_nodes(history: History, fates: Fates) -> dict[str, DeadNode]:
    """By name. Judged from the clients' side: the last token of all pods of a node came at one moment, requests to them
    failed from then on, others were served on, and nothing in the API tells of it."""
    rows = rows_of(history)
    first, last, end = (rows.numbers(name) for name in ("first_token_ns", "last_token_ns", "end_ns"))
    named = ~rows.missing("node")
    own = {fate.life.uid: at for fate, at in fates.places(rows)}
    on: dict[str, list[PodFate]] = {}
    for fate in fates.lives:
        on.setdefault(fate.node_name, []).append(fate)
    found: dict[str, DeadNode] = {}
    for node, places in sorted(rows.places("node").items()):
        tokens = last[places][~np.isnan(last[places])]
        if not len(tokens):  # none ever came
            continue
        since_ns = int(tokens.max())
        if not (rows.cut[places] & (end[places] >= since_ns)).any():
            continue
        later = first > since_ns + _SILENT_NS
        elsewhere = int((later & named).sum()) - int(later[places].sum())
        alive = [fate for fate in on.get(node, ()) if _well(fate, since_ns)]
        acts = any(_kubelet_acted(fate, since_ns) for fate in on.get(node, ()))
        if elsewhere >= _SERVED_ELSEWHERE and alive and not acts and not _one_fell_first(rows, own, alive, since_ns):
            found[node] = DeadNode(node, since_ns, tuple(sorted(fate.name for fate in alive)))
    return found


def _well(fate: PodFate, since_ns: int) -> bool:
    """Whether the API went on to say for a while that the pod serves, and that its node does."""
    until_ns = since_ns + _SILENT_NS
    ends = [fate.life.gone, fate.asked, fate.ended]
    node = fate.node
    over = [event.t_ns for event in ends if event is not None] + [
        t for t in ((node.gone_ns, node.silent_ns) if node else ()) if t is not None
    ]
    then = fate.life.at(until_ns)
    return all(t > until_ns for t in over) and fate.life.born_ns < since_ns and then is not None and ready(then)


def _kubelet_acted(fate: PodFate, since_ns: int) -> bool:
    """Whether a container of it ended, with its exit code, after the node fell silent: then its kubelet lives."""
    ended = fate.ended
    return ended is not None and ended.t_ns > since_ns + _SILENT_NS and exit_code(ended.object) is not None


def _one_fell_first(rows: Rows, places: Mapping[str, Places], alive: Sequence[PodFate], since_ns: int) -> bool:
    """Whether a pod had fallen silent, asked in vain, while another of the same node served on: a node dies at once."""
    sent, last = rows.numbers("sent_ns"), rows.numbers("last_token_ns")
    for fate in alive:
        own = places.get(fate.life.uid)
        if own is None or np.isnan(last[own]).all():
            continue
        until_ns = np.nanmax(last[own])
        asked = (sent[own] > until_ns) & (sent[own] < since_ns - _SILENT_NS) & rows.cut[own]
        if until_ns < since_ns - _SILENT_NS and asked.any():
            return True
    return False
