"""A run whose journal lies in the cluster as well is healed without its folder, by whoever has the right to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from chaos_world import ChaosRun, action, chaos_run, experiment, spot

from harness.clock import RunClock
from harness.errors import BadInput, ExitCode
from harness.faults.cluster_journal import ABOUT, KEPT_FILE, ClusterJournal
from harness.faults.heal import heal_all
from harness.faults.objects import RUN_LABEL, run_label
from harness.faults.undo import (
    UNDO_FILE,
    CancelInterruption,
    DeleteObjects,
    ObjectRef,
    RestoreFields,
    UndoJournal,
    undo_to_json,
)  # fmt: skip
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, DEPLOYMENT, LEASE, Json, NotFound
from harness.run.sweeping import Found, Leftover, find_runs, sweep_one
from harness.run.sweeping_cluster import cluster_of, sweep_cluster, sweep_journals
from harness.targets.base import CONNECTION_FILE, Connection

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "inference"}}
NS = "inference"
FAR_S = 1e6


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[ChaosRun]:
    """A real ``chaos run``, killed with an object and a spot notice standing."""
    (tmp_path / "extra.yaml").write_text(yaml.safe_dump(MANIFEST))
    with chaos_run(tmp_path) as run:
        run.prepare(experiment(action("apply_objects", after_s=0, manifest="extra.yaml"), spot(notice_s=FAR_S)))
        keep_in_cluster(run)
        run.start()
        run.until(lambda: run.stages().count("observed") == 2)
        assert run.process is not None
        run.process.kill()
        run.process.wait()
        yield run


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[ChaosRun]:
    """The same without the process."""
    with chaos_run(tmp_path) as run:
        run.prepare(experiment(spot()))
        keep_in_cluster(run)
        label = run_label(tmp_path)
        journal = UndoJournal(tmp_path, RunClock(0, 1.0))
        journal.before("apply_objects-1", DeleteObjects(label, (ObjectRef("v1", "ConfigMap", "extra", NS),)))
        labelled = MANIFEST | {"metadata": {"name": "extra", "labels": {RUN_LABEL: label}}}
        run.world.do(run.world.kube.create(CONFIG_MAP, labelled, NS))
        journal.before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
        run.world.do(_notice(run))
        asyncio.run(_keep(run))
        yield run


async def _notice(run: ChaosRun) -> None:
    run.world.cloud.interrupt("i-spot-1", FAR_S)


async def _keep(run: ChaosRun) -> None:
    connection = Connection.read(run.folder / CONNECTION_FILE)
    async with HttpKube(connection.kubeconfig) as kube:
        await ClusterJournal(kube, connection, run.folder).keep()


def keep_in_cluster(run: ChaosRun) -> None:
    path = run.folder / CONNECTION_FILE
    connection = Connection.read(path)
    connection = replace(connection, undo_in_cluster=True, fingerprint=asyncio.run(fingerprint(connection)))
    connection.write(path)


async def fingerprint(connection: Connection) -> str:
    async with HttpKube(connection.kubeconfig) as kube:
        return await kube.fingerprint()


def kept(run: ChaosRun) -> list[Json]:
    return list(run.world.do(run.world.kube.list(CONFIG_MAP, NS, label_selector="gpu-harness.dev/undo=journal")).items)


def change(run: ChaosRun, of: Callable[[dict[str, Any]], Any]) -> None:
    """Somebody writes something else into the journal in the cluster."""
    found = kept(run)[0]
    data = dict(found["data"])
    of(data)
    run.world.do(run.world.kube.update(CONFIG_MAP, found | {"data": data}))


def swept(run: ChaosRun, *, heal: bool = True) -> list[Leftover]:
    return asyncio.run(sweep_cluster(Connection.read(run.folder / CONNECTION_FILE), heal=heal))


def there(run: ChaosRun, name: str) -> bool:
    try:
        run.world.do(run.world.kube.get(CONFIG_MAP, name, NS))
    except NotFound:
        return False
    return True


def test_another_machine_heals_without_the_folder_and_the_second_sweep_finds_nothing(killed: ChaosRun) -> None:
    connection = Connection.read(killed.folder / CONNECTION_FILE)
    (killed.folder / UNDO_FILE).rename(killed.folder / "lost")
    assert len(kept(killed)) == 1 and len(kept(killed)[0]["data"][UNDO_FILE].splitlines()) == 2
    assert [left.found for left in swept(killed, heal=False)] == [Found.PENDING] and there(killed, "extra")
    said: list[str] = []
    assert sweep_journals(connection, heal=True, say=said.append) is ExitCode.PASS, said
    assert set(killed.world.states().values()) == {"running"} and not there(killed, "extra")
    assert kept(killed) == [] and swept(killed) == []
    assert sweep_journals(connection, heal=True, say=said.append) is ExitCode.PASS and "nothing is left" in said[-1]


def test_a_namespace_that_is_not_there_has_not_nothing_left(killed: ChaosRun) -> None:
    connection = replace(Connection.read(killed.folder / CONNECTION_FILE), namespace="inferense")
    with pytest.raises(BadInput, match="there is no namespace inferense"):
        asyncio.run(sweep_cluster(connection, heal=True))
    assert len(kept(killed)) == 1


def test_with_the_folder_the_journal_in_the_cluster_goes_as_well(dead: ChaosRun) -> None:
    assert (dead.folder / KEPT_FILE).exists()
    assert asyncio.run(sweep_one(dead.folder, heal=True)).found is Found.HEALED
    assert kept(dead) == [] and list(find_runs([dead.folder])) == []


def lose_all(lines: list[str]) -> list[str]:
    return []


def garble_the_first(lines: list[str]) -> list[str]:
    return ["\0" * 40 + "\n", *lines[1:]]


def number_twice(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace('"seq":2', '"seq":1')]


@pytest.mark.parametrize("lose", [lose_all, garble_the_first, number_twice])
def test_a_journal_that_lost_lines_does_not_take_them_away_in_the_cluster(
    dead: ChaosRun, lose: Callable[[list[str]], list[str]]
) -> None:
    """What is left of a disk that was full, or of a machine that lost its power."""
    file = dead.folder / UNDO_FILE
    file.write_text("".join(lose(file.read_text().splitlines(keepends=True))))
    left = asyncio.run(sweep_one(dead.folder, heal=True))
    said = "\n".join(left.lines)
    assert left.found is Found.LEFT and "gpu-harness sweep --target" in said, said
    assert len(kept(dead)) == 1
    assert [left.found for left in swept(dead)] == [Found.HEALED], "and from there all is healed"
    assert set(dead.world.states().values()) == {"running"} and not there(dead, "extra") and kept(dead) == []


def cut(data: dict[str, Any]) -> None:
    del data[UNDO_FILE]


def garble(data: dict[str, Any]) -> None:
    data[UNDO_FILE] += "x\n"


@pytest.mark.parametrize(("spoil", "healed"), [(cut, False), (garble, True)])
def test_a_journal_in_the_cluster_that_nobody_can_read_is_kept_for_people(
    dead: ChaosRun, spoil: Callable[[dict[str, Any]], Any], healed: bool
) -> None:
    change(dead, spoil)
    (left,) = swept(dead)
    assert left.found is Found.LEFT and UNDO_FILE in "\n".join(left.lines), left.lines
    assert there(dead, "extra") is not healed and len(kept(dead)) == 1


def test_one_that_is_held_by_a_finalizer_stays_until_it_is_gone(dead: ChaosRun) -> None:
    patch = dead.world.kube.patch
    dead.world.do(patch(CONFIG_MAP, "extra", {"metadata": {"finalizers": ["example.com/hold"]}}, NS))
    (left,) = swept(dead)
    assert left.found is Found.LEFT and "waits for its finalizers example.com/hold" in "\n".join(left.lines)
    assert "kubectl delete configmap extra" in "\n".join(left.lines) and len(kept(dead)) == 1
    dead.world.do(patch(CONFIG_MAP, "extra", {"metadata": {"finalizers": None}}, NS))
    assert [left.found for left in swept(dead)] == [Found.HEALED] and kept(dead) == []


def of_another_cluster(data: dict[str, Any]) -> None:
    data[ABOUT] = json.dumps(json.loads(data[ABOUT]) | {"fingerprint": "another"})


def of_nobody(data: dict[str, Any]) -> None:
    data[ABOUT] = '{"target": 1}'


@pytest.mark.parametrize(("forge", "why"), [(of_another_cluster, "uid another"), (of_nobody, "nobody can read")])
def test_what_is_not_of_this_cluster_or_of_no_run_is_refused(
    dead: ChaosRun, forge: Callable[[dict[str, Any]], Any], why: str
) -> None:
    change(dead, forge)
    (left,) = swept(dead)
    assert left.found is Found.LEFT and "refused" in left.lines[0] and why in left.lines[0]
    assert there(dead, "extra") and len(kept(dead)) == 1


def test_fields_that_the_harness_never_wrote_are_not_restored_whatever_a_journal_says(dead: ChaosRun) -> None:
    replicas = {"spec": {"replicas": 2}}
    undo = undo_to_json(
        RestoreFields(ObjectRef("apps/v1", "Deployment", "llm", NS), replicas, {"spec": {"replicas": 0}})
    )

    def forge(data: dict[str, Any]) -> None:
        line = {"seq": 9, "t_ns": 0, "fault_id": "bad_image-1", "op": "planned", "undo": undo}
        data[UNDO_FILE] += json.dumps(line) + "\n"

    change(dead, forge)
    (left,) = swept(dead)
    assert left.found is Found.LEFT and "gpu-harness never wrote it" in "\n".join(left.lines)
    assert dead.world.do(dead.world.kube.get(DEPLOYMENT, "llm", NS))["spec"]["replicas"] == 2
    assert not there(dead, "extra")


def test_a_run_that_is_at_work_on_another_machine_is_left_alone(dead: ChaosRun) -> None:
    spec = {
        "holderIdentity": f"another-host/7/1/{dead.folder.resolve()}", "renewTime": "2999-01-01T00:00:00.000000Z",
        "leaseDurationSeconds": 60,
    }  # fmt: skip
    dead.world.do(dead.world.kube.create(LEASE, {"metadata": {"name": "gpu-harness", "namespace": NS}, "spec": spec}))
    (left,) = swept(dead)
    assert left.found is Found.ALIVE and "another-host/7" in left.lines[0] and there(dead, "extra")


def test_a_stopped_process_of_another_machine_is_named_not_signalled(dead: ChaosRun) -> None:
    def forge(data: dict[str, Any]) -> None:
        data[ABOUT] = json.dumps(json.loads(data[ABOUT]) | {"host": "another-host"})
        undo = {"kind": "resume_process", "pid": 1, "start_ticks": 1}
        data[UNDO_FILE] += (
            json.dumps({"seq": 9, "t_ns": 0, "fault_id": "pause_load-1", "op": "planned", "undo": undo}) + "\n"
        )

    change(dead, forge)
    (left,) = swept(dead)
    assert left.found is Found.LEFT and "a process of another-host" in "\n".join(left.lines)
    assert "kill -CONT 1" in "\n".join(left.lines)


def test_no_change_is_made_that_could_not_be_written_down_first(tmp_path: Path) -> None:
    (tmp_path / "extra.yaml").write_text(yaml.safe_dump(MANIFEST))
    with chaos_run(tmp_path) as run:
        run.prepare(experiment(spot(notice_s=FAR_S)))
        keep_in_cluster(run)
        path = run.folder / CONNECTION_FILE
        replace(Connection.read(path), namespace="not-there").write(path)
        run.start()
        run.wait()
        assert "the undo journal could not be kept in the cluster" in run.log
        assert set(run.world.states().values()) == {"running"}, "the notice went out all the same"


async def test_the_journal_on_disk_heals_where_the_one_in_the_cluster_is_gone(dead: ChaosRun) -> None:
    name = kept(dead)[0]["metadata"]["name"]
    dead.world.do(dead.world.kube.delete(CONFIG_MAP, name, NS))
    assert (await heal_all(dead.folder, Connection.read(dead.folder / CONNECTION_FILE))).clean


@pytest.mark.parametrize(
    ("target", "context", "why"),
    [("kubeconfig", "other", "--context says 'other'"), ("embeded", "embedded", "there is no target")],
)
def test_the_cluster_is_pinned_by_its_context(tmp_path: Path, target: str, context: str, why: str) -> None:
    (tmp_path / "kubeconfig").write_text("current-context: embedded\n")
    with pytest.raises(BadInput, match=why):
        cluster_of(target, tmp_path / "kubeconfig", context, NS)
