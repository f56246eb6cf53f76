"""The command ``inspect``: what to look at, and how to say what was found."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import BadInput, ExitCode, Where
from harness.replacing import replace_text

if TYPE_CHECKING:
    from harness.inspection.inspecting import Inspection
    from harness.inspection.objects import Known

RBAC_NAMESPACE = "gpu-harness"


class Output(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class Least(enum.StrEnum):
    WARNING = "warning"
    ERROR = "error"


def inspect(
    manifests: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE|FOLDER|-]...", help="Manifests (YAML, JSON, Lists; - is standard input); else a cluster."
        ),
    ] = None,
    experiment: Annotated[
        Path | None, typer.Option(help="Take this experiment's manifests, and its profile's longest stream.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Which cluster; else KUBECONFIG, as kubectl finds it.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig, instead of its current one.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Of a cluster: only this one's objects; else all.")] = None,
    longest_stream_s: Annotated[
        float | None, typer.Option(help="Seconds of the longest stream that users have.", min=0)
    ] = None,
    model_load_s: Annotated[
        float | None, typer.Option(help="Seconds from a container's start to the model's first answer.", min=0)
    ] = None,
    accept: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What is accepted: {accept: [{rule, object, reason}]}.")
    ] = None,
    output: Annotated[Output, typer.Option(help="For people, or for programs.")] = Output.TEXT,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a JUnit report as well.")] = None,
    fail_on: Annotated[Least, typer.Option(help="From which severity on a finding is a fail.")] = Least.WARNING,
) -> ExitCode:
    """Look for problems that can be seen before anything runs: in a cluster, or in manifests. Changes nothing.

    Exit codes: 0 nothing found, 1 findings, 2 nothing found but not all could be read, 64 bad input, 70 no cluster.
    An object accepts a rule by the annotation gpu-harness.dev/accept: "rule-id: why". docs/inspect.md lists the rules.
    """
    from harness.inspection.junit import junit_xml
    from harness.inspection.printing import as_json, as_text
    from harness.inspection.rule import Severity

    for option, said_s in (("--longest-stream-s", longest_stream_s), ("--model-load-s", model_load_s)):
        if said_s is not None and not math.isfinite(said_s):
            raise BadInput(f"{said_s} is no time", where=Where(option), hint="write seconds, such as 90")
    named = [option for option, given in (("--kubeconfig", kubeconfig), ("--context", context)) if given is not None]
    if (manifests or experiment) and (named or namespace):
        raise BadInput(
            "manifests and a cluster cannot be looked at together",
            where=Where((named or ["--namespace"])[0]),
            hint="name files, or a cluster",
        )
    found = _look(manifests or [], experiment, (kubeconfig, context, namespace), accept, longest_stream_s, model_load_s)
    typer.echo(as_json(found) if output is Output.JSON else as_text(found), nl=False)
    least = Severity(fail_on.value)
    if junit is not None:
        _write(junit, junit_xml(found, least))
    return found.exit_code(least)


def _write(junit: Path, report: str) -> None:
    try:
        replace_text(junit, report)
    except OSError as error:
        why, hint = error.strerror or error, "name a file in a folder that is there and may be written to"
        raise BadInput(f"--junit cannot be written: {why}", where=Where(str(junit)), hint=hint) from None


def _look(
    manifests: list[Path], experiment: Path | None, cluster: tuple[Path | None, str | None, str | None],
    accept: Path | None, longest_stream_s: float | None, model_load_s: float | None,
) -> Inspection:  # fmt: skip
    from harness.inspection.accepting import read_accepts
    from harness.inspection.inspecting import look
    from harness.inspection.objects import Known, Objects
    from harness.inspection.reading import read_paths

    accepts = read_accepts(accept)
    known = Known(longest_stream_s, "--longest-stream-s", model_load_s)
    if experiment is not None:
        files, known = _of_experiment(experiment, known)
        manifests = [*files, *manifests]
    if manifests:
        seen, notes = read_paths(dict.fromkeys(manifests))
        source = ", ".join(map(str, manifests)) if len(manifests) <= 3 else f"{len(manifests)} files and folders"
        return look(Objects(seen, known=known), accepts, source, notes)
    from harness.inspection.cluster import kubeconfig_path, read_cluster

    kubeconfig, context, namespace = cluster
    path = kubeconfig_path(kubeconfig, context)
    objects, notes = read_cluster(path, context, namespace, known)
    where = f" in {namespace}" if namespace else ""
    return look(objects, accepts, f"the cluster of {path}{f', context {context}' if context else ''}{where}", notes)


def _of_experiment(path: Path, known: Known) -> tuple[list[Path], Known]:
    """The manifests that it brings, and the longest stream of its load, unless that was said already. Durations in pods
    are scenario seconds, as the profile's are."""
    from harness.inspection.objects import Known
    from harness.spec.experiment import load_experiment
    from harness.spec.loadprofile import load_profile

    experiment = load_experiment(path)
    if known.longest_stream_s is None:
        profile = load_profile(experiment.load_file)
        known = Known(profile.longest_stream_s, str(experiment.load_file), known.model_load_s)
    return [*experiment.manifest_files, *experiment.action_manifests.values()], known


def rbac_text(namespace: str | None) -> str:
    """YAML documents: who may inspect, and how."""
    import yaml

    from harness.inspection.cluster import rbac

    account = namespace or RBAC_NAMESPACE
    text = yaml.safe_dump_all(rbac(namespace, account), sort_keys=False)
    return f"# what `gpu-harness inspect` reads, and no more; the account is in the namespace {account}\n{text}"
