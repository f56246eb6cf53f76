"""What a file is for, by its keys: people hand an experiment where a load profile is wanted, and the reverse."""

from __future__ import annotations

from harness.spec.document import Document

_EXPERIMENT = frozenset(
    {"method", "extensions", "steady-state-hypothesis", "rollbacks", "controls", "configuration", "secrets"}
)
_PROFILE = frozenset({"arrivals", "tokens", "duration_s", "longest_stream_s", "mix", "send", "peak_to_mean_min"})


def refuse_profile(document: Document) -> None:
    """Where an experiment is wanted. BadInput."""
    if is_profile(document):
        raise document.mistake(
            (), "is a load profile, not an experiment",
            "name it under `load:` in an experiment's block gpu-harness (the smallest one stands in "
            f"docs/load-profiles.md), or look at it with `gpu-harness plan {document.file}`",
        )  # fmt: skip


def refuse_experiment(document: Document) -> None:
    """Where a load profile is wanted. BadInput."""
    if len(_EXPERIMENT & document.data.keys()) > len(_PROFILE & document.data.keys()):
        raise document.mistake(
            (), "is an experiment, not a load profile", "name the file that has `arrivals` and `tokens`"
        )


def is_profile(document: Document) -> bool:
    """Whether most of its known keys are those of a load profile."""
    return len(_PROFILE & document.data.keys()) > len(_EXPERIMENT & document.data.keys())
