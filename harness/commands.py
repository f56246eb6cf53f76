"""The commands, as people type them. Each is a few lines onto the modules that do the work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import BadInput, ExitCode
from harness.inspection.command import inspect
from harness.options import (
    BaselineOpt,
    BinDirOpt,
    ExperimentArg,
    LoopOpt,
    RunDirArg,
    ScaleOpt,
    SeedOpt,
    SpeedOpt,
    TargetOpt,
    TraceDurationOpt,
    TraceOpt,
    TraceStartOpt,
)
from harness.stack_commands import stack

if TYPE_CHECKING:
    from harness.plan.trace import TraceCut

app = typer.Typer(
    name="gpu-harness",
    help="Breaks a GPU inference cluster on purpose under token traffic, and answers pass, fail or unknown.\n\n"
    "Exit codes: 0 pass, 1 fail, 2 unknown, 64 bad input, 70 harness error.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(stack)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"gpu-harness {version('gpu-harness')}")
        raise typer.Exit


@app.callback()
def everywhere(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """What all commands share."""


@app.command()
def run(
    experiment: ExperimentArg,
    seed: SeedOpt = 1,
    reports: Annotated[Path, typer.Option(help="Where the run's folder is made.")] = Path("reports"),
    target: TargetOpt = "embedded",
    bin_dir: BinDirOpt = None,
    trace: TraceOpt = None,
    trace_start: TraceStartOpt = 0.0,
    trace_duration: TraceDurationOpt = None,
    speed: SpeedOpt = 1.0,
    scale: ScaleOpt = 1.0,
    loop: LoopOpt = False,
    plain: Annotated[bool, typer.Option("--plain", help="One line per change, also on a terminal.")] = False,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="In virtual time: seconds instead of minutes, the same bytes per seed.")
    ] = False,
    time_scale: Annotated[
        float | None,
        typer.Option(help="With --virtual or --target kubeconfig: instead of the experiment's; 1 is real durations."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be touched, by which permissions, and its undo.")
    ] = False,
    baseline: BaselineOpt = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="With --target kubeconfig: of the cluster.")] = None,
    context: Annotated[
        str | None, typer.Option(help="With --target kubeconfig: must be the kubeconfig's current one.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="With --target kubeconfig: the gateway's, if the experiment has none.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --target kubeconfig: break it. Without, it is a dry run.")
    ] = False,
) -> ExitCode:
    """Run an experiment to a verdict and a report."""
    from harness.compare.baseline import Baseline
    from harness.run.preparing import prepare
    from harness.run.running import run_experiment, run_virtually, tell_end
    from harness.targets.foreign import foreign_of

    foreign = foreign_of(target, kubeconfig, context, url, yes=yes)
    if time_scale is not None and not virtual and foreign is None:
        raise BadInput("--time-scale needs --virtual", hint="write time_scale into the experiment")
    prepared = prepare(
        experiment,
        seed=seed,
        target=target,
        cut=_cut(trace, trace_start, trace_duration, speed, scale, loop),
        virtual=virtual,
        time_scale=time_scale,
        foreign=foreign,
    )
    before = Baseline.read(baseline) if baseline else None
    if dry_run or (foreign is not None and not yes):
        from harness.run.dry_run import dry_run as tell
        from harness.targets.standing import FOLDER

        return tell(prepared, FOLDER / "connection.json", typer.echo)
    if virtual:
        if bin_dir is not None:
            raise BadInput("--bin-dir has no meaning with --virtual")
        return tell_end(run_virtually(prepared, reports=reports, plain=plain, args=sys.argv, baseline=before))
    return tell_end(
        run_experiment(prepared, reports=reports, plain=plain, args=sys.argv, bin_dir=bin_dir, baseline=before)
    )


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(metavar="EXPERIMENT|PROFILE", help="An experiment, or a load profile alone.")],
    seed: SeedOpt = 1,
    trace: TraceOpt = None,
    trace_start: TraceStartOpt = 0.0,
    trace_duration: TraceDurationOpt = None,
    speed: SpeedOpt = 1.0,
    scale: ScaleOpt = 1.0,
    loop: LoopOpt = False,
    time_scale: Annotated[
        float | None, typer.Option(help="Scenario seconds per clock second, for a load profile alone; else 1.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The plan itself, the same bytes for the same seed.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the schedule into this HTML file.")] = None,
    schedule: Annotated[
        Path | None, typer.Option(help="Write the schedule, one row per request, into this .parquet file.")
    ] = None,
) -> ExitCode:
    """Print schedule and fault targets; touches nothing."""
    from harness.plan.describe import describe
    from harness.run.preparing import plan_file

    cut = _cut(trace, trace_start, trace_duration, speed, scale, loop)
    planned = plan_file(file, seed=seed, cut=cut, time_scale=time_scale)
    if schedule is not None:
        planned.schedule.save(schedule)
    if plot is not None:
        from harness.report.schedule_page import draw

        draw(planned, plot)
    typer.echo(planned.to_json() if json else describe(planned), nl=not json)
    if plot is not None:
        typer.echo(f"drawn: {plot}", err=True)
    if schedule is not None:
        typer.echo(f"written: {schedule}", err=True)
    return ExitCode.PASS


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(metavar="EXPERIMENT|PROFILE", help="An experiment, or a load profile alone.")],
) -> ExitCode:
    """Check an experiment and the files it names, or a load profile."""
    from harness.run.preparing import validated

    typer.echo(f"{file}: {validated(file)}")
    return ExitCode.PASS


@app.command()
def check(run_dir: RunDirArg, baseline: BaselineOpt = None) -> ExitCode:
    """Judge a recorded run again; needs no cluster."""
    from harness.compare.baseline import Baseline
    from harness.history.reader import History
    from harness.run.judging import judge_run, print_verdict, write_verdict
    from harness.run.rundir import open_existing

    opened = open_existing(run_dir)
    before = Baseline.read(baseline) if baseline else None
    verdict = judge_run(opened, History.load(opened.path), before)
    print_verdict(verdict)
    try:
        write_verdict(opened, verdict)
    except OSError as error:  # an archive, say: the answer is what was asked for
        typer.echo(f"gpu-harness: {opened.verdict} is left as it was: {error.strerror}", err=True)
    return verdict.exit_code


@app.command()
def report(run_dir: RunDirArg) -> ExitCode:
    """Write a recorded run's report again; needs no cluster."""
    from harness.history.reader import History
    from harness.run.judging import judge_run, report_run, write_verdict
    from harness.run.rundir import open_existing

    opened = open_existing(run_dir)
    history = History.load(opened.path)
    verdict = judge_run(opened, history)
    write_verdict(opened, verdict)
    report_run(opened, history, verdict)
    typer.echo(f"report: {opened.report}")
    return verdict.exit_code


@app.command()
def explain(
    run_dir: RunDirArg,
    check: Annotated[
        str, typer.Argument(metavar="CHECK", help="One of the checks of that run, as `check` lists them.")
    ],
) -> ExitCode:
    """Print one finding of a recorded run: its story, its figures, and its evidence as a table."""
    from harness.run.explaining import explain_finding
    from harness.run.rundir import open_existing

    return explain_finding(open_existing(run_dir), check)


@app.command()
def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Runs, or folders of runs; the first side is the yardstick.")
    ],
    by: Annotated[
        str | None,
        typer.Option(help="Group runs by experiment, commit, target, seed, folder or run; else by the folder named."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> ExitCode:
    """Set runs side by side; with five or more a side, say what changed beyond noise.

    Exit codes: 0 nothing got worse beyond noise, 1 a regression, 2 too few runs to claim anything.
    """
    from harness.compare.printing import exit_code, print_comparison, to_json
    from harness.compare.sides import gather

    sides = gather(folders, by)
    if json:
        typer.echo(to_json(sides), nl=False)
    else:
        print_comparison(sides)
    return exit_code(sides)


@app.command()
def schema(
    name: Annotated[str, typer.Argument(metavar="NAME", help="verdict: of verdict.json.")] = "verdict",
) -> ExitCode:
    """Print the JSON schema of a file that we write for other programs."""
    from harness.schemas import SCHEMAS, schema_text
    from harness.spec.document import did_you_mean

    if name not in SCHEMAS:
        raise BadInput(f"there is no schema {name!r}", hint=did_you_mean(name, list(SCHEMAS)))
    typer.echo(schema_text(name), nl=False)
    return ExitCode.PASS


@app.command()
def up(
    experiment: Annotated[
        Path | None, typer.Argument(metavar="[EXPERIMENT]", help="Take its world and manifests; else two empty nodes.")
    ] = None,
    target: TargetOpt = "embedded",
    bin_dir: BinDirOpt = None,
    ttl: Annotated[float, typer.Option(help="Stops by itself after this many clock seconds.", min=1)] = 4 * 3600,
    seed: SeedOpt = 1,
) -> ExitCode:
    """Start a cluster alone; for kubectl."""
    from harness.targets.standing import bring_up

    connection = bring_up(experiment, target=target, bin_dir=bin_dir, seed=seed, ttl_s=ttl)
    typer.echo(f"export KUBECONFIG={connection.kubeconfig}")
    typer.echo(f"# model endpoint: {connection.service_url}/v1/chat/completions", err=True)
    typer.echo("# stop it with: gpu-harness down", err=True)
    return ExitCode.PASS


@app.command()
def down() -> ExitCode:
    """Stop the cluster that `up` started in this folder."""
    from harness.targets.standing import take_down

    typer.echo(take_down())
    return ExitCode.PASS


app.command()(inspect)


@app.command()
def rbac(
    experiment: Annotated[
        Path | None, typer.Argument(metavar="[EXPERIMENT]", help="An experiment file (YAML or JSON).")
    ] = None,
    for_inspect: Annotated[bool, typer.Option("--inspect", help="What `inspect` reads, and no more.")] = False,
    namespace: Annotated[
        str | None, typer.Option(help="With --inspect: of namespaced objects, only those here.")
    ] = None,
) -> ExitCode:
    """Print the RBAC objects that allow exactly this experiment's run, or inspecting a cluster."""
    if for_inspect is (experiment is not None) or (namespace is not None and not for_inspect):
        raise BadInput("give an experiment, or --inspect", hint="gpu-harness rbac --inspect --namespace inference")
    if experiment is None:
        from harness.inspection.command import rbac_text as inspect_rbac_text

        typer.echo(inspect_rbac_text(namespace), nl=False)
    else:
        from harness.run.allowing import rbac_text

        typer.echo(rbac_text(experiment), nl=False)
    return ExitCode.PASS


@app.command()
def sweep(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Folders of runs, or folders of such; else reports and .gpu-harness."),
    ] = None,
    reports: Annotated[Path, typer.Option(help="Where runs are looked for.")] = Path("reports"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what is left; change nothing.")] = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="Heal from the journals in a cluster, without the runs' folders: that of `up`, or kubeconfig."
        ),
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="With --target: which cluster, if not that of `up`.")] = None,
    context: Annotated[str | None, typer.Option(help="Must be the kubeconfig's current one.")] = None,
    namespace: Annotated[
        str, typer.Option(help="With --kubeconfig: the workload's, where journals lie.")
    ] = "inference",
) -> ExitCode:
    """Find what dead runs left changed in a cluster, and heal it."""
    from harness.run.sweeping import default_roots, find_runs
    from harness.run.sweeping import sweep as sweep_runs

    if target is not None:
        from harness.run.sweeping_cluster import cluster_of, sweep_journals

        if runs:
            raise BadInput("--target heals from the cluster, without folders", hint="name folders, or a target")
        return sweep_journals(cluster_of(target, kubeconfig, context, namespace), heal=not dry_run, say=typer.echo)
    if kubeconfig is not None or context is not None:
        raise BadInput("--kubeconfig and --context need --target", hint="--target kubeconfig, or controlplane")
    for given in runs or ():
        if not given.is_dir():
            raise BadInput(
                f"there is no folder {given}", hint="name the folder of a run, reports/<experiment>/<utc-start>"
            )
    return sweep_runs(list(find_runs(runs or default_roots(reports))), heal=not dry_run, say=typer.echo)


def _cut(
    trace: Path | None, start_s: float, duration_s: float | None, speed: float, scale: float, loop: bool
) -> TraceCut | None:
    from harness.plan.trace import TraceCut

    if trace is None:
        if start_s or duration_s is not None or speed != 1.0 or scale != 1.0 or loop:
            raise BadInput(
                "--trace-start, --trace-duration, --speed, --scale and --loop need --trace", hint="name the trace file"
            )
        return None
    return TraceCut(trace, start_s, duration_s, speed, scale, loop)


CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""Typer's ClickException: from click itself or from the copy that newer Typers carry, so never imported by name."""


def run_command_line(args: list[str]) -> ExitCode:
    """Parses and runs one command line; without arguments it prints the help. A usage error is BadInput."""
    command = typer.main.get_command(app)
    try:
        result = command.main(args=args or ["--help"], prog_name="gpu-harness", standalone_mode=False)
    except CommandLineError as error:
        context = getattr(error, "ctx", None)
        usage = context.get_usage() if context else "see gpu-harness --help"
        raise BadInput(error.format_message(), hint=usage) from error  # type: ignore[attr-defined]  # see above
    return ExitCode(result) if isinstance(result, int) else ExitCode.PASS
