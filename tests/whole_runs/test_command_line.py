"""The real command: its five exit codes, one clear error for bad input, and nothing started for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from running import COMMAND, ROOT, command, finish, newest_run, processes_naming, start

from harness.run.preparing import prepare

DEMO = "experiments/spot-interruption-during-burst.yaml"
SHORT = Path(__file__).parent / "short"
MADE_FOR = {"embedded": "embedded", "kind": "kind", "nodes": "node", "stack": "controlplane"}
"""Folders of experiments that ask for what other targets have not got; the first that an experiment lies in."""


def copy_of_short(tmp_path: Path, **edits: str) -> Path:
    """The short experiment's folder with texts replaced (``old=new`` per file stem)."""
    folder = tmp_path / "experiment"
    folder.mkdir()
    for file in SHORT.iterdir():
        text = file.read_text()
        if edit := edits.get(file.stem):
            old, _, new = edit.partition(" => ")
            assert old in text
            text = text.replace(old, new, 1)
        (folder / file.name).write_text(text)
    return folder / "experiment.yaml"


def test_help_names_the_commands_and_the_exit_codes() -> None:
    ended = command("--help")
    assert ended.code == 0
    for word in ("run", "plan", "validate", "check", "report", "up", "down", "unknown", "64", "70"):
        assert word in ended.out


@pytest.mark.parametrize("args", [("runn",), ("run",), ("run", DEMO, "--sede", "1"), ("run", DEMO, "--seed", "many")])
def test_a_usage_error_exits_64_with_one_message(args: tuple[str, ...]) -> None:
    ended = command(*args)
    assert ended.code == 64
    assert "Traceback" not in ended.out
    assert ended.out.startswith("gpu-harness: ")


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param(
            {"experiment": "rollbacks: => rollback:"}, ("rollback", "rollbacks", "experiment.yaml:"), id="key"
        ),
        pytest.param({"experiment": "notice_s: 80 => notice_s: 80s"}, ("notice_s", "80s"), id="unit"),
        pytest.param({"experiment": "manifest: extra.yaml => manifest: '${nowhere}'"}, ("nowhere",), id="variable"),
        pytest.param({"experiment": "load: load.yaml => load: gone.yaml"}, ("gone.yaml",), id="missing-profile"),
        pytest.param({"load": "rate_per_s: 5 => rate_per_s: fast"}, ("rate_per_s", "load.yaml:"), id="profile-value"),
        pytest.param({"workload": "kind: Service => kind: Servise"}, ("Servise", "workload.yaml:"), id="manifest-kind"),
        pytest.param({"experiment": "capacity-type=spot => capacity-type=sport"}, ("sport",), id="no-such-node"),
    ],
)
def test_a_mistake_in_a_file_is_one_clear_error_and_starts_nothing(
    edits: dict[str, str], expected: tuple[str, ...], tmp_path: Path
) -> None:
    experiment = copy_of_short(tmp_path, **edits)
    reports = tmp_path / "reports"
    ended = command("run", str(experiment), "--reports", str(reports))
    assert ended.code == 64, ended.out
    assert "Traceback" not in ended.out
    for text in expected:
        assert text in ended.out
    assert not reports.exists()
    assert processes_naming(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("edit", "code", "says"),
    [
        (r'title: A => title: "\e[31m\aA', 0, "[31m"),
        (r'description: Every => tags: "\e[31m\a"' + "\ndescription: Every", 64, "but must be a list"),
        (r'title: A => title: "\uD800 A', 64, r"experiment.yaml:1: holds \ud800, which is half a character"),
        (f"manifests: [workload.yaml] => manifests: [{'x' * 300}]", 64, "experiment.yaml:"),
    ],
)
def test_what_stands_in_a_file_cannot_lead_a_terminal_astray(tmp_path: Path, edit: str, code: int, says: str) -> None:
    experiment = copy_of_short(tmp_path, experiment=edit)
    if 'title: "' in edit:
        experiment.write_text(experiment.read_text().replace("of the harness itself", 'of the harness itself"'))
    ended = command("plan", str(experiment))
    assert ended.code == code and says in ended.out, ended.out
    assert "\x1b" not in ended.out and "\a" not in ended.out


def test_an_unreadable_trace_row_names_file_and_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50,many,1\n"
    )
    ended = command("plan", str(SHORT / "experiment.yaml"), "--trace", str(trace))
    assert ended.code == 64
    assert "trace.csv:3" in ended.out and "many" in ended.out


def test_a_trace_of_another_kind_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"question": "how long is a stream?", "answer": "as long as it takes"}\n')
    ended = command("run", str(SHORT / "experiment.yaml"), "--trace", str(trace), "--reports", str(tmp_path / "r"))
    assert ended.code == 64
    assert "trace.jsonl" in ended.out and "Traceback" not in ended.out


def test_reports_that_cannot_be_written_are_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where a folder is wanted")
    ended = command("run", str(SHORT / "experiment.yaml"), "--reports", str(tmp_path / "reports"))
    assert ended.code == 64
    assert "reports" in ended.out and "Traceback" not in ended.out
    assert processes_naming(str(tmp_path)) == []


def test_the_plan_has_the_same_bytes_for_the_same_seed_and_touches_nothing(tmp_path: Path) -> None:
    first, second, other = (command("plan", DEMO, "--json", "--seed", s) for s in ("7", "7", "8"))
    assert first.code == 0
    assert first.out == second.out != other.out


def test_validate_accepts_every_shipped_experiment() -> None:
    ended = command("validate", str(DEMO))
    assert ended.code == 0 and "valid" in ended.out
    for experiment in sorted((ROOT / "experiments").rglob("*.yaml")):
        if not {"manifests", "load", "accept"} & set(experiment.parts):
            made_for = [target for folder, target in MADE_FOR.items() if folder in experiment.parts]
            prepare(experiment, seed=1, target=next(iter(made_for), "embedded"), cut=None)


@pytest.mark.parametrize("name", ["check", "report"])
def test_a_folder_that_is_no_run_is_bad_input(name: str, tmp_path: Path) -> None:
    ended = command(name, str(tmp_path))
    assert ended.code == 64
    assert "history" in ended.out


@pytest.mark.parametrize("args", [("up",), ("run", str(SHORT / "experiment.yaml"), "--reports", "reports")])
def test_a_target_that_cannot_come_up_is_a_harness_error(args: tuple[str, ...], tmp_path: Path) -> None:
    """The environment ends the cluster's process as soon as it starts."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'fakes.world' in sys.orig_argv:\n"
        "    os.write(2, b'no room for a cluster')\n"
        "    os._exit(3)\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    ended = finish(start(*args, cwd=tmp_path, env=env), tmp_path / "reports")
    assert ended.code == 70, ended.out
    assert "did not come up" in ended.out and "Traceback" not in ended.out
    assert args[0] == "up" or "no room for a cluster" in ended.out
    assert processes_naming(str(tmp_path)) == []


def test_a_reader_that_leaves_changes_neither_the_run_nor_its_answer(tmp_path: Path) -> None:
    """As `| head -1` does: the exit code 1 of a broken pipe would have said: fail."""
    process = start("run", str(SHORT / "experiment.yaml"), "--reports", str(tmp_path / "reports"))
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=240) == 2
    folder = newest_run(tmp_path / "reports")
    assert folder is not None and (folder / "report.html").exists() and (folder / "verdict.json").exists()
    assert processes_naming(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("where", "code", "says"),
    [
        pytest.param("| (sleep 2)", 0, "", id="nobody-reads"),
        pytest.param("> /dev/full", 70, "No space left", id="disk-full"),
        pytest.param(">&-", 0, "", id="closed"),
    ],
)
def test_output_that_cannot_be_written(where: str, code: int, says: str) -> None:
    """A plan that nobody wants to read is no error; one that is cut off without a word would be taken for the plan."""
    line = f"{shlex.join(COMMAND)} plan {DEMO} --json {where}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr


def test_a_disk_that_is_full_is_told_without_a_traceback(tmp_path: Path) -> None:
    """A file may not grow beyond 4 KiB here, which stands for a disk with as much room."""
    line = f"ulimit -f 4; {shlex.join(COMMAND)} run {SHORT / 'experiment.yaml'} --reports {tmp_path / 'reports'}"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 70, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "the machine refused" in done.stderr
    assert processes_naming(str(tmp_path)) == []


def test_version() -> None:
    assert command("--version").out.startswith("gpu-harness 0.")


def test_up_serves_kubectl_and_down_leaves_nothing(tmp_path: Path) -> None:
    try:
        up = command("up", str(SHORT / "experiment.yaml"), cwd=tmp_path)
        assert up.code == 0, up.out
        kubeconfig = tmp_path / ".gpu-harness" / "kubeconfig"
        assert str(kubeconfig) in up.out
        again = command("up", cwd=tmp_path)
        assert again.code == 64 and "up already" in again.out
        seen = (
            subprocess.run(
                ["kubectl", "get", "nodes,pods,deploy,hpa,pdb", "-A"],
                env={**os.environ, "KUBECONFIG": str(kubeconfig)},
                capture_output=True,
                text=True,
                timeout=60,
            )
            if _kubectl()
            else None
        )
        if seen is not None:
            assert seen.returncode == 0, seen.stderr
            assert "spot-1" in seen.stdout and "deployment.apps/llm" in seen.stdout
    finally:
        down = command("down", cwd=tmp_path)
    assert down.code == 0 and "stopped" in down.out
    assert "no cluster" in command("down", cwd=tmp_path).out
    assert processes_naming(str(tmp_path)) == []


def _kubectl() -> bool:
    return subprocess.run(["bash", "-c", "command -v kubectl"], capture_output=True).returncode == 0


ENDS_LATE = """
import os, signal, sys
from harness.cli import main

class Late:
    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.Signals[sys.argv.pop()]):
        kill(me, number)  # Python is on its way out: its own handlers are gone

sys.modules["late"] = Late()
main()
"""


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_a_signal_at_the_very_end_does_not_change_the_exit_code(name: str) -> None:
    command = [sys.executable, "-c", ENDS_LATE, "validate", str(ROOT / "no-such-file.yaml"), name]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 64, ended.stderr
