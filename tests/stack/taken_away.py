"""Who is asked about writes, or keeps nodes alive, is taken away and brought back: ``taken_away.py [NAME…]``.

Stopped (SIGTERM), killed, frozen, one after the other on a control plane of its own: what the API server still takes
meanwhile and after how long it refuses the rest, and how long after the start all is well again, in seconds of the
clock. Prints a line for each; exits 1 where one behaved otherwise than ``CASES`` says, 77 where programs are missing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
from one_component import cannot_run, target_of
from proving import NS, WITHIN_S, is_true, pod, template

from harness.errors import HarnessError, TargetError
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, NODE, POD, ApiError, Json, Resource

WAYS = ("stop", "kill", "freeze")
LOOK_S = 0.25
NODE_GRACE_S = 50.0
"""Of the node monitor of Kubernetes 1.37, and of the lease that it looks at: the nodes here live by the clock."""
FAKE = {"kwok.x-k8s.io/node": "fake"}


@dataclass(frozen=True, slots=True)
class Write:
    """One object that somebody creates while the component is gone. ``refused``: by its webhook."""

    what: str
    kind: str
    body: Json
    refused: bool


def _named(name: str, body: Json, labels: Json | None = None) -> Json:
    metadata = {"name": name, "namespace": NS} | ({"labels": labels} if labels else {})
    return body | {"metadata": metadata}


def _labelled(label: str) -> Json:
    return _named("labelled", pod("labelled", {"cpu": "1"}), {label: "x"})


PLAIN = Write("a pod of nobody", "Pod", pod("plain", {"cpu": "1"}), refused=False)
SIZED = {"selector": {"matchLabels": {"app": "smoke"}}, "replicas": 1, "template": template({"cpu": "1"})}
DEPLOYED = Write("a Deployment", "Deployment", _named("d", {"spec": SIZED}), refused=False)
UNANSWERED = "failed calling webhook"
"""What the API server says where nobody answered; all else is a webhook's own word."""
GROUP = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template({"cpu": "1"})}}
JOB = {"parallelism": 1, "completions": 1, "template": template({"cpu": "1"}, restartPolicy="Never")}
SET = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": JOB}}]}
CASES: dict[str, tuple[Write, ...]] = {
    "lws": (
        Write("a LeaderWorkerSet", "LeaderWorkerSet", _named("g", {"spec": GROUP}), refused=True),
        Write("a pod with its label", "Pod", _labelled("leaderworkerset.sigs.k8s.io/name"), refused=True),
        PLAIN,
        DEPLOYED,
    ),
    "jobset": (
        Write("a JobSet", "JobSet", _named("s", {"spec": SET}), refused=True),
        Write("a pod with its label", "Pod", _labelled("jobset.sigs.k8s.io/jobset-name"), refused=True),
        PLAIN,
        DEPLOYED,
    ),
    "kueue": (
        Write("a ResourceFlavor", "ResourceFlavor", {"metadata": {"name": "any"}}, refused=True),
        Write("a pod of nobody", "Pod", pod("plain", {"cpu": "1"}), refused=True),
        replace(DEPLOYED, refused=True),
    ),
}


class Gone:
    """One component on its control plane. ``wrong`` collects what was otherwise than it should be."""

    def __init__(self, name: str, kube: HttpKube, kinds: Sequence[Resource], stack_url: str) -> None:
        self.name = name
        self.wrong: list[str] = []
        self._kube = kube
        self._kinds = {kind.kind: kind for kind in kinds} | {"Pod": POD, "Deployment": DEPLOYMENT}
        self._url = stack_url
        self._last = ""

    async def turn(self, verb: str) -> None:
        async with httpx.AsyncClient(base_url=self._url, timeout=120, trust_env=False) as client:
            answer = await client.post(f"/programs/{self.name}/{verb}")
        if not answer.is_success:
            raise TargetError(f"{self.name} could not be told to {verb}: {answer.text}")

    async def writes(self, cases: Sequence[Write], how: str) -> str:
        """What became of each while it was gone, and until when those that were refused were so."""
        await self.turn(how)
        parts = [await self._written(case, how) for case in cases]
        began_s = time.monotonic()
        await self.turn("start")
        for case in cases:
            if case.refused:
                await until_it_is(partial(self._answered, case), f"nobody answered for {case.what}")
        return f"{'; '.join(parts)}; all answered {time.monotonic() - began_s:.1f} s after the start was asked for"

    async def _written(self, case: Write, how: str) -> str:
        began_s = time.monotonic()
        try:
            await self._create(case)
        except ApiError as error:
            said = f"refused after {time.monotonic() - began_s:.1f} s ({error.status}, {_short(error.message)})"
            if not case.refused or UNANSWERED not in error.message:
                self.wrong.append(f"{how}: {case.what} was refused: {error}")
        else:
            said = f"taken in {time.monotonic() - began_s:.1f} s"
            if case.refused:
                self.wrong.append(f"{how}: {case.what} was taken")
            await self._delete(case)
        return f"{case.what} {said}"

    async def _answered(self, case: Write) -> bool:
        try:
            await self._create(case)
        except ApiError as error:
            return UNANSWERED not in error.message
        await self._delete(case)
        return True

    async def _create(self, case: Write) -> None:
        """With another name each time: what is deleted takes a while to be gone."""
        metadata = case.body["metadata"]
        named = case.body | {"metadata": metadata | {"name": f"{metadata['name']}-{time.monotonic_ns()}"}}
        kind = self._kinds[case.kind]
        self._last = named["metadata"]["name"]
        await self._kube.create(kind, named)

    async def _delete(self, case: Write) -> None:
        kind = self._kinds[case.kind]
        await self._kube.delete(kind, self._last, NS if kind.namespaced else None)

    async def nodes(self, how: str) -> str:
        """KWOK keeps a Node alive that has no kubelet."""
        name = f"kwok-{how}"
        await self._kube.create(NODE, {"metadata": {"name": name, "annotations": FAKE}})
        await until_it_is(lambda: self._ready(name), f"{name} did not become Ready")
        began_s = time.monotonic()
        await self.turn(how)
        await until_it_is(lambda: self._ready(name, False), f"{name} stayed Ready without KWOK")
        gone_s = time.monotonic() - began_s
        taints = sorted(t["key"] for t in (await self._kube.get(NODE, name))["spec"].get("taints") or ())
        if gone_s < NODE_GRACE_S / 2 or "node.kubernetes.io/unreachable" not in taints:
            self.wrong.append(f"{how}: {name} was given up after {gone_s:.1f} s with {taints}")
        began_s = time.monotonic()
        await self.turn("start")
        await until_it_is(lambda: self._ready(name), f"{name} did not become Ready again")
        back_s = time.monotonic() - began_s
        return (
            f"its node was given up after {gone_s:.1f} s, and Ready again {back_s:.1f} s after the start was asked for"
        )

    async def _ready(self, node: str, wanted: bool = True) -> bool:
        return is_true(await self._kube.get(NODE, node), "Ready") is wanted


async def until_it_is(look: Callable[[], Awaitable[bool]], failure: str) -> None:
    try:
        async with asyncio.timeout(WITHIN_S):
            while not await look():
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise TargetError(f"{failure} for {WITHIN_S:g} s") from None


def _short(message: str) -> str:
    return message if len(message) < 120 else f"{message[:60]} … {message[-55:]}"


async def taken_away(name: str, folder: Path) -> list[str]:
    """Prints what became of each way; what was wrong."""
    target = target_of(name, folder)
    try:
        connection = await target.up()
        async with HttpKube(connection.kubeconfig) as kube:
            gone = Gone(name, kube, target.standing.kinds, connection.stack_url or "")
            for how in WAYS:
                seen = await (gone.nodes(how) if name == "kwok" else gone.writes(CASES[name], how))
                print(f"{name}, {how}: {seen}", flush=True)
        return gone.wrong
    finally:
        await target.down()


def main() -> int:
    every = (*CASES, "kwok")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(every))
    names = parser.parse_args().names or every
    if unknown := [name for name in names if name not in every]:
        parser.error(f"unknown: {', '.join(unknown)}; there is: {', '.join(every)}")
    if code := cannot_run(names):
        return code
    wrong: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong += [f"{name}, {each}" for each in asyncio.run(taken_away(name, Path(folder)))]
            except HarnessError as error:
                wrong.append(f"{name}: {error}")
    for each in wrong:
        print(f"OTHERWISE THAN IT SHOULD BE: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
