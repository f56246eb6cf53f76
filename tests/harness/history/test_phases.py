from __future__ import annotations

import pytest

from harness.history.phases import compute_phases, phase_of
from harness.history.tables import FaultEvent, FaultStage, Phase

S = 1_000_000_000
I, O, N, E, H, F = (  # noqa: E741
    FaultStage.INJECTED,
    FaultStage.OBSERVED,
    FaultStage.NOT_OBSERVED,
    FaultStage.ENDED,
    FaultStage.HEALED,
    FaultStage.FAILED,
)


def life(fault_id: str, *steps: tuple[FaultStage, float], disruptive: bool = True) -> list[FaultEvent]:
    return [
        FaultEvent(i, round(at * S), fault_id, "f", stage, disruptive=disruptive) for i, (stage, at) in enumerate(steps)
    ]


@pytest.mark.parametrize(
    "faults, expected",
    [
        pytest.param([], [("warm_up", 10, 14), ("steady", 14, 50)], id="no-fault"),
        pytest.param(
            life("a", (I, 30), (O, 31), (E, 38), (H, 45)),
            [("warm_up", 10, 14), ("steady", 14, 30), ("fault", 30, 38), ("recovery", 38, 50)],
            id="ends-by-itself-before-it-is-healed",
        ),
        pytest.param(
            life("a", (I, 30), (O, 31)),
            [("warm_up", 10, 14), ("steady", 14, 30), ("fault", 30, 50)],
            id="never-over",
        ),
        pytest.param(
            life("a", (I, 20), (E, 22)) + life("b", (I, 30), (H, 35)),
            [("warm_up", 10, 14), ("steady", 14, 20), ("fault", 20, 35), ("recovery", 35, 50)],
            id="two-faults-are-one-span",
        ),
        pytest.param(
            life("a", (I, 20), (E, 22)) + life("b", (I, 30)),
            [("warm_up", 10, 14), ("steady", 14, 20), ("fault", 20, 50)],
            id="one-of-two-is-still-on",
        ),
        pytest.param(
            life("a", (I, 20), (E, 22), disruptive=False),
            [("warm_up", 10, 14), ("steady", 14, 50)],
            id="not-disruptive",
        ),
        pytest.param(life("a", (F, 20)), [("warm_up", 10, 14), ("steady", 14, 50)], id="failed-before-it-was-injected"),
        pytest.param(
            life("a", (I, 30), (N, 33), (F, 34)),
            [("warm_up", 10, 14), ("steady", 14, 30), ("fault", 30, 34), ("recovery", 34, 50)],
            id="failed",
        ),
        pytest.param(
            life("a", (I, 12), (E, 20)),
            [("warm_up", 10, 12), ("fault", 12, 20), ("recovery", 20, 50)],
            id="strikes-in-the-warm-up",
        ),
        pytest.param(life("a", (I, 5), (E, 60)), [("fault", 10, 50)], id="longer-than-the-load"),
        pytest.param(life("a", (I, 60), (E, 70)), [("warm_up", 10, 14), ("steady", 14, 50)], id="after-the-load"),
    ],
)
def test_phases(faults: list[FaultEvent], expected: list[tuple[str, int, int]]) -> None:
    phases = compute_phases(10 * S, 50 * S, warm_up_s=60, time_scale=15, faults=faults)
    assert [(p.name, p.start_ns // S, p.end_ns // S) for p in phases] == expected


def test_no_load_has_no_phases() -> None:
    assert compute_phases(5, 5, 10, 1, []) == ()


@pytest.mark.parametrize(
    "t_ns, name", [(0, "warm_up"), (10, "warm_up"), (19, "warm_up"), (20, "steady"), (99, "steady")]
)
def test_phase_of_a_moment(t_ns: int, name: str) -> None:
    assert phase_of((Phase("warm_up", 10, 20), Phase("steady", 20, 30)), t_ns) == name
