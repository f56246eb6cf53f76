"""JSON schemas of what we write for other programs. Published: ``gpu-harness schema NAME`` prints them."""

from __future__ import annotations

from importlib.resources import files

SCHEMAS = {"verdict": "verdict.json"}
"""File in this package by name."""


def schema_text(name: str) -> str:
    """Raises ``KeyError`` for a name that is not in ``SCHEMAS``."""
    return (files(__name__) / SCHEMAS[name]).read_text(encoding="utf-8")
