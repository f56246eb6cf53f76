"""The command ``run``: supervise, judge, report, and say how to repeat it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import typer

from harness.compare.baseline import Baseline
from harness.errors import ExitCode
from harness.history.reader import History
from harness.history.run_info import RunInfo
from harness.history.seal import seal
from harness.printable import line
from harness.processes.lock import hold_lock
from harness.run.judging import judge_run, print_verdict, report_run, write_verdict
from harness.run.preparing import Prepared
from harness.run.progress import Progress
from harness.run.provenance import repeat_command
from harness.run.rundir import RunDir, create, keep_spec
from harness.run.supervisor import Supervisor, stop_on_signals
from harness.run.view import View, make_view
from harness.signals import handlers_kept
from harness.targets.base import Target
from harness.targets.choosing import TARGETS
from harness.targets.kubeconfig import KubeconfigTarget
from harness.targets.wanted import Places, wanted_by
from harness.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that was judged; ``command`` repeats it."""

    run_dir: RunDir
    verdict: Verdict
    progress: Progress
    command: str


def run_experiment(
    prepared: Prepared, *, reports: Path, plain: bool, args: Sequence[str], bin_dir: Path | None = None,
    baseline: Baseline | None = None,
) -> Finished:  # fmt: skip
    """On a target, with Locust and Chaos Toolkit in processes of their own."""
    experiment, plan = prepared.experiment, prepared.plan
    make_target = _maker(prepared, bin_dir)
    run_dir, spec_path, command = begin_run(prepared, reports, args)
    with handlers_kept(), make_view(plain) as view:
        places = Places(folder=run_dir.path, logs=run_dir.logs, ledger=run_dir.ledger, say=view.say)
        target = make_target(places)
        supervisor = Supervisor(
            experiment, prepared.profile, plan, target, run_dir, view, command=command, spec_path=spec_path
        )
        progress, verdict = asyncio.run(_supervise_and_judge(supervisor, run_dir, view, baseline))
    return Finished(run_dir, verdict, progress, command)


def _maker(prepared: Prepared, bin_dir: Path | None) -> Callable[[Places], Target]:
    """What makes the target; what it lacks is found out here, before the run has a folder."""
    if prepared.survey is not None:
        survey, workload = prepared.survey, prepared.experiment.settings.workload
        return lambda places: KubeconfigTarget(survey, workload, places)
    make = TARGETS[prepared.target](bin_dir)
    wanted = wanted_by(prepared.experiment, prepared.plan.seed)
    return lambda places: make(wanted, places)


def run_virtually(
    prepared: Prepared, *, reports: Path, plain: bool, args: Sequence[str], baseline: Baseline | None = None
) -> Finished:
    """The same in virtual time, in this process."""
    # Only here, because it brings the whole embedded world along.
    from harness.run.virtual.loop import VirtualLoop
    from harness.run.virtual.run import VirtualRun
    from harness.run.virtual.script import read_script

    script = read_script(prepared.experiment)
    run_dir, spec_path, command = begin_run(prepared, reports, args)
    with handlers_kept(), make_view(plain) as view, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        started_s = process_time()

        async def supervise() -> tuple[VirtualRun, Progress]:
            run = VirtualRun(prepared, script, run_dir, view, command, spec_path)
            stop_on_signals(run)
            return run, await run.run()

        run, progress = runner.run(supervise())
        cpu_s = process_time() - started_s
        if progress.undo_left:
            view.alarm(*heal_alarm(progress, run_dir))
        view.say("judging what was recorded")
        verdict = _judge_and_report(run_dir, baseline)
        if run.stop_asked and progress.ended == "completed":
            verdict = _interrupted_while_judging(progress, run.stop_reason, run_dir)
    scenario_s = run.simulated_s * prepared.plan.time_scale
    typer.echo(
        f"virtual time: {scenario_s:.0f} scenario seconds, {run.simulated_s:.0f} on the clock, in {cpu_s:.1f} s of CPU "
        f"({run.simulated_s / cpu_s:.0f} clock seconds per CPU second)"
    )
    return Finished(run_dir, verdict, progress, command)


def begin_run(prepared: Prepared, reports: Path, args: Sequence[str]) -> tuple[RunDir, str, str]:
    """The run's folder with spec and plan in it; where in it the experiment lies; and how to repeat the run."""
    experiment, plan = prepared.experiment, prepared.plan
    run_dir = create(reports, experiment.path)
    hold_lock(run_dir.path)  # while this process lives no sweep takes the run for a dead one's
    spec_path = keep_spec(run_dir, experiment.path, experiment.files)
    run_dir.plan.write_text(plan.to_json())
    plan.schedule.write(run_dir.schedule)
    typer.echo(f"{line(experiment.title)}\nseed {plan.seed}, time_scale {plan.time_scale:g}, folder {run_dir.path}")
    return run_dir, spec_path, repeat_command(args, plan.seed)


def tell_end(finished: Finished) -> ExitCode:
    """Prints the verdict, how the run ended, and where its report is; returns the exit code of ``run``."""
    progress, verdict = finished.progress, finished.verdict
    print_verdict(verdict)
    if progress.ended != "completed":
        typer.echo(f"the run ended early ({progress.ended}): {line(progress.ended_detail)}")
        for said in progress.lines:
            typer.echo(f"    {line(said)}")
    typer.echo(f"report: {finished.run_dir.report}\nrepeat: {finished.command}")
    if progress.undo_left:  # last, so that it is what stands on the screen
        with make_view(plain=False) as view:
            view.alarm(*heal_alarm(progress, finished.run_dir))
    return ExitCode.HARNESS_ERROR if progress.ended == "error" else verdict.exit_code


def heal_alarm(progress: Progress, run_dir: RunDir) -> tuple[str, list[str]]:
    """What stands, each with the command by which a person undoes it; and what to try first."""
    title = f"HEAL FAILED: the cluster is not as it was before the run ({len(progress.undo_left)} things)"
    return title, [*progress.undo_left, f"first try: gpu-harness sweep {run_dir.path}"]


async def _supervise_and_judge(
    supervisor: Supervisor, run_dir: RunDir, view: View, baseline: Baseline | None
) -> tuple[Progress, Verdict]:
    stop_on_signals(supervisor)
    progress = await supervisor.run()
    if progress.undo_left:
        view.alarm(*heal_alarm(progress, run_dir))
    view.say("judging what was recorded")
    verdict = await asyncio.to_thread(_judge_and_report, run_dir, baseline)
    if supervisor.stop_asked and progress.ended == "completed":
        verdict = await asyncio.to_thread(_interrupted_while_judging, progress, supervisor.stop_reason, run_dir)
    return progress, verdict


def _interrupted_while_judging(progress: Progress, reason: str, run_dir: RunDir) -> Verdict:
    """The promise is that an interrupted run is never a pass."""
    progress.ended, progress.ended_detail = "interrupted", reason
    info = replace(RunInfo.read(run_dir.history), ended="interrupted", ended_detail=reason)
    info.write(run_dir.history)
    seal(run_dir.history)
    return _judge_and_report(run_dir)


def _judge_and_report(run_dir: RunDir, baseline: Baseline | None = None) -> Verdict:
    history = History.load(run_dir.path)
    verdict = judge_run(run_dir, history, baseline)
    write_verdict(run_dir, verdict)
    report_run(run_dir, history, verdict)
    return verdict
