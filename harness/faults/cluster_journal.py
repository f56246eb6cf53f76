"""The undo journal kept in the cluster as well: another machine can then heal what this one cannot any more.

One ConfigMap for each run, in the workload's namespace. It is there before the first change is made, whoever makes it:
faults reach the cluster and the emulated world through ports that write down first. It goes when all is undone.
"""

from __future__ import annotations

import contextlib
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import TargetError
from harness.faults.objects import RUN_LABEL, run_label
from harness.faults.undo import UNDO_FILE, replay, replay_text
from harness.faults.world_control import ForwardingWorld, WorldControl
from harness.kube.port import (
    CONFIG_MAP,
    AlreadyExists,
    ApiError,
    Conflict,
    ForwardingKube,
    Json,
    Kube,
    NotFound,
    Resource,
)

if TYPE_CHECKING:
    from harness.targets.base import Connection

KEPT_LABEL = "gpu-harness.dev/undo"
KEPT_VALUE = "journal"
KEPT_FILE = "undo-in-cluster.json"
"""In the run's folder while the ConfigMap is there, or may be."""
ABOUT = "run.json"
WRITES = frozenset({"create", "update", "patch", "delete"})
TRIES = 5


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Whose journal a ConfigMap holds. No secret among it: whoever heals brings credentials of their own."""

    target: str
    fingerprint: str
    namespace: str
    time_scale: float
    control_url: str | None
    service_url: str
    host: str
    folder: str


def kept_run(connection: Connection, run_dir: Path) -> KeptRun:
    return KeptRun(
        connection.target,
        connection.fingerprint,
        connection.namespace,
        connection.time_scale,
        connection.control_url,
        connection.service_url,
        socket.gethostname(),
        str(run_dir.resolve()),
    )


def kept_name(label: str) -> str:
    """A DNS name from a label's value, which ends in eight digits of a hash, and so stays unique."""
    return f"gpu-harness-undo-{label.lower().replace('_', '-').replace('.', '-')}"


class ClusterJournal:
    """One run's journal in the cluster. The file in the run's folder is always ahead of it."""

    def __init__(self, kube: Kube, connection: Connection, run_dir: Path) -> None:
        self._kube = kube
        self._namespace = connection.namespace
        self._run_dir = run_dir
        self._label = run_label(run_dir)
        self._about = kept_run(connection, run_dir)
        self._planned = 0

    async def keep_planned(self) -> None:
        """Returns once every change that was planned so far stands in the cluster. Raises TargetError when it cannot:
        then the change must not be made."""
        planned = len(replay(self._run_dir / UNDO_FILE).entries)
        if planned <= self._planned:
            return
        try:
            await self.keep()
        except (ApiError, OSError) as error:
            raise TargetError(
                f"the undo journal could not be kept in the cluster, so nothing is changed: {error}"
            ) from error
        self._planned = planned

    async def keep(self) -> None:
        """Writes the file as it is. Several processes of a run may come at once: whoever was overtaken reads again."""
        self._note().write_text(json.dumps({"namespace": self._namespace, "name": kept_name(self._label)}) + "\n")
        for _ in range(TRIES):
            try:
                found = await self._kube.get(CONFIG_MAP, kept_name(self._label), self._namespace)
                self._check_no_more_in(found)
                await self._kube.update(CONFIG_MAP, found | {"data": self._data()})
                return
            except NotFound:
                pass
            except Conflict:
                continue
            try:
                await self._kube.create(CONFIG_MAP, self._object(), self._namespace)
                return
            except AlreadyExists:
                continue
        raise TargetError(f"{kept_name(self._label)} was overtaken by others {TRIES} times")

    async def remove(self) -> None:
        """Raises TargetError where it knows of changes that the file does not: then it is all that is left of them."""
        with contextlib.suppress(NotFound):
            found = await self._kube.get(CONFIG_MAP, kept_name(self._label), self._namespace)
            self._check_no_more_in(found)
            await self._kube.delete(
                CONFIG_MAP, kept_name(self._label), self._namespace, uid=found["metadata"]["uid"]
            )  # fmt: skip
        self._note().unlink(missing_ok=True)

    def _check_no_more_in(self, found: Json) -> None:
        """The file was ahead when it was whole. One that lost lines must not take them away here, too."""
        known = {entry.seq: entry.undo for entry in replay(self._run_dir / UNDO_FILE).entries}
        kept = replay_text(str((found.get("data") or {}).get(UNDO_FILE, "")))
        lost = [str(e) for e in kept.pending if e.seq not in known or known[e.seq] != e.undo]
        if lost or kept.damaged:
            raise TargetError(
                f"ConfigMap {kept_name(self._label)} knows of changes that {UNDO_FILE} here does not: "
                + ", ".join((*lost, *kept.damaged)),
                hint=f"heal from it: gpu-harness sweep --target {self._about.target}, with --kubeconfig, --context and "
                "--namespace where it is not the cluster of `up`",
            )

    def _note(self) -> Path:
        return self._run_dir / KEPT_FILE

    def _object(self) -> Json:
        labels = {KEPT_LABEL: KEPT_VALUE, RUN_LABEL: self._label}
        meta = {"name": kept_name(self._label), "namespace": self._namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": self._data()}

    def _data(self) -> dict[str, str]:
        about = {name: getattr(self._about, name) for name in KeptRun.__dataclass_fields__}
        return {UNDO_FILE: (self._run_dir / UNDO_FILE).read_text(errors="replace"), ABOUT: json.dumps(about)}


class JournalFirstKube(ForwardingKube):
    """No change goes through before its undo stands in the cluster."""

    def __init__(self, kube: Kube, journal: ClusterJournal) -> None:
        super().__init__(kube)
        self._journal = journal

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        if verb in WRITES:
            await self._journal.keep_planned()


class JournalFirstWorld(ForwardingWorld):
    """The same for the emulated world's switches."""

    def __init__(self, world: WorldControl, journal: ClusterJournal) -> None:
        super().__init__(world)
        self._journal = journal

    async def before_change(self) -> None:
        await self._journal.keep_planned()
