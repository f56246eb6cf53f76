"""The command ``run``: supervise, judge, report, and say how to repeat it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from harness.errors import ExitCode
from harness.history.run_info import RunInfo
from harness.run.judging import judge_run, print_verdict, report_run, write_verdict
from harness.run.preparing import Prepared
from harness.run.progress import Progress
from harness.run.provenance import repeat_command
from harness.run.rundir import RunDir, create, keep_spec
from harness.run.supervisor import Supervisor, stop_on_signals
from harness.run.view import View, make_view
from harness.targets.embedded import EmbeddedTarget
from harness.verdict import Verdict


def run_experiment(prepared: Prepared, *, reports: Path, plain: bool, args: Sequence[str]) -> ExitCode:
    experiment, plan = prepared.experiment, prepared.plan
    run_dir = create(reports, experiment.path)
    spec_path = keep_spec(run_dir, experiment.path, experiment.files)
    run_dir.plan.write_text(plan.to_json())
    plan.schedule.write(run_dir.schedule)
    command = repeat_command(args, plan.seed)
    typer.echo(f"{experiment.title}\nseed {plan.seed}, time_scale {plan.time_scale:g}, folder {run_dir.path}")
    target = EmbeddedTarget(experiment, plan.seed, run_dir.path, run_dir.log("world"), run_dir.ledger)
    with make_view(plain) as view:
        supervisor = Supervisor(
            experiment, prepared.profile, plan, target, run_dir, view, command=command, spec_path=spec_path
        )
        progress, verdict = asyncio.run(_supervise_and_judge(supervisor, run_dir, view))
    print_verdict(verdict)
    if progress.ended != "completed":
        typer.echo(f"the run ended early ({progress.ended}): {progress.ended_detail}")
        for line in progress.lines:
            typer.echo(f"    {line}")
    typer.echo(f"report: {run_dir.report}\nrepeat: {command}")
    return ExitCode.HARNESS_ERROR if progress.ended == "error" else verdict.exit_code


async def _supervise_and_judge(supervisor: Supervisor, run_dir: RunDir, view: View) -> tuple[Progress, Verdict]:
    stop_on_signals(supervisor)
    progress = await supervisor.run()
    view.say("judging what was recorded")
    verdict = await asyncio.to_thread(_judge_and_report, run_dir)
    if supervisor.stop_asked and progress.ended == "completed":
        # Asked to stop while we judged: the promise is that an interrupted run is never a pass.
        progress.ended, progress.ended_detail = "interrupted", supervisor.stop_reason
        info = replace(RunInfo.read(run_dir.history), ended="interrupted", ended_detail=progress.ended_detail)
        info.write(run_dir.history)
        verdict = await asyncio.to_thread(_judge_and_report, run_dir)
    return progress, verdict


def _judge_and_report(run_dir: RunDir) -> Verdict:
    verdict = judge_run(run_dir)
    write_verdict(run_dir, verdict)
    report_run(run_dir, verdict)
    return verdict
