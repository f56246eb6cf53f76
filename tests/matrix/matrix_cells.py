"""One cell of the matrix: an experiment with a planted bug and a seed, run to its verdict in virtual time."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matrix_mishaps import Mishap
from matrix_perturb import flips, ways
from matrix_row import ROOT, Row

from harness.history.reader import History
from harness.run.judging import judge_run, write_verdict
from harness.run.preparing import prepare
from harness.run.progress import Progress
from harness.run.rundir import RunDir, create, keep_spec
from harness.run.view import PlainView
from harness.run.virtual.loop import VirtualLoop
from harness.run.virtual.run import VirtualRun
from harness.run.virtual.script import read_script
from harness.spec.experiment import load_experiment
from harness.verdict import Role, Status, Verdict

NO_BUGS = "planted_bugs: []"


@dataclass(frozen=True, slots=True)
class Said:
    """What one check answered, before and after the merge rule."""

    check: str
    validity: bool
    status: str
    judged: str
    text: str
    """Sentence and story."""


@dataclass(frozen=True, slots=True)
class Cell:
    row: str
    seed: int
    status: str
    said: tuple[Said, ...]
    cpu_s: float
    flips: tuple[tuple[str, str, str], ...] = ()
    """Perturbation, check, and what it said: answers that turned into their opposite."""
    perturbed: int = 0
    """As how many worse recorders would have seen it the history was judged again."""
    sentence: str = ""
    """The verdict's own."""
    causes: tuple[str, ...] = ()
    """Each in one sentence, the root cause first."""

    def of(self, check: str, words: Sequence[str] = ()) -> Said | None:
        """What the check said; where it is asked for several times, what has the words."""
        own = [s for s in self.said if s.check == check]
        return next((s for s in own if all(word in s.text for word in words)), own[0] if own else None)

    @property
    def failed(self) -> tuple[str, ...]:
        """Checks whose fail counts."""
        return tuple(s.check for s in self.said if not s.validity and s.judged == Status.FAIL)

    @property
    def unsure(self) -> tuple[str, ...]:
        return tuple(s.check for s in self.said if s.status == Status.UNKNOWN or (s.validity and s.status != "pass"))


def run_cell(
    experiment: str,
    bugs: Sequence[str],
    name: str,
    seed: int,
    keep: Path | None = None,
    *,
    perturb: bool = False,
    mishap: Mishap | None = None,
) -> Cell:
    """``keep`` is where the run's folder stays; else it is thrown away."""
    began_s = time.process_time()
    folder = Path(tempfile.mkdtemp(prefix="verdict-matrix-"))
    try:
        copy = planted(ROOT / experiment, bugs, folder / "spec")
        run_dir = run(copy, seed, keep or folder)
        if mishap is not None:
            mishap(run_dir.path)
        history = History.load(run_dir.path)
        verdict = judge_run(run_dir, history)
        write_verdict(run_dir, verdict)
        done = cell(name, seed, verdict, time.process_time() - began_s)
        if not perturb:
            return done
        flipped = tuple(flips(history, load_experiment(copy).settings.checks, f"{name} {seed}"))
        return replace(done, flips=flipped, perturbed=ways(), cpu_s=time.process_time() - began_s)
    except Exception as error:  # a defect of ours, shown as one: the other cells go on
        return Cell(name, seed, f"crashed: {type(error).__name__}: {error}", (), time.process_time() - began_s)
    finally:
        shutil.rmtree(folder)


def cell(name: str, seed: int, verdict: Verdict, cpu_s: float) -> Cell:
    said = tuple(
        Said(f.check, f.role is Role.VALIDITY, f.status, f.judged or f.status, f"{f.sentence} {f.story}")
        for f in verdict.findings
    )
    causes = tuple(cause.sentence for cause in verdict.causes)
    return Cell(name, seed, verdict.status, said, cpu_s, sentence=verdict.sentence, causes=causes)


def planted(experiment: Path, bugs: Sequence[str], folder: Path) -> Path:
    """A working copy of the experiment and its files, with the bugs switched on."""
    copy = folder / keep_spec(RunDir(folder.parent), experiment, load_experiment(experiment).files)
    if bugs:
        text = copy.read_text()
        assert text.count(NO_BUGS) == 1, f"{experiment} must say `{NO_BUGS}` where a bug is to be planted"
        copy.write_text(text.replace(NO_BUGS, f"planted_bugs: [{', '.join(bugs)}]"))
    return copy


def run(experiment: Path, seed: int, reports: Path) -> RunDir:
    prepared = prepare(experiment, seed=seed, target="embedded", cut=None, virtual=True)
    run_dir = create(reports, experiment)
    spec_path = keep_spec(run_dir, experiment, prepared.experiment.files)
    run_dir.plan.write_text(prepared.plan.to_json())
    prepared.plan.schedule.write(run_dir.schedule)
    command = f"gpu-harness run {experiment} --virtual --seed {seed}"

    async def course() -> Progress:
        view = PlainView(io.StringIO())
        return await VirtualRun(prepared, read_script(prepared.experiment), run_dir, view, command, spec_path).run()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(course())
    return run_dir


def run_row(row: Row, seed: int, keep: Path | None = None, *, perturb: bool = False) -> Cell:
    return run_cell(row.experiment, row.bugs, row.name, seed, keep, perturb=perturb, mishap=row.mishap)
