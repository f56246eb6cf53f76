"""What a killed run left is found and healed, by whoever comes later, once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from chaos_world import ChaosRun, action, chaos_run, experiment, spot

from harness.clock import RunClock
from harness.errors import ExitCode, TargetError
from harness.faults.objects import RUN_LABEL
from harness.faults.undo import (
    UNDO_FILE,
    About,
    CancelInterruption,
    DeleteObjects,
    NothingLeft,
    ObjectRef,
    UndoJournal,
)
from harness.kube.port import CONFIG_MAP, LEASE, NotFound
from harness.processes.lock import hold_lock
from harness.run.lease import RunLease
from harness.run.sweeping import Found, find_runs, sweep
from harness.targets.base import CONNECTION_FILE, Connection

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "inference"}}
FAR_S = 1e6


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[ChaosRun]:
    """A real ``chaos run`` that was killed with two changes standing: a spot notice, and an object of its own."""
    (tmp_path / "extra.yaml").write_text(yaml.safe_dump(MANIFEST))
    with chaos_run(tmp_path) as run:
        run.prepare(experiment(action("apply_objects", after_s=0, manifest="extra.yaml"), spot(notice_s=FAR_S)))
        run.start()
        run.until(lambda: run.stages().count("observed") == 2)
        assert run.process is not None
        run.process.kill()
        run.process.wait()
        yield run


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[ChaosRun]:
    """The same changes and journal, without the process that made them."""
    with chaos_run(tmp_path) as run:
        run.prepare(experiment(spot()))
        journal = UndoJournal(tmp_path, RunClock(0, 1.0))
        journal.before("apply_objects-1", DeleteObjects("r", (ObjectRef("v1", "ConfigMap", "extra", "inference"),)))
        labelled = MANIFEST | {"metadata": {"name": "extra", "labels": {RUN_LABEL: "r"}}}
        run.world.do(run.world.kube.create(CONFIG_MAP, labelled, "inference"))
        journal.before("spot_interruption-1", CancelInterruption("i-spot-1", "spot-1"))
        run.world.do(interrupt(run))
        yield run


async def interrupt(run: ChaosRun) -> None:
    run.world.cloud.interrupt("i-spot-1", FAR_S)


@pytest.fixture
def said() -> list[str]:
    return []


def extra_exists(run: ChaosRun) -> bool:
    try:
        run.world.do(run.world.kube.get(CONFIG_MAP, "extra", "inference"))
    except NotFound:
        return False
    return True


def rewrite(run: ChaosRun, change: Callable[[Connection], Connection]) -> None:
    path = run.folder / CONNECTION_FILE
    change(Connection.read(path)).write(path)


def test_it_heals_what_the_dead_left_and_then_there_is_nothing(killed: ChaosRun, said: list[str]) -> None:
    dead = killed
    assert len(dead.undo.pending) == 2 and "interrupting" in dead.world.states().values()
    assert list(find_runs([dead.folder])) == [dead.folder]
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS, said
    assert set(dead.world.states().values()) == {"running"} and not extra_exists(dead)
    assert said[0].endswith(": healed") and dead.undo.pending == ()
    assert list(find_runs([dead.folder])) == []
    assert sweep([], heal=True, say=said.append) is ExitCode.PASS and "nothing is left" in said[-1]


def test_a_list_changes_nothing_and_gives_the_commands(dead: ChaosRun, said: list[str]) -> None:
    before = (dead.folder / UNDO_FILE).read_bytes()
    assert sweep([dead.folder], heal=False, say=said.append) is ExitCode.FAIL
    assert (dead.folder / UNDO_FILE).read_bytes() == before and extra_exists(dead)
    text = "\n".join(said)
    assert "pending" in text and "curl -X DELETE" in text and "kubectl delete configmap extra -n inference" in text


def test_a_cluster_of_ours_that_has_ended_took_everything_with_it(dead: ChaosRun, said: list[str]) -> None:
    dead.world.close_servers()
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS, said
    assert "its cluster has ended" in "\n".join(said)


def test_a_cluster_of_ours_whose_api_server_alone_is_away_has_not_ended(dead: ChaosRun, said: list[str]) -> None:
    """A fault may have stopped it, and those who would start it again still answer."""
    dead.world.do(dead.world._runners[0].cleanup())
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert [entry.fault_id for entry in dead.undo.pending] == ["apply_objects-1"], said
    assert set(dead.world.states().values()) == {"running"}, "what needs no API server is undone"


def test_on_another_machine_nobody_can_tell_whether_the_cluster_has_ended(dead: ChaosRun, said: list[str]) -> None:
    """A folder that two machines share: what is 127.0.0.1 there is somebody else here."""
    rewrite(dead, lambda connection: replace(connection, host="another-host"))
    dead.world.close_servers()
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert "its cluster is on another-host: sweep there" in "\n".join(said) and len(dead.undo.pending) == 2


@pytest.mark.parametrize("key", ["target", "kubeconfig", "service_url", "control_url", "namespace", "time_scale"])
@pytest.mark.parametrize("junk", [-1, ["x"], {"a": 1}, True])
def test_a_connection_with_nonsense_in_it_is_one_line(tmp_path: Path, key: str, junk: object) -> None:
    connection = Connection("embedded", tmp_path / "k", "http://s", "http://c", "inference", 60.0)
    path = tmp_path / CONNECTION_FILE
    connection.write(path)
    assert Connection.read(path) == connection
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: junk}))
    with pytest.raises(TargetError, match="no connection to read in"):
        Connection.read(path)


def test_a_foreign_cluster_that_does_not_answer_is_not_taken_for_gone(dead: ChaosRun, said: list[str]) -> None:
    rewrite(dead, lambda connection: replace(connection, target="kubeconfig"))
    dead.world.close_servers()
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert len(dead.undo.pending) == 2 and "by hand" in "\n".join(said)


def test_another_cluster_at_the_same_address_is_refused(dead: ChaosRun, said: list[str]) -> None:
    rewrite(dead, lambda connection: replace(connection, target="kubeconfig", fingerprint="of-yesterday"))
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert re.search("refused: another cluster answers there.*of-yesterday", "\n".join(said))
    assert extra_exists(dead) and len(dead.undo.pending) == 2


def test_a_run_that_is_alive_heals_by_itself(dead: ChaosRun, said: list[str]) -> None:
    held = hold_lock(dead.folder)
    assert held is not None and hold_lock(dead.folder) is None
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS
    assert said[0].endswith(f": {Found.ALIVE}") and extra_exists(dead)
    os.close(held)
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS
    assert not extra_exists(dead)


def test_a_dead_run_that_only_holds_the_lease_is_found_and_lets_go_of_it(dead: ChaosRun, said: list[str]) -> None:
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS
    lease = RunLease(dead.world.kube, "inference", "another-host/7/1/x", run_dir=dead.folder)
    dead.world.do(lease.acquire())
    assert list(find_runs([dead.folder])) == [dead.folder]
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS, said
    with pytest.raises(NotFound):
        dead.world.do(dead.world.kube.get(LEASE, "gpu-harness", "inference"))
    assert list(find_runs([dead.folder])) == []


def test_a_line_that_nobody_can_read_is_never_taken_for_healed(dead: ChaosRun, said: list[str]) -> None:
    with (dead.folder / UNDO_FILE).open("a") as journal:
        journal.write('{"seq": "x"}\n')
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert f"{UNDO_FILE}:" in "\n".join(said)
    assert not extra_exists(dead)


def test_what_another_version_calls_its_faults_keeps_nobody_from_healing(dead: ChaosRun, said: list[str]) -> None:
    journal = UndoJournal(dead.folder, RunClock(0, 1.0))
    for n, about in enumerate(
        (About("no_such_fault", {}, ("x",)), About("spot_interruption", {"of": "an old version"}, ("spot-1",)))
    ):
        journal.before(f"old-{n}", NothingLeft("it was like this"), about)
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.PASS, said
    assert not extra_exists(dead) and dead.undo.pending == ()


def test_a_folder_that_is_broken_keeps_no_other_from_being_healed(dead: ChaosRun, said: list[str]) -> None:
    broken = dead.folder / "a-broken-one"
    (broken / UNDO_FILE).mkdir(parents=True)
    found = list(find_runs([dead.folder]))
    assert set(found) == {broken, dead.folder}
    assert sweep(sorted(found, reverse=True), heal=True, say=said.append) is ExitCode.FAIL
    assert "it cannot be read: Is a directory" in "\n".join(said) and not extra_exists(dead)


def test_without_a_connection_it_says_which_changes_stand(dead: ChaosRun, said: list[str]) -> None:
    (dead.folder / CONNECTION_FILE).unlink()
    assert sweep([dead.folder], heal=True, say=said.append) is ExitCode.FAIL
    assert "nobody knows which cluster" in "\n".join(said) and "by hand" in "\n".join(said)
