"""Whether a cluster of others has the components that an experiment is about, by the APIs that it serves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.errors import TargetError
from harness.kube.http import HttpKube
from harness.kube.port import ApiError
from harness.stack.description import addons


async def check_installed(kube: HttpKube, names: Iterable[str]) -> None:
    """TargetError that names each component that is not there, and how people install it."""
    missing = [name for name in names if not await _serves(kube, addons()[name].addon.finds)]
    if missing:
        described = [addons()[name] for name in missing]
        lines = [f"{d.name} ({d.addon.finds} is not served)" for d in described]
        ways = "; ".join(f"{d.addon.install} ({d.addon.page})" for d in described)
        raise TargetError("\n    ".join(["the cluster lacks what the experiment is about:", *lines]), hint=ways)


async def _serves(kube: HttpKube, finds: str) -> bool:
    """``finds`` is plural.group of a kind, or version.group of an aggregated API."""
    head, _, group = finds.partition(".")
    try:
        if re.fullmatch(r"v\d\w*", head):
            await kube.raw(f"/apis/{group}/{head}")
            return True
        for version in (await kube.raw(f"/apis/{group}")).get("versions", ()):
            served = await kube.raw(f"/apis/{version['groupVersion']}")
            if any(resource["name"] == head for resource in served.get("resources", ())):
                return True
    except ApiError:  # not found, or an aggregated API whose server does not answer
        return False
    return False
