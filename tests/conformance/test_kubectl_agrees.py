"""kubectl says the same of both servers, command by command. Opt-in with the whole suite (``CONFORMANCE=all``)."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web
from everyday import COMMANDS
from real import real_server

from fakes.clock import WallClock
from fakes.kube import Store, make_app
from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE, KUBECTL
from harness.stack.find import Binaries, find_binaries

NAMESPACE = "everyday"
NODE = """
apiVersion: v1
kind: Node
metadata: {name: everyday-n1}
status:
  conditions: [{type: Ready, status: "False"}]
  capacity: {cpu: "4", nvidia.com/gpu: "4", pods: "110"}
"""
_SAME = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "DATE"),
    (r"10\.96\.\d+\.\d+", "CLUSTER-IP"),
    (r"kube-api-access-\w{5}", "kube-api-access"),
    (r'(resourceVersion"?: )"\d+"', r"\1VERSION"),
    (r"\b\d+(s|m\d+s|m)\b", "AGE"),
    (r" +", " "),
)


def binaries() -> Binaries:
    if os.environ.get("CONFORMANCE") != "all":
        pytest.skip("eighty commands on each side: only with CONFORMANCE=all")
    try:
        return find_binaries((*CONTROL_PLANE, KUBECTL))
    except TargetError as missing:
        if os.environ.get("REQUIRE") == "1":
            raise
        pytest.skip(str(missing))


async def said(kubectl: str, config: Path, home: Path, command: str, stdin: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        kubectl,
        "-n",
        NAMESPACE,
        *command.split(" "),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(config)},
    )
    try:
        async with asyncio.timeout(60):
            out, _ = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = f"{out.decode()}exit code {process.returncode}"
    for pattern, name in _SAME:
        text = re.sub(pattern, name, text)
    return text


async def test_everyday_commands_say_the_same(tmp_path: Path) -> None:
    found = binaries()
    kubectl = found.path(KUBECTL)
    store = Store(WallClock(datetime.now(UTC)), Random(1))
    runner = web.AppRunner(make_app(store), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, number = runner.addresses[0][:2]
    ours = tmp_path / "ours.kubeconfig"
    ours.write_text(yaml.safe_dump(_config(f"http://{host}:{number}")))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    differing: list[str] = []
    async with real_server(found, tmp_path / "control-plane") as real:
        sides = ((ours, tmp_path / "a"), (real.kubeconfig, tmp_path / "b"))
        for command, stdin in (
            ("create -f -", NODE),
            (f"create namespace {NAMESPACE}", ""),
            ("wait sa/default --for=create --timeout=20s", ""),
        ):
            for config, home in sides:
                text = await said(kubectl, config, home, command, stdin)
                assert text.endswith("exit code 0"), text
        for entry in COMMANDS:
            command, stdin = entry if isinstance(entry, tuple) else (entry, "")
            command, stdin = command.replace("NS", NAMESPACE), stdin.replace("NS", NAMESPACE)
            one, other = await asyncio.gather(*(said(kubectl, c, h, command, stdin) for c, h in sides))
            if one != other:
                lines = difflib.unified_diff(other.splitlines(), one.splitlines(), "real", "ours", lineterm="", n=1)
                differing.append("\n".join([f"kubectl {command}", *lines]))
    await runner.cleanup()
    assert not differing, "\n".join(differing)


def _config(url: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ours",
        "clusters": [{"name": "ours", "cluster": {"server": url}}],
        "users": [{"name": "ours", "user": {}}],
        "contexts": [{"name": "ours", "context": {"cluster": "ours", "user": "ours"}}],
    }
