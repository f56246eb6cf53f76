"""Nodes that the API calls Ready, and whose pods answer nobody: what keeps a lease alive is not what serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.departures import PodFate
from harness.checks.units import NS_PER_S, listed
from harness.history.lives import ready
from harness.history.tables import CUT

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


def dead_nodes(history: History, fates: Mapping[str, PodFate]) -> dict[str, DeadNode]:
    """By name. Judged from the clients' side: the last token of all pods of a node came at one moment, requests to them
    failed from then on, others were served on, and nothing in the API tells of it."""
    table = history.requests
    named = table[table["node"].notna()]
    found: dict[str, DeadNode] = {}
    for node, own in named.groupby("node", sort=True):
        last_ns = own["last_token_ns"].max()
        if last_ns != last_ns or last_ns is None:  # none ever came
            continue
        since_ns = int(last_ns)
        failed = own["outcome"].isin(CUT) & (own["end_ns"] >= since_ns)
        elsewhere = named[(named["node"] != node) & (named["first_token_ns"] > since_ns + _SILENT_NS)]
        pods = [fate for fate in fates.values() if fate.node_name == node]
        alive = [fate for fate in pods if _well(fate, since_ns)]
        if failed.any() and len(elsewhere) >= _SERVED_ELSEWHERE and alive:
            found[str(node)] = DeadNode(str(node), since_ns, tuple(sorted(fate.name for fate in alive)))
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
