"""The life of one injection, each step written to the history as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from harness.clock import NS_PER_S
from harness.errors import HarnessError, TargetError
from harness.faults.alike import alike_in_force
from harness.faults.fault import Fault, Strike, fidelity_on
from harness.faults.log import FaultLog
from harness.faults.port import Ground, NotObserved
from harness.faults.wait import TookTooLong, until
from harness.history.tables import FaultStage
from harness.kube.port import ApiError

PATIENCE_RATIO = 1.0
"""How much longer than ``seen_s`` an effect is waited for, so that a late one is told from none."""


@dataclass(frozen=True, slots=True)
class FaultResult:
    fault_id: str
    targets: tuple[str, ...]
    observed: str
    ended: str | None


async def run_fault(
    fault: Fault, fault_id: str, targets: Sequence[str], ground: Ground, log: FaultLog, note: str = ""
) -> FaultResult:
    """Injects, observes and outlasts. ``note`` goes with the ``planned`` line. An error is written and raised on;
    healing what is left is up to the caller, because it must also follow a kill."""
    write = partial(
        log.write,
        fault_id,
        fault.name,
        targets=tuple(targets),
        fidelity=fidelity_on(type(fault), ground.target, ground.stack).value,
        disruptive=fault.disruptive,
    )
    write(FaultStage.PLANNED, detail=note)
    try:
        strike = Strike(fault, ground, fault_id, tuple(targets), await fault.remember(ground, targets))
        earlier = await _signs_before(strike)
        since_s = asyncio.get_running_loop().time()
        await fault.inject(strike)
        write(FaultStage.INJECTED)
        try:
            observed = await observe(strike, earlier, since_s)
        except NotObserved as error:
            write(FaultStage.NOT_OBSERVED, detail=f"{error.message}; {error.hint}" if error.hint else error.message)
            raise
        write(FaultStage.OBSERVED, detail=observed)
        ended = await fault.outlast(strike, since_s)
    except NotObserved:
        raise
    except Exception as error:
        write(FaultStage.FAILED, detail=f"{type(error).__name__}: {error}")
        raise
    if ended is not None:
        write(FaultStage.ENDED, detail=ended)
        if not _pending(strike):
            stage, detail = await watch_healing(strike)
            if stage is not None:
                write(stage, detail=detail)
    return FaultResult(fault_id, tuple(targets), observed, ended)


async def observe(strike: Strike, earlier: Mapping[str, str], since_s: float) -> str:
    """What was seen; says what came late, and what shows the same without having been picked. Raises ``NotObserved``
    with what was expected, what was seen, and where to look; also where another fault that may show the same was in
    force all the while."""
    fault, ground = strike.fault, strike.ground
    expected_s = ground.clock.clock_s(fault.seen_s())
    seen: dict[str, str] = {}
    beyond: dict[str, str] = {}
    alike: list[str] = []

    async def look() -> str | None:
        nonlocal strike
        others = alike_in_force(strike)
        if not others and alike:
            # What was remembered is of before the other's work.
            strike = replace(strike, before=await fault.remember(ground, strike.targets), notes={})
            alike.clear()
        signs = await fault.signs(strike)
        if others := others or alike_in_force(strike):
            alike[:] = others
            return None
        seen.update((name, sign) for name, sign in signs.items() if name in strike.targets)
        beyond.clear()
        beyond.update((n, s) for n, s in signs.items() if n not in strike.targets and n not in earlier)
        return "; ".join(seen[name] for name in strike.targets) if set(strike.targets) <= set(seen) else None

    loop = asyncio.get_running_loop()
    left_s = since_s + expected_s * (1 + PATIENCE_RATIO) + ground.patience.slack_s - loop.time()
    try:
        said = await until(look, max(left_s, ground.patience.poll_s), ground.patience.poll_s)
    except TookTooLong as error:
        raise _not_observed(strike, seen, alike, error) from error
    after_s = loop.time() - since_s
    if after_s > expected_s + ground.patience.slack_s:
        late_s = ground.clock.scenario_s(round(after_s * NS_PER_S))
        said += f"; late: seen after {late_s:.0f} s, expected within {fault.seen_s():.0f} s"
    if beyond:
        said += "; not picked, but showing it too: " + "; ".join(beyond[name] for name in sorted(beyond))
    return said


async def watch_healing(strike: Strike, within_s: float | None = None) -> tuple[FaultStage | None, str]:
    """Whether the effect is gone from every target, by the same signs. ``within_s``: clock seconds, where there are
    fewer than the fault would ask for. No stage where nothing could be seen."""
    fault, ground = strike.fault, strike.ground
    heals_s = fault.healed_s()
    if heals_s is None:
        return None, ""
    asked_s = ground.within_s(heals_s)
    left: dict[str, str] = {}

    async def look() -> str | None:
        signs = await fault.signs(strike)
        left.clear()
        left.update((name, sign) for name, sign in signs.items() if name in strike.targets)
        return None if left else f"gone: {', '.join(strike.targets)}"

    limit_s = asked_s if within_s is None else min(asked_s, within_s)
    try:
        return FaultStage.HEAL_OBSERVED, await until(look, limit_s, ground.patience.poll_s)
    except TookTooLong as error:
        shows = "; ".join(left.values()) or "it could not be looked at"
        return FaultStage.HEAL_NOT_OBSERVED, f"undone, but the effect still shows: {shows} ({error})"
    except (HarnessError, ApiError) as error:
        return FaultStage.HEAL_NOT_OBSERVED, f"undone, but nobody could look whether the effect is gone: {error}"


async def _signs_before(strike: Strike) -> Mapping[str, str]:
    """A target that shows the effect before it is touched would prove nothing."""
    earlier = await strike.fault.signs(replace(strike))
    there = [earlier[name] for name in strike.targets if name in earlier]
    if there:
        raise TargetError(
            f"{strike.fault_id}: shows before anything was done: {'; '.join(there)}; a fault there would prove nothing"
        )
    return earlier


def _not_observed(strike: Strike, seen: Mapping[str, str], alike: Sequence[str], error: TookTooLong) -> NotObserved:
    expected, where = strike.fault.expected()
    missing = ", ".join(name for name in strike.targets if name not in seen)
    saw = "; ".join(seen.values()) or "nothing of it"
    if alike:
        return NotObserved(
            f"{strike.fault_id} was injected, but what shows on {missing} cannot be told from the work of "
            f"{', '.join(alike)}: expected that {expected}; {error}",
            hint="let the one end before the other begins",
        )
    return NotObserved(
        f"{strike.fault_id} was injected, but not seen on {missing}: expected that {expected}; seen: {saw}, {error}",
        hint=where,
    )


def _pending(strike: Strike) -> bool:
    return any(entry.fault_id == strike.fault_id for entry in strike.ground.undo.replay().pending)
