"""Experiments as tests, for pytest: the fixture ``gpu_harness``, the marker of that name, and ``--gpu-harness``.

Light at import, since pytest imports it wherever the package is installed; a run brings along what it needs.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.signals import stop_signals

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from harness.history.reader import History
    from harness.verdict import Finding, Verdict

MARKER = "gpu_harness"
_BLOCK = "gpu-harness"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpu-harness", "experiments on a GPU inference cluster")
    group.addoption(
        "--gpu-harness", action="store_true", help="collect experiment files as tests, a finding each (virtual time)"
    )
    group.addoption(
        "--gpu-harness-real", action="store_true", help="run experiments on the embedded target, not in virtual time"
    )
    group.addoption("--gpu-harness-seed", type=int, default=1, help="the seed of runs that name none")
    group.addoption("--gpu-harness-reports", metavar="DIR", default="reports", help="where runs are kept: reports")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(experiment, seed=None, virtual=None): the experiment that the fixture gpu_run runs for this test",
    )


class NoSuchFinding(LookupError):
    """The experiment does not ask for that check."""


class HarnessRun:
    """A run that is over: its verdict, and its history as tables."""

    def __init__(self, folder: Path, verdict: Verdict) -> None:
        self.dir = folder
        self.verdict = verdict

    @property
    def report(self) -> Path:
        return self.dir / "report.html"

    @cached_property
    def history(self) -> History:
        """``.requests`` and ``.samples`` are pandas tables (docs/history.md); ``.objects`` and ``.faults`` events."""
        from harness.history.reader import History

        return History.load(self.dir)

    def finding(self, check: str) -> Finding:
        """Of a check that the experiment asks for, or of a validity check; the first where it asks twice."""
        found = next((f for f in self.verdict.findings if f.check == check), None)
        if found is None:
            known = ", ".join(dict.fromkeys(f.check for f in self.verdict.findings))
            raise NoSuchFinding(f"this run was not judged by {check!r}; it was by {known}")
        return found


@dataclass(frozen=True, slots=True)
class _Asked:
    experiment: Path
    seed: int
    virtual: bool
    time_scale: float | None


class Harness:
    """Runs experiments, each once per session: the same call gives the same run again."""

    def __init__(self, reports: Path, seed: int, virtual: bool) -> None:
        self._reports = reports
        self._seed = seed
        self._virtual = virtual
        self._done: dict[_Asked, HarnessRun] = {}

    def __call__(
        self,
        experiment: str | Path,
        *,
        seed: int | None = None,
        virtual: bool | None = None,
        time_scale: float | None = None,
    ) -> HarnessRun:
        """``time_scale`` is for virtual time only. Raises ``harness.errors.BadInput`` for a file that is wrong."""
        asked = _Asked(
            Path(experiment).resolve(),
            self._seed if seed is None else seed,
            self._virtual if virtual is None else virtual,
            time_scale,
        )
        if asked not in self._done:
            self._done[asked] = _run(asked, self._reports)
        return self._done[asked]


def _run(asked: _Asked, reports: Path) -> HarnessRun:
    from harness.run.preparing import prepare
    from harness.run.running import run_experiment, run_virtually, tell_end

    prepared = prepare(
        asked.experiment,
        seed=asked.seed,
        target="embedded",
        cut=None,
        virtual=asked.virtual,
        time_scale=asked.time_scale,
    )
    args = ["gpu-harness", "run", str(asked.experiment), *(["--virtual"] if asked.virtual else [])]
    args += ["--time-scale", f"{asked.time_scale:g}"] if asked.time_scale is not None else []
    with _signals_kept():
        begin = run_virtually if asked.virtual else run_experiment
        finished = begin(prepared, reports=reports, plain=True, args=args)
    tell_end(finished)  # pytest shows it with a test that fails
    if finished.progress.ended == "interrupted":
        raise KeyboardInterrupt
    return HarnessRun(finished.run_dir.path, finished.verdict)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """A run takes the signals by which people stop it; afterwards they are pytest's again."""
    before = {number: signal.getsignal(number) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_HARNESS = pytest.StashKey[Harness]()


def _harness(config: pytest.Config) -> Harness:
    if _HARNESS not in config.stash:
        config.stash[_HARNESS] = Harness(
            config.rootpath / config.getoption("--gpu-harness-reports"),
            config.getoption("--gpu-harness-seed"),
            not config.getoption("--gpu-harness-real"),
        )
    return config.stash[_HARNESS]


@pytest.fixture(scope="session")
def gpu_harness(request: pytest.FixtureRequest) -> Harness:
    """``gpu_harness("experiment.yaml", seed=3)`` runs it (once per session) and returns verdict and history."""
    return _harness(request.config)


@pytest.fixture
def gpu_run(request: pytest.FixtureRequest, gpu_harness: Harness) -> HarnessRun:
    """The run of the experiment that the test's marker names. A relative path is from the test's own folder."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or not marker.args:
        raise pytest.UsageError(f"{request.node.nodeid}: gpu_run needs @pytest.mark.{MARKER}(experiment)")
    return gpu_harness(request.path.parent / marker.args[0], **marker.kwargs)


# Experiment files as tests.


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not parent.config.getoption("--gpu-harness") or file_path.suffix not in (".yaml", ".yml", ".json"):
        return None
    try:
        text = file_path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    if _BLOCK not in text or "method" not in text:  # a manifest, a load profile, something else
        return None
    return ExperimentFile.from_parent(parent, path=file_path)


class ExperimentFile(pytest.File):
    """An experiment: a test for each check that it asks for, and for each validity check."""

    def collect(self) -> Iterator[pytest.Item]:
        from harness.checks.judge import VALIDITY
        from harness.spec.experiment import load_experiment

        experiment = load_experiment(self.path)
        names = [spec.name for spec in experiment.settings.checks]
        seen: dict[str, int] = {}
        for number, check in enumerate([*names, *VALIDITY]):
            seen[check] = seen.get(check, 0) + 1
            name = check if seen[check] == 1 else f"{check}-{seen[check]}"
            item: pytest.Item = FindingItem.from_parent(self, name=name, number=number)
            yield item

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        from harness.errors import HarnessError

        return str(excinfo.value) if isinstance(excinfo.value, HarnessError) else super().repr_failure(excinfo)


class NotPassed(Exception):
    """A finding that failed, or that is not known."""


class FindingItem(pytest.Item):
    """One finding of the run. The run itself happens with the first of them."""

    def __init__(self, *, number: int, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]  # pytest's own, handed through
        self._number = number

    def runtest(self) -> None:
        from harness.verdict import Status

        run = _harness(self.config)(self.path)
        finding = run.verdict.findings[self._number]
        if (finding.judged or finding.status) is not Status.PASS:
            raise NotPassed(_told(run, finding))

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        from harness.errors import HarnessError

        if isinstance(excinfo.value, NotPassed | HarnessError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


def _told(run: HarnessRun, finding: Finding) -> str:
    from harness.printable import line

    status = (finding.judged or finding.status).value
    because = f" (it counts as {status} because {line(finding.because)})" if finding.because else ""
    parts: Sequence[str] = (
        f"{finding.check}: {status}",
        line(finding.sentence) + because,
        line(finding.story, 6_000),
        f"report: {run.report}",
    )
    return "\n".join(part for part in parts if part)
