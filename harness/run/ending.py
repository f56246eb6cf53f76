"""The last lines of a history: requests, run.json and the seal. A run that was cut short gets them, too."""

from __future__ import annotations

from harness.history.phases import compute_phases
from harness.history.reader import read_faults
from harness.history.run_info import RunInfo
from harness.history.seal import seal
from harness.history.tables import FaultStage
from harness.history.writer import HistoryWriter
from harness.plan.plan import Plan
from harness.run.progress import Progress
from harness.run.provenance import commit, versions
from harness.run.rundir import RunDir
from harness.spec.experiment import Experiment
from harness.spec.loadprofile import LoadProfile
from harness.targets.base import Described


def write_ending(
    writer: HistoryWriter,
    progress: Progress,
    *,
    experiment: Experiment,
    profile: LoadProfile,
    plan: Plan,
    target: Described,
    run_dir: RunDir,
    spec_path: str,
    command: str,
    started_utc: str,
) -> None:
    """Closes ``writer``. ``spec_path`` is the experiment's place under ``spec/``."""
    settings = experiment.settings
    faults = read_faults(run_dir.history)
    load_end_ns = max(progress.load_end_ns, progress.load_start_ns)
    phases = compute_phases(progress.load_start_ns, load_end_ns, settings.phases.warm_up_s, settings.time_scale, faults)
    records = writer.write_load(plan.schedule, run_dir.records, phases, load_start_ns=progress.load_start_ns or None)
    writer.close()
    head, dirty = commit()
    RunInfo(
        seed=plan.seed,
        time_scale=settings.time_scale,
        experiment=spec_path,
        title=experiment.title,
        target=target.name,
        started_utc=started_utc,
        command=command,
        commit=head,
        dirty=dirty,
        versions=versions() | dict(target.versions),
        load_start_ns=progress.load_start_ns,
        load_end_ns=progress.load_end_ns,
        warm_up_s=settings.phases.warm_up_s,
        phases=phases,
        planned=plan.schedule.rows,
        planned_faults=tuple(fault.fault_id for fault in plan.faults),
        ended=progress.ended,
        ended_detail=progress.ended_detail,
        undo_planned=progress.undo_planned,
        undo_left=progress.undo_left,
        fidelity={f.fault: f.fidelity for f in faults if f.stage is FaultStage.INJECTED},
        real=target.real,
        emulated=target.emulated,
        workload=settings.workload.model_dump(include={"namespace", "selector", "service"}),
        load_lag_limit_ms=profile.send.lag_ms_p99_max,
        load_workers=profile.send.workers,
        object_events=writer.objects.written,
        sealed=True,
        duplicate_ends=records.duplicate_ends,
        prices_per_hour=_prices(experiment),
    ).write(run_dir.history)
    seal(run_dir.history)


def _prices(experiment: Experiment) -> dict[str, float]:
    """A price of 0 is one that nobody stated."""
    world = experiment.settings.world
    return {pool.name: pool.price_per_hour for pool in world.pools if pool.price_per_hour > 0} if world else {}
