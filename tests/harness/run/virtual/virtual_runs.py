"""Whole runs in virtual time, in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.history.reader import History
from harness.run.judging import judge_run, write_verdict
from harness.run.preparing import prepare
from harness.run.progress import Progress
from harness.run.rundir import RunDir, create, keep_spec
from harness.run.view import PlainView
from harness.run.virtual.loop import VirtualLoop
from harness.run.virtual.run import VirtualRun
from harness.run.virtual.script import read_script
from harness.verdict import Finding, Verdict

ROOT = Path(__file__).resolve().parents[4]
DEMO = ROOT / "experiments" / "spot-interruption-during-burst.yaml"
SHORT = ROOT / "tests" / "whole_runs" / "short" / "experiment.yaml"


@dataclass(frozen=True)
class Ran:
    run_dir: RunDir
    progress: Progress
    verdict: Verdict
    simulated_s: float

    @property
    def history(self) -> History:
        return History.load(self.run_dir.path)

    def finding(self, check: str) -> Finding:
        return next(f for f in self.verdict.findings if f.check == check)

    def status(self, check: str) -> str:
        finding = self.finding(check)
        return (finding.judged or finding.status).value


def run_virtually(
    experiment: Path,
    reports: Path,
    *,
    seed: int = 1,
    time_scale: float | None = None,
    meanwhile: Callable[[VirtualRun], None] | None = None,
) -> Ran:
    """``meanwhile`` is called once the loop runs, before anything else."""
    prepared = prepare(experiment, seed=seed, target="embedded", cut=None, virtual=True, time_scale=time_scale)
    script = read_script(prepared.experiment)
    run_dir = create(reports, experiment)
    spec_path = keep_spec(run_dir, experiment, prepared.experiment.files)
    run_dir.plan.write_text(prepared.plan.to_json())
    prepared.plan.schedule.write(run_dir.schedule)

    async def run() -> tuple[VirtualRun, Progress]:
        virtual = VirtualRun(prepared, script, run_dir, PlainView(), "repeat me", spec_path)
        if meanwhile is not None:
            meanwhile(virtual)
        return virtual, await virtual.run()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        virtual, progress = runner.run(run())
    verdict = judge_run(run_dir, History.load(run_dir.path))
    write_verdict(run_dir, verdict)
    return Ran(run_dir, progress, verdict, virtual.simulated_s)


def variant(experiment: Path, folder: Path, **edits: str) -> Path:
    """A copy beside the original's files, with texts replaced (``key="old => new"``)."""
    text = experiment.read_text()
    for edit in edits.values():
        old, _, new = edit.partition(" => ")
        assert old in text
        text = text.replace(old, new, 1)
    for name in ("manifests/", "../loadprofiles/"):
        text = text.replace(f"{name}", f"{(experiment.parent / name).resolve()}/")
    file = folder / experiment.name
    file.write_text(text)
    return file
