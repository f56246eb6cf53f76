"""The load as the supervisor sees it: one Locust process or several, each sending its share of one schedule."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.processes.children import Child, spawn
from harness.run import load
from harness.run.load.settings import LOAD_ENV, WORKER_ENV
from harness.run.rundir import RunDir
from harness.run.tail import LoadTail
from harness.spec.loadprofile import SendSpec
from harness.spec.settings import WorkloadSpec

_LOCUSTFILE = Path(load.__file__).with_name("locustfile.py")
_LOCUST = (
    sys.executable, "-m", "locust", "-f", str(_LOCUSTFILE), "--headless", "--only-summary", "--loglevel", "WARNING",
)  # fmt: skip


class LoadProcesses:
    """Started once. They wait for the go file, and end by themselves when the last answer is there."""

    def __init__(self, run_dir: RunDir, workload: WorkloadSpec, send: SendSpec, seed: int) -> None:
        self._dir = run_dir
        self._workload = workload
        self._send = send
        self._seed = seed
        self._children: list[Child] = []
        self.tail = LoadTail(run_dir.records, send.workers)

    def write_settings(self, service_url: str, start_ns: int) -> Path:
        """``load.json``, which all of them read. It names the API key's variable, never the key."""
        workload = self._workload
        api = {
            "url": service_url if workload.url == "auto" else workload.url,
            "model": workload.model,
            "flavour": workload.api,
            "headers": workload.headers,
            "key_env": workload.api_key_env,
            "ca_file": str(Path(workload.ca_file).resolve()) if workload.ca_file else None,
        }
        path = self._dir.path / "load" / "load.json"
        path.write_text(
            json.dumps(
                {
                    "schedule": str(self._dir.schedule.resolve()),
                    "api": api,
                    "records": str(self._dir.records.resolve()),
                    "start_ns": start_ns,
                    "seed": self._seed,
                    "send": self._send.model_dump(),
                },
                indent=1,
            )
        )
        return path.resolve()

    async def start(self, settings: Path, env: Mapping[str, str]) -> None:
        for index in range(self._send.workers):
            own = {**env, LOAD_ENV: str(settings), WORKER_ENV: str(index)}
            log = self._dir.log("locust" if index == 0 else f"locust-{index + 1}")
            self._children.append(await spawn(self._name(index), _LOCUST, env=own, log=log))

    @property
    def started(self) -> bool:
        return bool(self._children)

    @property
    def over(self) -> bool:
        """Whether all have ended, well or not."""
        return self.started and all(child.returncode is not None for child in self._children)

    @property
    def first(self) -> Child:
        return self._children[0]

    def pids(self) -> dict[str, int]:
        return {("load" if i == 0 else f"load-{i + 1}"): child.pid for i, child in enumerate(self._children)}

    def failed(self) -> Child | None:
        """One that has ended though its share was not through."""
        ended = [child for child in self._children if child.returncode is not None]
        if not ended:
            return None
        self.tail.update()
        if bad := [child for child in ended if child.returncode != 0]:
            return bad[0]
        return ended[0] if len(ended) > self.tail.finished_count else None

    async def stop(self, grace_s: float) -> None:
        await asyncio.gather(*(child.stop(grace_s) for child in self._children))
        self.tail.update()

    def _name(self, index: int) -> str:
        return "load (Locust)" if self._send.workers == 1 else f"load (Locust, {index + 1} of {self._send.workers})"
