"""Requests that were lost with their node: who ended the machine, and was there time to let its pods go?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.checks.departures import ended_undrained, lost_ns
from harness.checks.rows import Request
from harness.checks.units import count, listed
from harness.diagnosis.case import Case
from harness.diagnosis.lost_telling import Lost, suspect_of
from harness.diagnosis.scope import nodes_hit
from harness.diagnosis.suspect import CLOUD, DRAIN, PROVISIONER, Sure, Suspect
from harness.verdict import Evidence

if TYPE_CHECKING:
    from harness.checks.causes import Cause

_NOTICE_S = 30.0
"""Scenario seconds of notice that spot machines have at least: Google Cloud and Azure give so much, AWS 120 s."""


def node_dead(case: Case, own: Lost) -> Iterator[Suspect]:
    nodes = sorted({row.node for row, _ in own if row.node})
    pods = {row.pod for row, _ in own if row.pod}
    act = (
        f"kept the lease of {listed(nodes)} alive though the machine serves nobody: {count(len(pods), 'pod')} of it"
        " fell "
    )
    act += f"silent at once, the API calls them Ready, and {count(len(own), 'request')} were lost on them"
    otherwise = "the node's network may be cut in one direction: a look at the machine itself would tell"
    change = "see what renews that node's lease, and let something ask the pods themselves whether they serve"
    yield suspect_of(
        case,
        own,
        "the node agent, or whatever renews node leases,",
        act,
        scope=nodes_hit(case, nodes),
        otherwise=otherwise,
        change=change,
    )


def node_lost(case: Case, own: Lost) -> Iterator[Suspect]:
    """Who ended the machine, and was there time for what it took to let the pods go?"""
    by_node: dict[str, list[tuple[Request, Cause]]] = {}
    for pair in own:
        by_node.setdefault(case.fate(pair[0]).node_name, []).append(pair)
    for node, lost in by_node.items():
        yield from _of_node(case, node, lost)


def _of_node(case: Case, name: str, own: Lost) -> Iterator[Suspect]:
    fate = case.fate(own[0][0])
    node = fate.node
    what = f"{count(len(own), 'request')} of {count(len({row.pod for row, _ in own}), 'pod')} fell with it"
    if node is None or node.gone_ns is None:
        silent = f" at {case.at(node.silent_ns)} of the load" if node and node.silent_ns else ""
        yield suspect_of(
            case,
            own,
            f"the node {name}",
            f"fell silent{silent} while its pods served: {what}",
            scope=nodes_hit(case, [name]),
        )
        return
    fell_ns = min((cause.fell_ns for _, cause in own if cause.fell_ns is not None), default=None)
    if undrained := _ended_undrained(case, name, fell_ns):
        act = (
            f"ended the instance of {name} while pods were on it, and its NodeClaim never said that it was drained:"
            f" {what}"
        )
        yield suspect_of(
            case,
            own,
            PROVISIONER,
            act,
            scope=nodes_hit(case, [name]),
            seen=undrained,
            change="see why it ends instances that still have pods: its drain, its terminationGracePeriod",
        )
        return
    if node.noticed_ns is None or node.noticed_ns >= node.gone_ns:
        act = f"was gone at {case.at(node.gone_ns)} of the load without any notice: {what}"
        change = "spread replicas over nodes, and let the gateway retry what has no token yet"
        yield suspect_of(case, own, f"the node {name}", act, scope=nodes_hit(case, [name]), change=change)
        return
    noticed = node.noticed_ns
    lasted_s = case.s(lost_ns(node.gone_ns, fell_ns) - noticed)
    if lasted_s < _NOTICE_S:
        act = (
            f"took {name} {lasted_s:.0f} s after its notice, less than the {_NOTICE_S:.0f} s that any cloud promises:"
            f" {what}"
        )
        change = "plan for machines that go at once: spread replicas, keep spare ones off spot; ask the cloud why"
        yield suspect_of(case, own, CLOUD, act, scope=nodes_hit(case, [name]), change=change)
        return
    held = [f for f in case.fates.lives if f.node_name == name and (f.asked is None or f.asked.t_ns > node.gone_ns)]
    left = f"{len(held)} of its pods had not even been asked to go" if held else "its pods had been asked to go"
    act = f"took longer than the {lasted_s:.0f} s that {name} was given: {left}, and {what}"
    yield suspect_of(
        case,
        own,
        f"{DRAIN} of {name}",
        act,
        scope=nodes_hit(case, [name]),
        sure=Sure.EFFECT,
        change="" if held else f"cap streams at {lasted_s:.0f} s, or retry elsewhere what has no token yet",
    )


def _ended_undrained(case: Case, name: str, fell_ns: int | None) -> tuple[Evidence, ...]:
    if (ended := ended_undrained(case.of("NodeClaim"), name, fell_ns)) is None:
        return ()
    text = f"NodeClaim {ended.name}: InstanceTerminating, and Drained was never true"
    return (Evidence(f"objects:{ended.index}", ended.t_ns, text, {"node": name}),)
