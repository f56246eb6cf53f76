"""What a cluster of others has is seen by the APIs it serves; what it lacks is told with how to get it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import Store, make_app
from harness.errors import TargetError
from harness.kube.http import HttpKube
from harness.stack.installed import check_installed


@pytest.fixture
async def kube(tmp_path: Path) -> AsyncIterator[HttpKube]:
    runner = web.AppRunner(make_app(Store(WallClock(datetime.now(UTC)), Random(1))), shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    async with HttpKube(tmp_path / "kubeconfig") as kube:
        yield kube
    await runner.cleanup()


async def test_what_is_served_is_installed(kube: HttpKube) -> None:
    await check_installed(kube, ["karpenter", "lws"])


async def test_what_is_missing_comes_with_how_people_install_it(kube: HttpKube) -> None:
    with pytest.raises(TargetError) as lacking:
        await check_installed(kube, ["karpenter", "keda", "prometheus-adapter"])
    said = str(lacking.value)
    assert "keda (scaledobjects.keda.sh is not served)" in said
    assert "helm install keda" in said
    assert "prometheus-adapter (v1beta1.custom.metrics.k8s.io is not served)" in said
    assert "karpenter" not in said
