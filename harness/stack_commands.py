"""``gpu-harness stack``: the real components that a run can have beside a real control plane."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import BadInput, ExitCode

stack = typer.Typer(
    name="stack",
    help="Real components beside a real control plane: Karpenter, Kueue, KEDA and others, built from Go modules.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
JsonOpt = Annotated[bool, typer.Option("--json", help="For programs.")]
BinDirOpt = Annotated[Path | None, typer.Option(help="Where programs are looked for before the cache of `build`.")]


@stack.callback()
def say_what_there_is(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@stack.command("list")
def list_components(json: JsonOpt = False) -> ExitCode:
    """What there is, what is built, how large it is, what it needs."""
    from harness.stack.listing import as_json, as_text, rows

    typer.echo(as_json(rows()) if json else as_text(rows()))
    return ExitCode.PASS


@stack.command("build")
def build_components(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="As `list` names them.")] = None,
    cheap: Annotated[
        bool, typer.Option("--cheap", help="Those that take minutes, with the control plane; and NAME....")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All of them (an hour on 2 cores from nothing).")] = False,
) -> ExitCode:
    """Build components into the user's cache, once each; cut short, it goes on where it was."""
    from harness.stack.cache import built_dir
    from harness.stack.listing import build_all, which

    wanted = which(names or [], cheap=cheap, everything=everything)
    if not wanted:
        raise BadInput("nothing to build is named", hint="gpu-harness stack list names all; or --cheap, or --all")
    for line in build_all(wanted, lambda text: typer.echo(text, err=True)):
        typer.echo(line)
    typer.echo(f"all of it is in {built_dir()}")
    return ExitCode.PASS


@stack.command("up")
def bring_up_components(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="As `list` names them.")],
    bin_dir: BinDirOpt = None,
    ttl: Annotated[float, typer.Option(help="Stops by itself after this many clock seconds.", min=1)] = 4 * 3600,
    seed: Annotated[int, typer.Option(help="Of the nodes and the cloud around it.", min=0)] = 1,
) -> ExitCode:
    """Start a real control plane with components on it; for kubectl."""
    from harness.errors import Where
    from harness.stack.description import check_names
    from harness.stack.listing import KUBERNETES
    from harness.targets.standing import bring_up

    names = [name for name in names if name != KUBERNETES]  # listed, and up in any case
    check_names(names, Where("stack up"))
    connection = bring_up(None, target="controlplane", bin_dir=bin_dir, seed=seed, ttl_s=ttl, stack=names)
    typer.echo(f"export KUBECONFIG={connection.kubeconfig}")
    typer.echo("# how it is: gpu-harness stack status; stop it with: gpu-harness stack down", err=True)
    return ExitCode.PASS


@stack.command()
def status(json: JsonOpt = False) -> ExitCode:
    """Which programs of the cluster that is up in this folder run. Exit code 1 when one of them does not."""
    from harness.targets.stack_status import as_text, programs, to_json
    from harness.targets.standing import FOLDER

    found = programs(FOLDER)
    typer.echo(to_json(found) if json else as_text(found))
    return ExitCode.PASS if all(program["running"] for program in found) else ExitCode.FAIL


@stack.command("down")
def take_down_components() -> ExitCode:
    """Stop the cluster that is up in this folder, and all on it."""
    from harness.targets.standing import take_down

    typer.echo(take_down())
    return ExitCode.PASS
