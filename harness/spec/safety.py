"""How far a run may go: what its faults may hit in all, and when it must stop by itself."""

from __future__ import annotations

from harness.spec.model import Count, Flag, Ratio, Seconds, SpecModel


class StopSpec(SpecModel):
    """The run is broken off and healed, and its verdict is unknown, when one of these holds."""

    not_ok_ratio_max: Ratio | None = None
    """Of the requests that ended within the last ``for_s``, at most this share may be other than ok."""
    for_s: Seconds = 10.0
    """Clock seconds."""
    nodes_not_ready_beyond_targets: Flag = False
    """A node that no fault was planned on is not Ready, though it was when the load began."""


class GuardsSpec(SpecModel):
    """Caps on what all faults of the experiment hit: planned targets beyond them are refused before the run."""

    nodes_max: Count | None = None
    nodes_at_once_max: Count | None = None
    """Nodes in trouble at the same scenario second."""
    nodes_percent_max: Count | None = None
    """Of the nodes at the start."""
    nodes_percent_at_once_max: Count | None = None
    gpus_max: Count | None = None
    gpus_at_once_max: Count | None = None
    stop_when: StopSpec = StopSpec()
