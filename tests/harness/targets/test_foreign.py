"""What is refused of a run in a cluster of others before anybody looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode, GuardRefused, HarnessError
from harness.faults.fault import fidelity_on, why_unsupported
from harness.faults.fidelity import KUBECONFIG, NOT_BUILT, Fidelity
from harness.faults.registry import FAULTS

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
