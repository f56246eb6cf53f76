"""The role that `gpu-harness rbac` prints is enough against real RBAC, and with one permission less it is refused."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from fakes.config import PoolConfig
from harness.clock import RunClock, monotonic_ns
from harness.errors import HarnessError
from harness.faults.catalogue.node_drain import NodeDrain
from harness.faults.cluster_journal import ClusterJournal
from harness.faults.fault import Fault, Strike, fidelity_on
from harness.faults.fidelity import Fidelity
from harness.faults.heal import open_ground
from harness.faults.permissions import Need, needs_of_a_run, rbac_objects
from harness.faults.port import Ground
from harness.faults.registry import FAULTS
from harness.faults.undoing import undo_change
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, NODE, ApiError, NotFound, Resource
from harness.run.allowing import missing
from harness.run.lease import RunLease
from harness.run.playing import NoTargets, Play, find_targets
from harness.run.record.recorder import RECORDED
from harness.spec.experiment import load_experiment
from harness.stack.find import Binaries
from harness.targets.base import Connection
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, wanted_by

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "spot-interruption-during-burst.yaml"
NS, NAME = "inference", "gpu-harness"
RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount", True),
    "Role": Resource(RBAC, "v1", "roles", "Role", True),
    "RoleBinding": Resource(RBAC, "v1", "rolebindings", "RoleBinding", True),
    "ClusterRole": Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    "ClusterRoleBinding": Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
}
TOKEN = Resource("", "v1", f"serviceaccounts/{NAME}/token", "TokenRequest", True)
POOLS = (
    PoolConfig("spot-a", "spot", nodes=9, stock=12, zone="zone-a"),
    PoolConfig("spot-b", "spot", nodes=5, stock=6, zone="zone-b"),
    PoolConfig("on-demand", "on-demand", nodes=3, stock=8, zone="zone-a"),
)
"""So many nodes that each variant finds some which no earlier one has touched."""
ALL_VARIANTS = os.environ.get("ALL_VARIANTS") == "1"
TRIES = 3
LAST = ("node_deleted",)
"""Faults whose damage the others should not meet."""


@dataclass
class Cluster:
    connection: Connection
    admin: HttpKube
    folder: Path
    given: set[tuple[str, str | None]] = field(default_factory=set)

    async def give(self, needs: Sequence[Need]) -> None:
        """Exactly these permissions to the service account, whatever it had."""
        objects = rbac_objects(needs, NS)
        places = {(obj["kind"], obj["metadata"].get("namespace")) for obj in objects}
        for kind, namespace in self.given - places:
            if "rules" in (found := await self.admin.get(KINDS[kind], NAME, namespace)):
                await self.admin.update(KINDS[kind], found | {"rules": []})
        self.given |= places
        for obj in objects:
            kind, meta = KINDS[obj["kind"]], obj["metadata"]
            try:
                found = await self.admin.get(kind, meta["name"], meta.get("namespace"))
                await self.admin.update(kind, found | {key: obj[key] for key in ("rules",) if key in obj})
            except NotFound:
                await self.admin.create(kind, obj, meta.get("namespace"))

    async def as_account(self) -> Connection:
        """The connection with a kubeconfig of the service account's own."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
        token = (await self.admin.create(TOKEN, request, NS))["status"]["token"]
        raw = yaml.safe_load(self.connection.kubeconfig.read_text())
        raw["users"] = [{"name": user["name"], "user": {"token": token}} for user in raw["users"]]
        path = self.folder / "account.kubeconfig"
        path.write_text(yaml.safe_dump(raw))
        return replace(self.connection, kubeconfig=path)

    async def until(self, kube: HttpKube, needs: Sequence[Need], wanted: Callable[[list[str]], bool]) -> None:
        """The authorizer reads roles by a watch, so a new one holds some moments later."""
        async with asyncio.timeout(30):
            while not wanted(await missing(kube, needs)):
                await asyncio.sleep(0.1)


@asynccontextmanager
async def cluster_up(binaries: Binaries, folder: Path) -> AsyncIterator[Cluster]:
    wanted = wanted_by(load_experiment(EXPERIMENT), 1)
    wanted = replace(wanted, config=replace(wanted.config, pools=POOLS))
    target = ControlPlaneTarget(wanted, binaries, Places(folder, folder))
    try:
        connection = await target.up()
        async with HttpKube(connection.kubeconfig) as admin:
            connection = replace(connection, fingerprint=await admin.fingerprint())
            yield Cluster(connection, admin, folder)
    finally:
        await target.down()


def of_every_set() -> dict[tuple[Need, ...], list[Fault]]:
    """By what they need beyond what every run needs: all faults that the target can have, each with the first of its
    variants that needs just that; with all of them where ``ALL_VARIANTS`` is 1."""
    found: dict[tuple[Need, ...], list[Fault]] = {}
    for kind in sorted(FAULTS.values(), key=lambda f: f.name in LAST):
        if fidelity_on(kind, "controlplane") is Fidelity.UNSUPPORTED:
            continue
        for variant in kind.variants:
            fault = kind.model_validate({"after_s": 0, **variant.arguments})
            alike = found.setdefault(fault.needs(NS), [])
            if ALL_VARIANTS or kind not in map(type, alike):
                alike.append(fault)
    return found


def without(needs: Sequence[Need], taken: Need, verb: str) -> list[Need]:
    """All but one verb of one need."""
    less = replace(taken, verbs=tuple(v for v in taken.verbs if v != verb))
    return [n for n in (*(n for n in needs if n != taken), less) if n.verbs]


async def steps(fault: Fault, ground: Ground) -> str:
    """All that a fault does in the API: it looks, picks, changes, looks again and takes it back."""
    fault_id = f"{fault.name}-1"
    targets = await find_targets(Play(fault, fault_id, 1), ground)
    strike = Strike(fault, ground, fault_id, targets, await fault.remember(ground, targets))
    await fault.signs(strike)
    await fault.inject(strike)
    await fault.signs(strike)
    for entry in ground.undo.replay().pending:
        assert entry.undo is not None
        ground.undo.undone(entry.seq, await undo_change(ground, entry.undo))
    return fault_id


async def forbidden(work: Awaitable[object]) -> str:
    """What the API server says when it refuses."""
    try:
        await work
    except Exception as error:
        said: BaseException | None = error
        while said is not None:
            if isinstance(said, ApiError) and said.status == 403:
                return said.message
            said = getattr(said, "cause", None) or said.__cause__
        raise
    return ""


async def test_the_generated_role_is_enough_and_each_of_its_permissions_is_needed(
    binaries: Binaries, tmp_path: Path
) -> None:
    every = needs_of_a_run(RECORDED, NS)
    async with cluster_up(binaries, tmp_path) as cluster:
        await cluster.give(every)
        account = await cluster.as_account()
        async with HttpKube(account.kubeconfig) as kube:
            await cluster.until(kube, every, lambda lacking: not lacking)
            await what_every_run_does(kube, account, tmp_path)
            tried = played = 0
            for own, faults in of_every_set().items():
                needs = (*every, *own)
                await cluster.give(needs)
                await cluster.until(kube, own, lambda lacking: not lacking)
                for fault in faults:
                    tried += 1
                    played += await play(fault, account, tmp_path / f"run-{tried}")
                for need in own:
                    await refused_without(cluster, kube, account, faults[0], needs, need, tmp_path)
        print(f"{played} of {tried} variants of faults played with exactly their role")
        assert played > 0.8 * tried > (40 if ALL_VARIANTS else 20)


async def what_every_run_does(kube: HttpKube, account: Connection, folder: Path) -> None:
    for resource in RECORDED:
        with contextlib.suppress(NotFound):  # not served here
            found = await kube.list(resource)
            async with (
                asyncio.timeout(5),
                contextlib.aclosing(
                    kube.watch(resource, resource_version=found.resource_version)  # type: ignore[type-var]  # a generator
                ) as events,
            ):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await anext(events)
    assert await kube.fingerprint() == account.fingerprint
    lease = RunLease(kube, NS, "elsewhere/1/1/x")
    await lease.acquire()
    await lease.release()
    run_dir = folder / "journal"
    run_dir.mkdir()
    (run_dir / "undo.jsonl").write_text("")
    journal = ClusterJournal(kube, account, run_dir)
    await journal.keep()
    await journal.keep()
    assert len((await kube.list(CONFIG_MAP, NS, label_selector="gpu-harness.dev/undo=journal")).items) == 1
    await journal.remove()
    said = await forbidden(kube.list(Resource("", "v1", "secrets", "Secret", True), NS))
    assert 'cannot list resource "secrets"' in said  # nothing beyond its needs


async def play(fault: Fault, account: Connection, run_dir: Path) -> int:
    """1 where it went through. What earlier faults have left may be in the way, and is no matter of permissions: then
    it is tried again, and 0 in the end. A refusal of the API server is raised."""
    clock = RunClock(monotonic_ns(), account.time_scale)
    for attempt in range(TRIES):
        (folder := run_dir / str(attempt)).mkdir(parents=True)
        try:
            async with open_ground(folder, account, clock, selector="app=llm") as ground:
                await steps(fault, ground)
                return 1
        except (HarnessError, NoTargets) as error:
            print(f"{fault.name}: {error}")
            if isinstance(getattr(error, "cause", None), ApiError):
                raise
            await asyncio.sleep(0.5)
    return 0


async def on_all_nodes(fault: Fault, kube: HttpKube) -> Fault:
    """A drain of a node without pods evicts nothing, so that nothing is refused."""
    if not isinstance(fault, NodeDrain):
        return fault
    nodes = (await kube.list(NODE, label_selector=fault.nodes.selector)).items
    return fault.model_copy(update={"nodes": fault.nodes.model_copy(update={"count": len(nodes)})})


async def refused_without(
    cluster: Cluster,
    kube: HttpKube,
    account: Connection,
    fault: Fault,
    needs: Sequence[Need],
    taken: Need,
    folder: Path,
) -> None:
    """Each verb taken away is named by the question before the run; of those that change things the server says so."""
    for verb in taken.verbs:
        less = without(needs, taken, verb)
        if any(verb in n.verbs and (n.resource, n.subresource) == (taken.resource, taken.subresource) for n in less):
            continue  # another need brings it along
        await cluster.give(less)
        await cluster.until(kube, (taken,), lambda found: bool(found))
        lacking = await missing(kube, needs)
        assert lacking == [f"{verb} {taken.plural}{f' in {taken.namespace}' if taken.namespace else ''}"]
        if verb in ("create", "patch", "delete"):
            own = Path(tempfile.mkdtemp(prefix=f"refused-{fault.name}-{verb}-", dir=folder))
            said = await forbidden(play(await on_all_nodes(fault, kube), account, own))
            assert f'cannot {verb} resource "{taken.plural}"' in said
