"""A program that asks for all interfaces listens on 127.0.0.1 and nowhere else; whatever else it asks for, it gets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.stack import only_loopback
from harness.stack.guard import Guard

BINDS = """
import socket, sys
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.5")):
    listener = socket.socket(family)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind((address, 0))
    listener.listen()
    print(listener.getsockname()[0])
socket.create_connection(("127.0.0.5", listener.getsockname()[1]))
print("reached")
print(*[line.removeprefix("0::") for line in open("/proc/self/cgroup").read().split() if line.startswith("0::")])
"""


LEAVES_ITS_GROUP = "from harness.stack.only_loopback import group; print(group(), end='')"


def guarded(*options: str) -> list[str]:
    argv = [sys.executable, "-m", "harness.stack.guard", *options, sys.executable, "-c", BINDS]
    return subprocess.run(argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout.split()


def test_a_program_binds_where_it_likes() -> None:
    assert guarded()[:4] == ["0.0.0.0", "::", "127.0.0.5", "reached"]


def test_under_a_guard_that_lets_nobody_in_it_is_loopback_and_the_group_goes_with_it() -> None:
    if not only_loopback.possible():
        pytest.skip("no root, no cgroup v2, or no bpf(2) here")
    *told, group = guarded("--loopback-only")
    assert told == ["127.0.0.1", "::ffff:127.0.0.1", "127.0.0.5", "reached"]
    name = Path(group).name
    assert name.startswith("gpu-harness-loopback-")
    assert not (only_loopback._own_group() / name).exists()


def test_a_group_whose_owner_is_dead_goes_when_the_next_is_made() -> None:
    if not only_loopback.possible():
        pytest.skip("no root, no cgroup v2, or no bpf(2) here")
    dead = subprocess.run([sys.executable, "-c", LEAVES_ITS_GROUP], capture_output=True, text=True, check=True).stdout
    assert Path(dead).exists()
    only_loopback.group().rmdir()
    assert not Path(dead).exists()


def test_what_cannot_be_had_is_an_error_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    if not only_loopback.possible():
        pytest.skip("no root, no cgroup v2, or no bpf(2) here")
    monkeypatch.setattr(only_loopback, "_SYSCALL", {})
    with pytest.raises(OSError, match="is not known on"):
        Guard(None, loopback_only=True)
    assert not (only_loopback._own_group() / f"gpu-harness-loopback-{os.getpid()}").exists()
