"""What requests of our own show of the way to the pods: who answers, how fast, and who stays silent."""

from __future__ import annotations

import asyncio
import re

from harness.faults.fault import Strike
from harness.faults.senses import Answer, senses_of
from harness.faults.sight import is_ready, pods_of
from harness.kube.port import ENDPOINT_SLICE

ASKS = 12
WITHIN_S = 1.0
"""Clock seconds within which a healthy service has answered: networks are not scaled."""
_ROUTABLE = re.compile(r'^gateway_pod_routable\{(?=[^}]*pod="([^"]*)")[^}]*\} ([0-9.]+)', re.M)
_ANSWERED = re.compile(r'^gateway_requests_total\{(?=[^}]*pod="([^"]*)")[^}]*\} ([0-9.e+]+)', re.M)


async def ask_many(strike: Strike, asks: int = ASKS) -> list[Answer]:
    senses = senses_of(strike.ground)
    return list(await asyncio.gather(*(senses.ask(WITHIN_S) for _ in range(asks))))


async def answered_by_pod(strike: Strike) -> dict[str, float]:
    """Answers begun so far, by pod, by the gateway's own count."""
    text = await senses_of(strike.ground).gateway_text() or ""
    found: dict[str, float] = {}
    for pod, value in _ANSWERED.findall(text):
        found[pod] = found.get(pod, 0.0) + float(value)
    return found


async def silent_nodes(strike: Strike) -> dict[str, str]:
    """Nodes with Ready pods none of which answers, while pods of others do."""
    pods = {key.partition("/")[2]: pod for key, pod in (await pods_of(strike.ground)).items() if is_ready(pod)}
    before = await answered_by_pod(strike)
    await ask_many(strike, max(ASKS, 3 * len(pods)))
    after = await answered_by_pod(strike)
    answers: dict[str, float] = {}
    for name, pod in pods.items():
        if name in before or name in after:
            node = str(pod["spec"].get("nodeName", ""))
            answers[node] = answers.get(node, 0.0) + after.get(name, 0.0) - before.get(name, 0.0)
    if not any(answers.values()):
        return {}
    return {node: f"{node}: no pod of it answered" for node, count in answers.items() if count == 0}


async def late_endpoints(strike: Strike, part: str) -> dict[str, str]:
    """Where the gateway's list of routable pods differs from the EndpointSlices for longer than news takes to come."""
    text = await senses_of(strike.ground).gateway_text()
    if text is None:
        return {}
    routable = {pod for pod, value in _ROUTABLE.findall(text) if float(value)}
    slices = (await strike.ground.kube.list(ENDPOINT_SLICE, strike.ground.namespace)).items
    ready = {
        str((e.get("targetRef") or {}).get("name", ""))
        for s in slices
        for e in s.get("endpoints") or ()
        if (e.get("conditions") or {}).get("ready") is not False and not (e.get("conditions") or {}).get("terminating")
    }
    apart = sorted(ready ^ routable)
    apart_s = strike.unchanged_s(part, ",".join(apart))
    if not apart or apart_s <= 5.0:
        return {}
    return {part: f"{part}: for {apart_s:.0f} s it has not heard of {', '.join(apart)}"}
