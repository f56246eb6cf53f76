"""A kept cluster for the run that wants it now: back at its beginning, and in the time of that run."""

from __future__ import annotations

from dataclasses import replace

from fakes.config import WorldConfig
from harness.kube.http import HttpKube
from harness.targets.kind.cluster_file import worker_names, workers_of
from harness.targets.kind.commands import KindCommands
from harness.targets.kind.kept import KeptFolder, Record
from harness.targets.kind.reset import reset
from harness.targets.kind.retime import Retiming


async def take_over(commands: KindCommands, kept: KeptFolder, record: Record, config: WorldConfig, file: str) -> None:
    """``file`` is what kind would make a new one from. NotAsItWas, or another TargetError, where it cannot be shown
    that it is what such a one would be."""
    workers = worker_names(commands.cluster, len(record.nodes) - 1)
    on = [worker.name for worker in workers_of(config, commands.cluster) if not worker.parked]
    async with HttpKube(commands.kubeconfig) as kube:
        if record.is_timed_as(file):
            await reset(commands, kube, workers, on, record.inventory)
            return
        commands.say(f"giving it the time_scale {config.time_scale:g}")
        kept.note(replace(record, between=True))
        retiming = Retiming(commands, workers, config.time_scale, kept.path / "retiming")
        await retiming.change()
        await retiming.await_control_plane(kube)
        await reset(commands, kube, workers, on, record.inventory)
        await retiming.await_kubelets(kube, on)
        kept.note(record.retimed(file))
