"""What another fault may have done is no proof of this one's injection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from faults_ground import make_ground, make_kube

from harness.faults.alike import ALIKE, alike
from harness.faults.fault import Fault, Strike
from harness.faults.life import observe
from harness.faults.port import Ground, NotObserved, Patience
from harness.faults.registry import FAULTS
from harness.faults.senses import Answer, MetricRead
from harness.faults.undo import NothingLeft, ResetKnob, Undo

SERVED, RESET, SILENT = Answer(200, 0.01), Answer(0, 0.01, "reset"), Answer(0, 1.0, "no answer")
NODES = {"selector": "a=b", "count": 1}
PODS = {"selector": "a=b", "count": 1}


@dataclass
class Service:
    """A service that answers as a test says, by what it is asked."""

    answer: Callable[[], Answer] = lambda: SERVED
    text: str = ""
    asked: int = field(default=0)

    async def ask(self, within_s: float) -> Answer:
        self.asked += 1
        return self.answer()

    async def gateway_text(self) -> str | None:
        return self.text

    async def pod_metric(self, namespace: str, metric: str) -> MetricRead:
        return MetricRead(200, {}, {})


def fault(name: str, **arguments: Any) -> Fault:
    return FAULTS[name].model_validate({"after_s": 0, **arguments})


LOSS = fault("link_trouble", link="clients", loss_ratio=1.0, hold_s=60)
RESETS = fault("link_trouble", link="clients", reset_ratio=1.0, hold_s=60)
SLOW = fault("link_trouble", link="pods", latency_ms=200, hold_s=60)
RESTART = fault("gateway_restart", down_s=60)
HANG_UPS = fault("client_hang_ups", hold_s=60)
SILENT_NODE = fault("node_silent", nodes=NODES, hold_s=60)
LOST_POD = fault("pod_loss", pods=PODS, how="delete")
API_ERRORS = fault("api_errors", client="karpenter", how="500", hold_s=60)
STOPPED = fault("part_stopped", client="karpenter", hold_s=60)
NO_QUOTA = fault("capacity_refused", pool="spot", why="quota", hold_s=60)
NO_ZONE = fault("capacity_refused", pool="other", why="zone", hold_s=60)


def begin(ground: Ground, other: Fault, undo: Undo | None = None) -> int:
    """As it stands in the journal once it was injected."""
    strike = Strike(other, ground, f"{other.name}-9", ("x",))
    return strike.will_undo(undo or ResetKnob("some.knob", "x"))


async def looked_for(
    it: Fault, ground: Ground, service: Service, target: str, before: Mapping[str, str] | None = None
) -> str:
    ground = replace(ground, senses=service)
    strike = Strike(it, ground, f"{it.name}-1", (target,), before or {})
    return await observe(strike, {}, asyncio.get_running_loop().time())


@pytest.mark.parametrize(
    ("it", "target", "answer", "other"),
    [
        pytest.param(LOSS, "clients", SILENT, SILENT_NODE, id="requests-that-a-frozen-node-swallows"),
        pytest.param(RESETS, "clients", RESET, RESTART, id="clients-that-a-restart-cuts-off"),
        pytest.param(RESTART, "gateway", RESET, RESETS, id="clients-that-a-firewall-cuts-off"),
        pytest.param(SLOW, "pods", Answer(200, 0.5), SLOW, id="the-other-link"),
    ],
)
async def test_while_another_may_have_done_it_nothing_is_proven(
    it: Fault, target: str, answer: Answer, other: Fault, tmp_path: Path
) -> None:
    service = Service(lambda: answer)
    async with make_ground(tmp_path, make_kube(), slack_s=0.1) as ground:
        seq = begin(ground, other)
        with pytest.raises(NotObserved, match=f"cannot be told from the work of {other.name}-9"):
            await looked_for(it, ground, service, target)
        ground.undo.undone(seq)
        assert await looked_for(it, ground, service, target)


async def test_it_is_seen_as_soon_as_the_other_is_over(tmp_path: Path) -> None:
    async with make_ground(tmp_path, make_kube()) as ground:
        seq = begin(ground, RESTART)
        asyncio.get_running_loop().call_later(0.1, ground.undo.undone, seq)
        assert "broke off" in await looked_for(RESETS, ground, Service(lambda: RESET), "clients")


async def test_what_was_counted_of_the_others_work_does_not_count_afterwards(tmp_path: Path) -> None:
    service = Service(text='gateway_client_left_total{pod="a"} 10')
    async with make_ground(tmp_path, make_kube(), slack_s=0.3) as ground:
        seq = begin(ground, RESTART)
        asyncio.get_running_loop().call_later(0.1, ground.undo.undone, seq)
        with pytest.raises(NotObserved, match="seen: nothing of it"):
            await looked_for(HANG_UPS, ground, service, "load", {"left": "0"})
        assert "10 clients left" in await looked_for(HANG_UPS, ground, service, "load", {"left": "0"})


async def test_what_was_done_once_is_over_after_its_time(tmp_path: Path) -> None:
    """A pod that was killed stays in the journal: nobody takes it back."""
    async with make_ground(tmp_path, make_kube(), slack_s=0.3) as ground:
        ground = replace(ground, patience=Patience(0.01, 2.0))
        begin(ground, LOST_POD, NothingLeft("its controller's"))
        assert "had no answer" in await looked_for(LOSS, ground, Service(lambda: SILENT), "clients")


async def test_a_gateway_that_is_silent_has_not_restarted(tmp_path: Path) -> None:
    async with make_ground(tmp_path, make_kube(), slack_s=0.1) as ground:
        with pytest.raises(NotObserved):
            await looked_for(RESTART, ground, Service(lambda: SILENT), "gateway")
        assert await looked_for(RESTART, ground, Service(lambda: RESET), "gateway")


@pytest.mark.parametrize(
    ("it", "other", "may"),
    [
        (SLOW, SILENT_NODE, False),
        (SLOW, RESTART, False),
        (RESETS, LOST_POD, True),
        (RESTART, LOSS, False),
        (RESTART, SILENT_NODE, False),
        (HANG_UPS, LOSS, True),
        (API_ERRORS, STOPPED, True),
        (API_ERRORS, fault("part_stopped", client="kube-scheduler", hold_s=60), False),
        (fault("webhook_down", hold_s=60), fault("part_stopped", client="kube-controller-manager", hold_s=60), True),
        (fault("webhook_down", hold_s=60), STOPPED, False),
        (NO_QUOTA, NO_ZONE, True),
        (NO_ZONE, NO_QUOTA, False),
        (NO_QUOTA, fault("spot_interruption", nodes=NODES, notice_s=30, then_out_of_stock="spot"), True),
        (NO_QUOTA, fault("spot_interruption", nodes=NODES, notice_s=30), False),
        (SILENT_NODE, SILENT_NODE, False),
        (fault("slow_start", how="rate_limit", hold_s=60), fault("bad_image", deployment="llm", hold_s=60), True),
        (fault("slow_start", how="model", hold_s=60), fault("bad_image", deployment="llm", hold_s=60), False),
        (fault("slow_start", how="model", hold_s=60), fault("slow_start", how="warm_up", hold_s=60), True),
        (fault("slow_start", how="image", hold_s=60), fault("slow_start", how="warm_up", hold_s=60), False),
    ],
)
def test_who_may_show_the_same(it: Fault, other: Fault, may: bool) -> None:
    assert alike(it, other) is may
    assert type(it) in ALIKE or not may
