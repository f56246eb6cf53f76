"""Each real component for itself: up on a real control plane, does one thing that proves it reconciles, down again.

``smoke.py [NAME...]``; by default the cheap ones. Exits 77 with the reason where programs are missing, and 1 where that
is not allowed (``REQUIRE=1``).
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from one_component import cannot_run, target_of
from proofs import PROOFS

from harness.errors import HarnessError, TargetError
from harness.kube.http import HttpKube
from harness.stack import only_loopback
from harness.stack.description import addons


async def prove(name: str, folder: Path) -> str:
    """What was seen, in words; TargetError for what was not."""
    target = target_of(name, folder)
    try:
        connection = await target.up()
        pids = target.program_pids()
        async with HttpKube(connection.kubeconfig) as kube:
            seen = await PROOFS[name](kube, target.standing)
        if (died := target.died()) is not None:
            raise TargetError(f"{seen}; and then {died}")
        if only_loopback.possible() and (heard := heard_by_others(pids)):
            raise TargetError(f"{seen}, and listens to other machines: {', '.join(heard)}")
    finally:
        await target.down()
    if left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        raise TargetError(f"{name} is down, and processes {left} are left")
    if (folder / "target" / "control-plane").exists():
        raise TargetError(f"{name} is down, and its files are left")
    return seen


def heard_by_others(pids: Sequence[int]) -> list[str]:
    """Addresses other than loopback on which these processes and their children listen."""
    found = []
    for pid in pids:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            for held in process.net_connections("tcp"):
                if held.status == psutil.CONN_LISTEN and not is_loopback(held.laddr.ip):
                    found.append(f"{process.name()} on {held.laddr.ip}:{held.laddr.port}")
    return found


def is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROOFS))
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in PROOFS]:
        parser.error(f"no proof of {', '.join(unknown)}; there is: {', '.join(PROOFS)}")
    names = args.names or [name for name, described in addons().items() if described.addon.cheap]
    if code := cannot_run(names):
        return code
    failed = []
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = asyncio.run(prove(name, Path(folder)))
            except HarnessError as error:
                failed.append(name)
                said = f"FAILED: {error}"
        print(f"{name}: {said} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)} components reconcile" + (f"; not {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
