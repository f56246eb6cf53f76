"""What is refused of a run in a cluster of others before anybody looks at it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import Store, make_app
from harness.clock import RunClock, monotonic_ns
from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode, GuardRefused, HarnessError
from harness.faults.fault import fidelity_on, why_unsupported
from harness.faults.fidelity import KUBECONFIG, NOT_BUILT, Fidelity
from harness.faults.heal import open_ground
from harness.faults.registry import FAULTS
from harness.kube.port import NAMESPACE
from harness.targets.base import Connection

ROOT = Path(__file__).parents[3]
EXPERIMENT = ROOT / "tests" / "controlplane" / "foreign" / "llm-loses-pods.yaml"
SHIPPED = ROOT / "experiments"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Of a cluster at an address where nobody listens."""
    path = tmp_path / "kubeconfig"
    raw = {
        "apiVersion": "v1", "kind": "Config", "current-context": "prod",
        "clusters": [{"name": "prod", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "prod", "user": {}}],
        "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(raw))
    return path


def run(experiment: Path, *args: object) -> ExitCode:
    return run_command_line(["run", str(experiment), *map(str, args)])


def refused(kubeconfig: Path, experiment: Path, *args: object, url: str = "http://127.0.0.1:9") -> HarnessError:
    given = ("--url", url) if url else ()
    with pytest.raises(HarnessError) as told:
        run(experiment, "--target", "kubeconfig", "--kubeconfig", kubeconfig, "--context", "prod", *given, *args)
    return told.value


def test_the_context_must_be_named_and_be_the_current_one(kubeconfig: Path) -> None:
    with pytest.raises(BadInput, match="needs --kubeconfig and --context"):
        run(EXPERIMENT, "--target", "kubeconfig", "--kubeconfig", kubeconfig)
    with pytest.raises(BadInput, match="is 'prod', and --context says 'dev'"):
        run(EXPERIMENT, "--target", "kubeconfig", "--kubeconfig", kubeconfig, "--context", "dev")
    for flag in (("--yes",), ("--url", "http://a"), ("--context", "prod")):
        with pytest.raises(BadInput, match="are for a cluster of others"):
            run(EXPERIMENT, *flag)


def test_a_fault_without_a_form_in_the_api_is_refused_with_the_reason(kubeconfig: Path) -> None:
    error = refused(kubeconfig, SHIPPED / "metrics-blank-during-burst.yaml", "--time-scale", 1, "--yes")
    assert isinstance(error, GuardRefused)
    assert "metrics_outage-1 (unsupported: the Kubernetes API alone cannot do it" in error.message


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_every_fault_works_there_or_says_why_not(fault: type) -> None:
    if fidelity_on(fault, KUBECONFIG) is Fidelity.UNSUPPORTED:
        assert why_unsupported(fault, KUBECONFIG) != NOT_BUILT


def test_what_nobody_can_give_there_is_bad_input(kubeconfig: Path, tmp_path: Path) -> None:
    scaled = refused(kubeconfig, SHIPPED / "pods-deleted-during-burst.yaml")
    assert "knows only real time" in scaled.message and "--time-scale 1" in str(scaled.hint)
    assert "where the load is to be sent" in refused(kubeconfig, EXPERIMENT, url="").message
    assert "is not a service URL" in refused(kubeconfig, EXPERIMENT, url="gateway:80").message
    assert "a password in a URL" in refused(kubeconfig, EXPERIMENT, url="http://me:secret@gateway:80").message
    planted = (
        EXPERIMENT.read_text()
        .replace("preset: quick", "preset: quick\n      planted_bugs: [hpa_blind]")
        .replace("load: few.yaml", f"load: {EXPERIMENT.parent / 'few.yaml'}")
        .replace("[llm.yaml]", f"[{EXPERIMENT.parent / 'llm.yaml'}]")
    )
    (tmp_path / "planted.yaml").write_text(planted)
    assert "nobody can plant hpa_blind" in refused(kubeconfig, tmp_path / "planted.yaml").message


def test_a_cluster_that_does_not_answer_is_no_pass(kubeconfig: Path) -> None:
    error = refused(kubeconfig, EXPERIMENT)
    assert "does not answer" in error.message and error.exit_code is ExitCode.HARNESS_ERROR


def test_up_starts_none_of_others() -> None:
    with pytest.raises(BadInput, match="is a cluster that is there already"):
        run_command_line(["up", "--target", "kubeconfig"])


async def test_who_makes_another_context_current_leads_no_fault_and_no_undo_astray(tmp_path: Path) -> None:
    runners, uids = [], []
    raw: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}]}
    raw |= {"current-context": "prod", "clusters": [], "contexts": []}
    try:
        for seed, name in enumerate(("prod", "staging")):
            store = Store(WallClock(datetime.now(UTC)), Random(seed), window=50)
            runner = web.AppRunner(make_app(store, bookmark_s=60))
            runners.append(runner)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            server = f"http://127.0.0.1:{runner.addresses[0][1]}"
            raw["clusters"].append({"name": name, "cluster": {"server": server}})
            raw["contexts"].append({"name": name, "context": {"cluster": name, "user": "u"}})
            uids.append(store.find(NAMESPACE, "", "kube-system").object["metadata"]["uid"])
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(raw))
        Connection(KUBECONFIG, kubeconfig, "http://s", None, "inference", 1.0, context="prod").write(
            tmp_path / "c.json"
        )
        kubeconfig.write_text(yaml.safe_dump(raw | {"current-context": "staging"}))
        connection = Connection.read(tmp_path / "c.json")
        async with open_ground(tmp_path, connection, RunClock(monotonic_ns(), 1.0), healing=True) as ground:
            found = await ground.kube.get(NAMESPACE, "kube-system")
        assert uids[0] != uids[1] and found["metadata"]["uid"] == uids[0]
    finally:
        for runner in runners:
            await runner.cleanup()
