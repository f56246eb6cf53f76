"""A kind cluster that outlives its run: for the next one, which takes it if it can be shown to be as at its beginning.

Its folder lies in the user's cache, one for each name of a cluster. A record in it says what the cluster was made of;
as long as there is one, the cluster is kept. The folder's lock belongs to the run that works on the cluster, kept or
not.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from harness.errors import BadInput, TargetError
from harness.processes.lock import hold_lock
from harness.stack.cache import cache_dir
from harness.targets.kind.cluster_file import control_plane_name, without_time
from harness.targets.kind.commands import KindCommands, find_docker, find_kind
from harness.targets.kind.inventory import NotAsItWas

KEEP_ENV, CLUSTER_ENV = "GPU_HARNESS_KIND_KEEP", "GPU_HARNESS_KIND_CLUSTER"
RECORD = "kept.json"


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LONGEST_NAME = 63 - len(control_plane_name(""))
"""With what kind adds to it, it is the name of a host."""


def cluster_name(env: Mapping[str, str] = os.environ) -> str:
    """BadInput for one that kind would not take, or that would lead out of our folder."""
    name = env.get(CLUSTER_ENV) or "gpu-harness"
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise BadInput(
            f"{CLUSTER_ENV} is {name[:80]!r}, which is no name for a kind cluster",
            hint=f"small letters, digits, - and . between them, {_LONGEST_NAME} at the most",
        )
    return name


@dataclass(frozen=True, slots=True)
class Record:
    """``file`` is what kind made it from, or would make it from now that it was retimed; ``image`` the node image that
    was asked for, ``loaded`` a digest of what was loaded into its nodes, ``containers`` the ids of its nodes by name,
    ``inventory`` what its API server held before anything of an experiment came. ``between`` two time scales it is from
    the first change until all is shown to be changed."""

    file: str
    image: str
    loaded: str
    containers: Mapping[str, str]
    inventory: Mapping[str, str]
    between: bool = False

    def check(self, file: str, image: str, loaded: str, containers: Mapping[str, str]) -> None:
        """NotAsItWas says why it is not the cluster that is wanted. One that has more workers will do, and one of
        another ``time_scale``, which can be changed."""
        wanted = _parts(file)[1]
        if containers != self.containers:
            raise NotAsItWas("its containers are not those that it had")
        if image != self.image:
            raise NotAsItWas(f"its node image is {self.image or 'the default of kind'}")
        if self.between:
            raise NotAsItWas("a run ended while it was given another time_scale")
        if without_time(self.file) != without_time(file):
            raise NotAsItWas("its settings are those of a planted bug, or of another version of the harness")
        if self.nodes[: len(wanted)] != wanted:
            raise NotAsItWas("its nodes are of other pools")
        if loaded != self.loaded:
            raise NotAsItWas("the image of the fakes is another one by now")

    def is_timed_as(self, file: str) -> bool:
        return _parts(self.file)[0] == _parts(file)[0]

    def retimed(self, file: str) -> Record:
        """With the settings of ``file``, and all the nodes that it has."""
        settings, nodes = _parts(file)[0], self.nodes
        return replace(self, file=str(yaml.safe_dump(settings | {"nodes": nodes}, sort_keys=False)), between=False)

    @property
    def nodes(self) -> list[Any]:
        """As the file has them, the control-plane node first."""
        return _parts(self.file)[1]


class KeptFolder:
    def __init__(self, cluster: str) -> None:
        self.path = cache_dir() / "kind" / "clusters" / cluster
        self._cluster = cluster
        self._lock: int | None = None

    @property
    def record_file(self) -> Path:
        return self.path / RECORD

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    def hold(self) -> None:
        """TargetError where another run has the cluster."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = hold_lock(self.path)
        if self._lock is None:
            raise TargetError(
                f"another run is at work on the kind cluster {self._cluster!r}",
                hint=f"wait until it is over, or give this one a cluster of its own with {CLUSTER_ENV}",
            )

    @property
    def held(self) -> bool:
        return self._lock is not None

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read(self) -> Record | None:
        try:
            return Record(**json.loads(self.record_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, record: Record, kubeconfig: Path) -> None:
        """From here on the cluster is kept."""
        shutil.copy(kubeconfig, self.kubeconfig)
        self.kubeconfig.chmod(0o600)
        self.note(record)

    def note(self, record: Record) -> None:
        """Instead of the one that there is."""
        part = self.record_file.with_suffix(".part")
        part.write_text(json.dumps(asdict(record)))
        part.rename(self.record_file)

    def forget(self) -> None:
        """From here on it is one that has to go."""
        self.record_file.unlink(missing_ok=True)
        self.kubeconfig.unlink(missing_ok=True)


def delete_kept() -> str:
    """Takes the kept cluster down, if there is one, and says so."""
    name = cluster_name()
    folder = KeptFolder(name)
    if folder.read() is None:
        return ""
    folder.hold()
    try:
        commands = KindCommands(find_docker(), find_kind(), name, folder.kubeconfig)
        asyncio.run(_delete(commands))
        folder.forget()
    finally:
        folder.release()
    shutil.rmtree(folder.path, ignore_errors=True)
    return f"deleted the kind cluster {name} that was kept"


async def _delete(commands: KindCommands) -> None:
    if await commands.nodes() and await commands.is_ours():
        await commands.delete()


def _parts(file: str) -> tuple[dict[str, Any], list[Any]]:
    """All but the nodes, and the nodes."""
    read: dict[str, Any] = yaml.safe_load(file)
    return {key: value for key, value in read.items() if key != "nodes"}, read["nodes"]
