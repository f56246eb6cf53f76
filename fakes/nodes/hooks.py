"""Lifecycle hooks of a container: sleep, exec, httpGet."""

from __future__ import annotations

import asyncio

from fakes.nodes.runtime import NO_ANSWER
from fakes.nodes.shell import Get, NotUnderstood, Shell
from fakes.timing import Timing
from harness.kube.port import Json


class HookFailed(Exception):
    """It did not succeed, for whatever reason."""


async def run_hook(hook: Json, shell: Shell, get: Get, timing: Timing) -> None:
    """Raises ``HookFailed``. A hook has no end of its own: whoever waits for it knows when the grace is over."""
    if "sleep" in hook:
        await asyncio.sleep(timing.clock_s(float(hook["sleep"].get("seconds") or 0)))
    elif "exec" in hook:
        try:
            code = await shell.run([str(word) for word in hook["exec"].get("command") or ()])
        except NotUnderstood as error:
            raise HookFailed(f"a hollow container does not know {error}") from error
        if code != 0:
            raise HookFailed(f"exit status {code}")
    elif "httpGet" in hook:
        status = await get(hook["httpGet"].get("path") or "/")
        if status is None or status == NO_ANSWER or status >= 400:
            raise HookFailed("the request failed")
