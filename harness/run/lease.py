"""One run at a time against one cluster: a Lease in the workload's namespace, taken before anything is changed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.errors import GuardRefused
from harness.kube.port import LEASE, AlreadyExists, ApiError, Conflict, Json, Kube, NotFound
from harness.processes import proc

NAME = "gpu-harness"
LEASE_FILE = "lease.json"
"""In a run's folder while the run holds the lease, or may: written before it is taken."""
DURATION_S = 60
"""Clock seconds after which a holder that does not renew is taken for dead. Both clocks must agree to within it."""
RENEW_S = 15.0
_SERVER_ERROR, _TOO_MANY = 500, 429
_MICROS = "%Y-%m-%dT%H:%M:%S.%fZ"


def holder_of(run_dir: Path) -> str:
    """Who we are: host, process and its start, run. Another process of this host can tell whether it still lives."""
    pid = os.getpid()
    own = proc.stat(pid)
    return f"{socket.gethostname()}/{pid}/{own.start_ticks if own else 0}/{run_dir.resolve()}"


class RunLease:
    """``acquire`` before the first change, ``keep`` in the background, ``release`` at the end."""

    def __init__(
        self, kube: Kube, namespace: str, holder: str, duration_s: int = DURATION_S,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC), run_dir: Path | None = None,
    ) -> None:  # fmt: skip
        """``run_dir``: where it is noted down, so that a sweep can give back what a dead run held."""
        self._kube = kube
        self._namespace = namespace
        self._holder = holder
        self._duration_s = duration_s
        self._utc_now = utc_now
        self._note = None if run_dir is None else run_dir / LEASE_FILE

    async def acquire(self) -> None:
        """GuardRefused, naming who holds it, where another run is alive."""
        if self._note is not None:
            self._note.write_text(json.dumps({"namespace": self._namespace, "holder": self._holder}) + "\n")
        try:
            await self._take()
        except GuardRefused:
            self._forget()
            raise

    async def _take(self) -> None:
        meta = {"name": NAME, "namespace": self._namespace}
        try:
            await self._kube.create(LEASE, {"metadata": meta, "spec": self._spec()}, self._namespace)
            return
        except AlreadyExists:
            pass
        try:
            found = await self._kube.get(LEASE, NAME, self._namespace)
            if (why := self.alive(found)) is not None:
                raise self._refusal(why)
            # With the version that was looked at, so that of two who come at once only one gets it.
            await self._kube.update(LEASE, found | {"spec": self._spec()})
        except (Conflict, NotFound) as error:
            raise self._refusal("another run came in between") from error

    async def keep(self) -> str:
        """Renews until it cannot; returns why."""
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                found = await self._kube.get(LEASE, NAME, self._namespace)
                if found["spec"].get("holderIdentity") != self._holder:
                    return f"the lease was taken by {found['spec'].get('holderIdentity')}"
                await self._kube.update(LEASE, found | {"spec": found["spec"] | {"renewTime": self._stamp()}})
            except NotFound:
                return "the lease was deleted"
            except (Conflict, ConnectionError):
                continue  # looked at again in a moment, long before it expires
            except ApiError as error:
                if error.status >= _SERVER_ERROR or error.status == _TOO_MANY:
                    continue  # etcd has no leader, say: that passes, and expiry is told by who holds it then
                return f"the lease could not be renewed: {error}"

    async def release(self) -> None:
        """Only what is ours."""
        try:
            found = await self._kube.get(LEASE, NAME, self._namespace)
            if found["spec"].get("holderIdentity") == self._holder:
                await self._kube.delete(LEASE, NAME, self._namespace, uid=found["metadata"]["uid"])
        except (NotFound, Conflict):
            pass  # it is somebody else's by now
        self._forget()

    def _forget(self) -> None:
        if self._note is not None:
            self._note.unlink(missing_ok=True)

    def _spec(self) -> Json:
        now = self._stamp()
        times = {"acquireTime": now, "renewTime": now}
        return {"holderIdentity": self._holder, "leaseDurationSeconds": self._duration_s, **times}

    def _stamp(self) -> str:
        return self._utc_now().strftime(_MICROS)

    def alive(self, lease: Json) -> str | None:
        """Who holds it, None where that is over."""
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if not holder or holder == self._holder or _died_here(holder):
            return None
        try:
            renewed = datetime.strptime(str(spec["renewTime"]), _MICROS).replace(tzinfo=UTC)
            until = renewed + timedelta(seconds=int(spec["leaseDurationSeconds"]))
        except (KeyError, ValueError, TypeError):
            return None  # nobody who means to hold it writes it so
        return None if until < self._utc_now() else f"{holder} holds it, until {until:%H:%M:%S} UTC unless renewed"

    def _refusal(self, why: str) -> GuardRefused:
        return GuardRefused(
            f"another run is at work on this cluster: {why}",
            hint="wait for it; if it is surely dead: gpu-harness sweep, then "
            f"kubectl delete lease {NAME} -n {self._namespace}",
        )


async def give_back(kube: Kube, run_dir: Path) -> None:
    """What a dead run of this folder held. Without a note, or with one that nobody can read, there is nothing."""
    note = run_dir / LEASE_FILE
    try:
        raw = json.loads(note.read_text())
        namespace, holder = str(raw["namespace"]), str(raw["holder"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        note.unlink()  # torn while it was written, so nothing was taken yet
        return
    await RunLease(kube, namespace, holder, run_dir=run_dir).release()


async def living_holder(kube: Kube, namespace: str, of_folder: str) -> str | None:
    """Who holds the lease for a run of that folder, on whatever machine; None where that is over, or another's."""
    try:
        found = await kube.get(LEASE, NAME, namespace)
    except NotFound:
        return None
    holder = str((found.get("spec") or {}).get("holderIdentity") or "")
    if not holder.endswith(f"/{of_folder}"):
        return None
    return RunLease(kube, namespace, "").alive(found)


async def give_back_of(kube: Kube, namespace: str, of_folder: str) -> None:
    """What the dead run of that folder, on whatever machine, still holds."""
    try:
        found = await kube.get(LEASE, NAME, namespace)
    except NotFound:
        return
    holder = str((found.get("spec") or {}).get("holderIdentity") or "")
    if holder.endswith(f"/{of_folder}"):
        await RunLease(kube, namespace, holder).release()


def _died_here(holder: str) -> bool:
    """Whether the holder was a process of this host that is no more."""
    host, _, rest = holder.partition("/")
    pid, _, rest = rest.partition("/")
    ticks = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    now = proc.stat(int(pid))
    return now is None or now.over or str(now.start_ticks) != ticks
