"""Arguments and options that several commands have, as Typer takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ExperimentArg = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (YAML or JSON).")]
RunDirArg = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of a run, reports/<experiment>/<utc-start>.")
]
BaselineOpt = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Runs of before (or a folder of such; may be repeated): a regression is a fail."),
]
SeedOpt = Annotated[int, typer.Option(help="Fixes arrivals, token lengths and fault targets.", min=0)]
TargetOpt = Annotated[
    str,
    typer.Option(
        help="Which cluster: embedded, controlplane (a real Kubernetes 1.37 around which we play), node and kind "
        "(real kubelets, too), kubeconfig."
    ),
]
BinDirOpt = Annotated[
    Path | None,
    typer.Option(help="With controlplane: where its programs are, before KUBEBUILDER_ASSETS, PATH and the cache."),
]
TraceOpt = Annotated[
    Path | None,
    typer.Option(help="Replay rows of this trace (Azure, BurstGPT, Mooncake, our Parquet) instead of the profile."),
]
TraceStartOpt = Annotated[float, typer.Option(help="Where in the trace to begin, in trace seconds.", min=0)]
TraceDurationOpt = Annotated[float | None, typer.Option(help="How much of the trace to replay, in trace seconds.")]
SpeedOpt = Annotated[float, typer.Option(help="Trace seconds per clock second.")]
ScaleOpt = Annotated[float, typer.Option(help="Thin (below 1) or multiply (above 1) the trace's rows, by the seed.")]
LoopOpt = Annotated[
    bool, typer.Option("--loop", help="Repeat the cut until the profile's duration_s is over.", show_default=False)
]
