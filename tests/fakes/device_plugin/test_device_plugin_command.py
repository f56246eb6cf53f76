"""The command: environment, file and socket turn the same switches; a bad order changes nothing and says why."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kubelet_side import WITHIN_S, KubeletSide, calling

from fakes.device_plugin.orders import taken_of

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
Words = tuple[str, ...]


async def _ask(*words: str) -> tuple[int, str, str]:
    process = await _spawn(words, {})
    out, err = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def _spawn(words: Words, env: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fakes.device_plugin", *words, env={**os.environ, "NODE_NAME": "node-a", **env},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


@asynccontextmanager
async def _plugin(folder: Path, *words: str, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await _spawn(("--dir", str(folder), *words), env)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), WITHIN_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_switches_by_environment_file_and_socket(folder: Path, kubelet: KubeletSide) -> None:
    file, socket = folder / "switches.json", folder / "orders"
    words = ("--resources", f"{GPU}=4", f"{MIG}=2", "--switches", str(file), "--socket", str(socket))
    async with (
        _plugin(folder, *words, GPU_PLUGIN_UNHEALTHY="1", GPU_PLUGIN_COUNT="3"),
        calling(folder, await kubelet.has_registered(1)) as (_, lists),
    ):
        assert list((await lists.nth(1)).values()) == ["Unhealthy", "Healthy", "Healthy"]
        _replace(file, {"*": {"unhealthy": 2}, MIG: {"count": 1}})
        assert list((await lists.nth(2)).values()).count("Unhealthy") == 2
        assert len(lists.seen[1]) == 4, "a file is all that is turned"
        assert taken_of(file).read_bytes() == file.read_bytes(), "whoever wrote it can see that it holds"
        code, out, _ = await _ask("turn", "unhealthy", "4", "--resource", GPU, "--socket", str(socket))
        assert code == 0
        assert json.loads(out)[GPU]["switches"] == {"unhealthy": 4}
        assert json.loads(out)[MIG]["switches"] == {"count": 1, "unhealthy": 2}
        assert set((await lists.nth(3)).values()) == {"Unhealthy"}
        file.unlink()
        assert set((await lists.nth(4)).values()) == {"Healthy"}
    assert not socket.exists()


async def test_a_bad_order_changes_nothing(folder: Path, kubelet: KubeletSide) -> None:
    file, socket = folder / "switches.json", folder / "orders"
    async with _plugin(folder, "--switches", str(file), "--socket", str(socket)) as process:
        request = await kubelet.has_registered(1)
        async with calling(folder, request) as (_, lists):
            await lists.nth(1)
            assert process.stdout is not None
            for bad, why in ((b"{", "not JSON"), (b'{"*": {"unhealty": 1}}', "unhealty"), (b"[]", "RESOURCE")):
                file.write_bytes(bad)
                assert why in (await _said(process.stdout, "bad_order"))["error"]
            file.write_text(json.dumps({"*": {"unhealthy": 3, "allocate_s": "x"}}))
            assert "allocate_s" in (await _said(process.stdout, "bad_order"))["error"]
            file.write_text('{"*": {"allocate_s": 1' + "0" * 400 + "}}")
            assert "allocate_s" in (await _said(process.stdout, "bad_order"))["error"]
            file.write_text('{"*": ' + "[" * 100_000)
            assert "not JSON" in (await _said(process.stdout, "bad_order"))["error"]
            for value, why in (("1" + "0" * 30, "to 4096"), ("4097", "to 4096"), ("x" * 70_000, "not JSON")):
                code, out, err = await _ask("turn", "count", value, "--socket", str(socket))
                assert (code, why in json.loads(out)["error"], err) == (64, True, "")
            code, out, _ = await _ask("turn", "count", "lots", "--socket", str(socket))
            assert (code, "whole number" in json.loads(out)["error"]) == (64, True)
            code, out, _ = await _ask("show", "--socket", str(socket))
            assert (code, json.loads(out)[GPU]["switches"]) == (0, {})
            assert json.loads(out)[GPU]["devices"] == lists.seen[0]
            assert len(lists.seen) == 1


async def test_bad_words_are_answered_in_one_line(tmp_path: Path) -> None:
    code, _, err = await _ask("--resources", "gpu=1", "--dir", str(tmp_path))
    assert (code, "Traceback" in err, "DOMAIN/NAME" in err) == (64, False, True)
    code, _, err = await _ask("show", "--socket", str(tmp_path / "none"))
    assert (code, "Traceback" in err) == (1, False)
    code, out, _ = await _ask("--help")
    assert code == 0
    assert "allocate_hangs" in out


@pytest.mark.parametrize(
    "words, env, why",
    [
        ((), {"GPU_PLUGIN_COUNT": "many"}, "count"),
        ((), {"GPU_PLUGIN_UNHEALTY": "2"}, "there is no switch unhealty"),
        (("--resources", f"{GPU}=100000"), {}, "at most 4096"),
        (("--numa-nodes", "0"), {}, "there is at least one"),
    ],
)
async def test_what_means_nothing_is_refused(folder: Path, words: Words, env: dict[str, str], why: str) -> None:
    process = await _spawn(("--dir", str(folder), *words), env)
    _, err = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert (process.returncode, "Traceback" in err.decode(), why in err.decode()) == (64, False, True)


async def test_the_variables_of_a_service_of_that_name_are_none_of_ours(folder: Path, kubelet: KubeletSide) -> None:
    async with _plugin(folder, GPU_PLUGIN_SERVICE_HOST="10.0.0.1", GPU_PLUGIN_PORT="tcp://10.0.0.1:80"):
        await kubelet.has_registered(1)


async def _said(out: asyncio.StreamReader, event: str) -> dict[str, Any]:
    async with asyncio.timeout(WITHIN_S):
        while True:
            line = json.loads(await out.readline())
            if line["event"] == event:
                found: dict[str, Any] = line
                return found


def _replace(file: Path, content: object) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.rename(file)


@pytest.fixture(autouse=True)
def _no_switches_of_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GPU_PLUGIN_")]:
        monkeypatch.delenv(name)
