"""A server whose caches lag behind its own writes is asked again; one that means its refusal is told at once."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store
from harness.errors import TargetError
from harness.kube.port import CONFIG_MAP, ApiError, Json, Resource
from harness.targets import manifests
from harness.targets.manifests import apply

OBJECT: tuple[Resource, Json] = (CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})


class Lagging(LocalKube):
    """Refuses the first ``refusals`` creations, as admission does that has not yet seen what was created before."""

    def __init__(self, refusals: int, status: int = 403) -> None:
        super().__init__(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "test")
        self.asked = 0
        self._refusals = refusals
        self._status = status

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        self.asked += 1
        if self.asked <= self._refusals:
            raise ApiError(self._status, "Forbidden", "no PriorityClass with name training was found")
        return await super().create(resource, obj, namespace)


@pytest.mark.looptime
async def test_a_refusal_that_passes_is_waited_out() -> None:
    kube = Lagging(refusals=3)
    await apply(kube, [OBJECT])
    assert (await kube.get(CONFIG_MAP, "c", "default"))["metadata"]["name"] == "c"
    await apply(kube, [OBJECT])  # being there already is no error


@pytest.mark.looptime
@pytest.mark.parametrize(("status", "asked_at_least"), [(403, 20), (422, 1)])
async def test_a_refusal_that_stays_is_told(status: int, asked_at_least: int) -> None:
    kube = Lagging(refusals=10_000, status=status)
    with pytest.raises(TargetError, match=r"refused ConfigMap c: .*no PriorityClass"):
        await apply(kube, [OBJECT])
    assert asked_at_least <= kube.asked <= manifests.ADMISSION_LAG_S / 0.1 + 2
    assert status == 403 or kube.asked == 1
