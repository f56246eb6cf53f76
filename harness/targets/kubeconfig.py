"""A cluster that is there already, with a workload that others brought. Nothing is started, and nothing taken down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

from harness.errors import TargetError
from harness.faults.fidelity import KUBECONFIG
from harness.faults.pick import FleetNode
from harness.faults.sight import is_ready
from harness.kube.http import HttpKube
from harness.kube.port import POD
from harness.spec.settings import WorkloadSpec
from harness.targets.base import Connection
from harness.targets.foreign import Survey
from harness.targets.wanted import Places

READY_TIMEOUT_S = 60
ANSWER_TIMEOUT_S = 10


class KubeconfigTarget:
    """``up`` looks whether the cluster is the one that was planned on and the workload serves."""

    name = KUBECONFIG
    real: tuple[str, ...] = (
        "the cluster as it was found: control plane, nodes, GPUs, workload, gateway and autoscalers", "Locust",
        "Chaos Toolkit",
    )  # fmt: skip
    emulated: tuple[str, ...] = ()

    def __init__(self, survey: Survey, workload: WorkloadSpec, places: Places) -> None:
        self._survey = survey
        self._workload = workload
        self.log: Path = places.logs / "kubeconfig.log"
        """Nothing runs here that could write one."""

    @property
    def versions(self) -> Mapping[str, str]:
        return {"kube-apiserver": self._survey.version}

    def planned_fleet(self) -> Sequence[FleetNode]:
        return self._survey.fleet

    async def up(self) -> Connection:
        connection = self._survey.connection
        async with connection.kube() as kube:
            if (now := await kube.fingerprint()) != connection.fingerprint:
                raise TargetError(
                    f"behind {connection.kubeconfig} is another cluster now: kube-system is {now}, and was "
                    f"{connection.fingerprint} when the run was planned",
                    hint="did somebody switch the context?",
                )
            await self._serves(kube)
        await self._answers(connection.service_url)
        return connection

    async def down(self) -> None:
        """It is not ours to stop."""

    def died(self) -> str | None:
        """Nothing of it is our process; a cluster that goes away shows in the recording, as gaps."""
        return None

    async def _serves(self, kube: HttpKube) -> None:
        """Whatever made its pods: at least one of them has to be Ready. How many, a run's steady state says."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_TIMEOUT_S
        while True:
            found = await kube.list(POD, self._workload.namespace, label_selector=self._workload.selector)
            if any(is_ready(pod) for pod in found.items):
                return
            if loop.time() > deadline:
                raise TargetError(
                    f"none of the {len(found.items)} pods of {self._workload.selector} in namespace "
                    f"{self._workload.namespace} is Ready after {READY_TIMEOUT_S} s",
                    hint="kubectl get pods: the workload is yours to bring on this target",
                )
            await asyncio.sleep(1.0)

    async def _answers(self, url: str) -> None:
        """Any answer will do: who asks for a key, or has no list of models, is there all the same."""
        try:
            async with httpx.AsyncClient(timeout=ANSWER_TIMEOUT_S, verify=self._workload.ca_file or True) as http:
                await http.get(f"{url.rstrip('/').removesuffix('/v1')}/v1/models")
        except (httpx.HTTPError, OSError) as error:
            raise TargetError(
                f"the service does not answer at {url}: {error or type(error).__name__}",
                hint="is the gateway reachable from here? kubectl port-forward makes it so; --url names another",
            ) from error
