"""A component is taken away and brought back: ``taken_away.py [NAME…]``.

Each of its programs is stopped (SIGTERM), killed and frozen, one after the other on a control plane of its own: what of
``CASES`` fails meanwhile and after how long, and how long after the start all is well again, in seconds of the clock.
Prints a line for each; exits 1 where one behaved otherwise than ``CASES`` says, 77 where programs are missing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
from missed import KeptAlive, Made, Missed, Place, Read, Write
from one_component import cannot_run, target_of
from proving import NS, pod, template, until_it_is

from harness.errors import HarnessError, TargetError
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, HPA, POD, ApiError, Json

WAYS = ("stop", "kill", "freeze")


def _named(name: str, body: Json, labels: Json | None = None) -> Json:
    metadata = {"name": name, "namespace": NS} | ({"labels": labels} if labels else {})
    return body | {"metadata": metadata}


def _labelled(label: str) -> Json:
    return _named("labelled", pod("labelled", {"cpu": "1"}), {label: "x"})


PLAIN = Write("a pod of nobody", "Pod", pod("plain", {"cpu": "1"}), refused=False)
SIZED = {"selector": {"matchLabels": {"app": "smoke"}}, "replicas": 1, "template": template({"cpu": "1"})}
DEPLOYED = Write("a Deployment", "Deployment", _named("d", {"spec": SIZED}), refused=False)


def _guarded(kind: str, body: Json, label: str) -> tuple[Missed, ...]:
    """By webhooks that are asked about its own kind and pods with its label, and about nothing else."""
    return (
        Write(f"a {kind}", kind, body, refused=True),
        Write("a pod with its label", "Pod", _labelled(label), refused=True),
        PLAIN,
        DEPLOYED,
    )


GROUP = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template({"cpu": "1"})}}
JOB = {"parallelism": 1, "completions": 1, "template": template({"cpu": "1"}, restartPolicy="Never")}
SET = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": JOB}}]}
HEAD = {"template": template({"cpu": "1"}), "rayStartParams": {}}
RAY = {"rayVersion": "2.52.0", "headGroupSpec": HEAD}
AT_NIGHT = {"timezone": "UTC", "start": "0 0 * * *", "end": "0 1 * * *", "desiredReplicas": "2"}
SCALED = {"scaleTargetRef": {"name": "scaled"}, "triggers": [{"type": "cron", "metadata": AT_NIGHT}]}
SCALES = _named("scaled", {"spec": SIZED})
CASES: dict[str, Mapping[str, tuple[Missed, ...]]] = {
    "lws": {"lws": _guarded("LeaderWorkerSet", _named("g", {"spec": GROUP}), "leaderworkerset.sigs.k8s.io/name")},
    "jobset": {"jobset": _guarded("JobSet", _named("s", {"spec": SET}), "jobset.sigs.k8s.io/jobset-name")},
    "kueue": {
        "kueue": (
            Write("a ResourceFlavor", "ResourceFlavor", {"metadata": {"name": "any"}}, refused=True),
            Write("a pod of nobody", "Pod", pod("plain", {"cpu": "1"}), refused=True),
            replace(DEPLOYED, refused=True),
        )
    },
    "kuberay": {
        "kuberay-operator": (Made("a RayCluster", "RayCluster", _named("ray", {"spec": RAY}), POD), PLAIN),
    },
    "keda": {
        "keda-operator": (
            Made("a ScaledObject", "ScaledObject", _named("s", {"spec": SCALED}), HPA, SCALES),
            PLAIN,
        ),
        "keda-adapter": (Read("a read of external.metrics.k8s.io", "/apis/external.metrics.k8s.io/v1beta1"), PLAIN),
    },
    "prometheus-adapter": {
        "prometheus-adapter": (
            Read("a read of custom.metrics.k8s.io", "/apis/custom.metrics.k8s.io/v1beta2"),
            PLAIN,
        )
    },
    "metrics-server": {
        "metrics-server": (Read("a read of metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1/nodes"), PLAIN),
    },
    "kwok": {"kwok": (KeptAlive(),)},
}


async def turn(stack_url: str, program: str, verb: str) -> None:
    async with httpx.AsyncClient(base_url=stack_url, timeout=120, trust_env=False) as client:
        answer = await client.post(f"/programs/{program}/{verb}")
    if not answer.is_success:
        raise TargetError(f"{program} could not be told to {verb}: {answer.text}")


async def gone(at: Place, stack_url: str, program: str, asked: tuple[Missed, ...], how: str) -> str:
    for each in asked:
        await each.before(at, how)
    await turn(stack_url, program, how)
    parts = [await each.meanwhile(at, how) for each in asked]
    began_s = time.monotonic()
    await turn(stack_url, program, "start")
    for each in asked:
        await until_it_is(partial(each.is_back, at), f"{program} was back, and {each.what} not as before")
    return f"{'; '.join(parts)}; all well {time.monotonic() - began_s:.1f} s after the start was asked for"


async def taken_away(name: str, folder: Path) -> list[str]:
    """Prints what became of each way; what was wrong."""
    target = target_of(name, folder)
    try:
        connection = await target.up()
        kinds = {kind.kind: kind for kind in target.standing.kinds} | {"Pod": POD, "Deployment": DEPLOYMENT}
        async with HttpKube(connection.kubeconfig) as kube:
            at = Place(kube, kinds)
            for program, asked in CASES[name].items():
                for how in WAYS:
                    seen = await gone(at, connection.stack_url or "", program, asked, how)
                    print(f"{program}, {how}: {seen}", flush=True)
        return at.wrong
    finally:
        await target.down()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    names = parser.parse_args().names or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}; there is: {', '.join(CASES)}")
    if code := cannot_run(names):
        return code
    wrong: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong += [f"{name}, {each}" for each in asyncio.run(taken_away(name, Path(folder)))]
            except (HarnessError, ApiError) as error:
                wrong.append(f"{name}: {error}")
    for each in wrong:
        print(f"OTHERWISE THAN IT SHOULD BE: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
