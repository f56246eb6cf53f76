"""Every planted bug has a place on the real control plane, or is refused before anything is started."""

from __future__ import annotations

import pytest

from fakes.config import PlantedBug
from harness.errors import BadInput, Where
from harness.targets.controlplane import bugs
from harness.targets.controlplane.bugs import PLACES, refuse_bugs_without_a_place

WHERE = Where("e.yaml", key="planted_bugs")


def test_those_with_a_place_are_let_through() -> None:
    refuse_bugs_without_a_place(PLACES.keys(), WHERE)


def test_one_without_a_place_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {bug: place for bug, place in PLACES.items() if bug is not PlantedBug.HPA_BLIND}
    monkeypatch.setattr(bugs, "PLACES", rest)
    with pytest.raises(BadInput, match=r"e\.yaml.*hpa_blind cannot be planted"):
        refuse_bugs_without_a_place([PlantedBug.DRAIN_IGNORES_PDB, PlantedBug.HPA_BLIND], WHERE)
