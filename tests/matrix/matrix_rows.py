"""What the matrix runs: every planted bug and every broken premise, and who must say so in which words.

This is the one place where an expectation is declared. A row names the experiment that exercises the bug, the check
that promises what the bug breaks, and words that its sentence or story must have: the sub-cause, not only the check.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fakes.config import PlantedBug

ROOT = Path(__file__).resolve().parents[2]
ALL_CHECKS = "experiments/matrix/all-checks.yaml"
HEALTHY = (ALL_CHECKS,)
"""Worlds without any bug: each must pass, or say why it cannot be judged."""


@dataclass(frozen=True, slots=True)
class Row:
    """``bug`` is planted into ``experiment``; without one the experiment itself is what is wrong."""

    breaks: str
    check: str
    words: tuple[str, ...]
    bug: PlantedBug | None = None
    experiment: str = ALL_CHECKS
    status: str = "fail"
    real: bool = False
    """One of those that ``--real`` runs in real time too."""

    @property
    def name(self) -> str:
        return self.bug.value if self.bug else Path(self.experiment).stem


def _planted(
    bug: PlantedBug, breaks: str, check: str, *words: str, experiment: str = ALL_CHECKS, real: bool = False
) -> Row:
    return Row(breaks, check, words, bug, experiment, real=real)


def _file(name: str, breaks: str, check: str, *words: str, status: str = "fail", real: bool = False) -> Row:
    return Row(breaks, check, words, None, f"experiments/negative/{name}.yaml", status, real)


ROWS: tuple[Row, ...] = (
    _planted(
        PlantedBug.SERVER_ABORTS_ON_SIGTERM, "the model server cuts its streams on SIGTERM",
        "graceful_drain", "lost", "SIGTERM", real=True,
    ),
    _planted(
        PlantedBug.DRAIN_IGNORES_PDB, "the drain deletes pods past their disruption budget",
        "pdb", "deleted past the Eviction API", real=True,
    ),
    _planted(
        PlantedBug.GANG_BOUND_ONE_BY_ONE, "members of a gang are bound singly", "gang", "held 3 of the 4", real=True,
    ),
    _planted(
        PlantedBug.READY_BEFORE_SERVING, "a pod says that it is Ready before it serves",
        "graceful_drain", "answered with an error though its pod was in service", real=True,
    ),
    _planted(
        PlantedBug.GATEWAY_ROUTES_TO_TERMINATING, "the gateway sends new work to pods that are going",
        "graceful_drain", "sent to a pod that was already going", real=True,
    ),
    _planted(
        PlantedBug.HPA_BLIND, "the autoscaler reads its metric and never changes a size",
        "scale_up", "no replica was", real=True,
    ),
    _file("server-aborts-on-sigterm", "the same, as a file of its own", "graceful_drain", "lost", "SIGTERM"),
    _file("drain-ignores-pdb", "the same, as a file of its own", "pdb", "deleted past the Eviction API"),
    _file("gang-bound-one-by-one", "the same, as a file of its own", "gang", "held 3 of the 4"),
    _file("autoscaler-does-not-answer", "the same, as a file of its own", "scale_up", "no replica was"),
    _file("fault-hits-nothing", "the fault hits no replica", "graceful_drain", "no stream", status="unknown"),
    _file("load-not-offered", "the load goes out late", "load_offered", "late", status="unknown"),
)  # fmt: skip
