"""Every planted bug has a place on the real control plane, or is refused before anything is started."""

from __future__ import annotations

import pytest

from fakes.config import PlantedBug
from harness.errors import BadInput, Where
from harness.targets.bugs import ON_CONTROL_PLANE, refuse_bugs_without_a_place

WHERE = Where("e.yaml", key="planted_bugs")


def test_those_with_a_place_are_let_through() -> None:
    refuse_bugs_without_a_place(ON_CONTROL_PLANE.keys(), ON_CONTROL_PLANE, "controlplane", WHERE)


def test_one_without_a_place_is_refused_by_name() -> None:
    rest = {bug: place for bug, place in ON_CONTROL_PLANE.items() if bug is not PlantedBug.HPA_BLIND}
    with pytest.raises(BadInput, match=r"e\.yaml.*hpa_blind cannot be planted"):
        refuse_bugs_without_a_place([PlantedBug.DRAIN_IGNORES_PDB, PlantedBug.HPA_BLIND], rest, "controlplane", WHERE)
