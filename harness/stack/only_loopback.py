"""A program that insists on all interfaces gets 127.0.0.1 in their place, where root allows.

It runs in a control group of its own to which two small programs of the kernel are attached: what it binds to 0.0.0.0
or to :: is bound to 127.0.0.1 (``BPF_CGROUP_INET4_BIND`` and ``INET6_BIND`` of linux/bpf.h). Unlike in a network
namespace, all that listens on this machine stays within its reach: the API server, and the pods' addresses in 127/8.
The group goes with the program; one whose owner was killed is removed when the next is made.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path

_SYSCALL = {"x86_64": 321, "aarch64": 280}
"""The number of bpf(2), by machine; both are little-endian, as the addresses below."""
_PROG_LOAD, _PROG_ATTACH = 5, 8
_CGROUP_SOCK_ADDR = 18
_INET4_BIND, _INET6_BIND = 8, 9
_ALLOW_MULTI = 2
_LOOPBACK, _MAPPED = 0x0100007F, 0xFFFF0000
"""127.0.0.1, and the third word of ::ffff:127.0.0.1, in the network's order."""
_IP4, _IP6 = 4, 8
"""Where the addresses stand in struct bpf_sock_addr."""
_PREFIX = "gpu-harness-loopback-"


def group() -> Path:
    """A new control group, below our own, whose processes bind to loopback in place of all interfaces. OSError where
    that cannot be had: no root, no cgroup v2, another system."""
    own = _own_group()
    for left in own.glob(f"{_PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(_PREFIX)).exists():
            with suppress(OSError):  # another was faster
                left.rmdir()
    made = own / f"{_PREFIX}{os.getpid()}"
    made.mkdir()
    try:
        there = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for attach_type, words in ((_INET4_BIND, [(_IP4, _LOOPBACK)]), (_INET6_BIND, _V6)):
                _attach(there, attach_type, _program(words))
        finally:
            os.close(there)
    except OSError:
        made.rmdir()
        raise
    return made


@cache
def possible() -> bool:
    """Whether it can be had here. Found out by having it."""
    try:
        group().rmdir()
    except OSError:
        return False
    return True


def enter(made: Path) -> None:
    """This process, and all that it starts from now on."""
    (made / "cgroup.procs").write_text(str(os.getpid()))


_V6 = [(_IP6, 0), (_IP6 + 4, 0), (_IP6 + 8, _MAPPED), (_IP6 + 12, _LOOPBACK)]


def _own_group() -> Path:
    """Of the unified hierarchy, wherever it is mounted."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if path is None or root is None:
        raise OSError("no cgroup v2 is mounted")
    return Path(root + path)


def _program(words: list[tuple[int, int]]) -> bytes:
    """Where every word of the address is 0 it becomes ``words``, and the bind goes on in either case."""
    code = []
    for at, (offset, _) in enumerate(words):
        after = 2 * (len(words) - at - 1) + 2 * len(words)
        code += [_insn(0x61, 2, 1, offset), _insn(0x55, 2, 0, after)]  # r2 = it; on to the end unless r2 is 0
    for offset, value in words:
        code += [_insn(0xB4, 3, 0, 0, value), _insn(0x63, 1, 3, offset)]  # w3 = value; it = w3
    return b"".join([*code, _insn(0xB7, 0, 0, 0, 1), _insn(0x95)])  # r0 = 1: allowed


def _insn(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhI", code, of << 4 | to, offset, value)


def _attach(there: int, attach_type: int, code: bytes) -> None:
    insns, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    head = (_CGROUP_SOCK_ADDR, len(code) // 8, ctypes.addressof(insns), ctypes.addressof(licence))
    program = _bpf(_PROG_LOAD, struct.pack("<IIQQIIQII16sII", *head, 0, 0, 0, 0, 0, b"only_loopback", 0, attach_type))
    try:
        _bpf(_PROG_ATTACH, struct.pack("<IIIII", there, program, attach_type, _ALLOW_MULTI, 0))
    finally:
        os.close(program)


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of bpf(2) is not known on {platform.machine()}")
    given = ctypes.create_string_buffer(attributes, len(attributes))
    found: int = ctypes.CDLL(None, use_errno=True).syscall(number, command, given, len(attributes))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf: {os.strerror(ctypes.get_errno())}")
    return found
