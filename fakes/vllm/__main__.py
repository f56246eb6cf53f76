"""``python -m fakes.vllm [vLLM's own flags] [--latency-profile NAME] [--model-load-s S]``: one server, alone."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.flags import FlagError, parse_flags
from fakes.vllm.mischief import Mischief
from fakes.vllm.presets import DEFAULT_PROFILE, PROFILES
from fakes.vllm.server import ModelServer


async def serve(own: argparse.Namespace, rest: list[str]) -> int:
    flags = parse_flags(rest)
    # The edge of the process: here the world's clock and chance begin.
    wall = WallClock(datetime.now(UTC))
    profile = PROFILES[own.latency_profile]
    server = ModelServer(
        flags, profile, timing=Timing(own.time_scale), rng=Random(own.fake_seed), wall=wall,
        mischief=Mischief(aborts=own.abort_on_sigterm),
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.terminate)
    host, port = server.bind(flags.host, flags.port)
    await asyncio.sleep(own.model_load_s)
    await server.listen()
    print(f"serving {', '.join(flags.names)} on http://{host}:{port}", flush=True)
    return await server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fakes.vllm", allow_abbrev=False)
    parser.add_argument("--latency-profile", choices=sorted(PROFILES), default=DEFAULT_PROFILE)
    parser.add_argument("--model-load-s", type=float, default=0.0, help="clock seconds until the port is listened on")
    parser.add_argument("--time-scale", type=float, default=1.0, help="scenario seconds per clock second")
    parser.add_argument("--abort-on-sigterm", action="store_true", help="the planted bug: never drain")
    parser.add_argument("--fake-seed", type=int, default=0)
    own, rest = parser.parse_known_args()
    try:
        return asyncio.run(serve(own, rest))
    except (FlagError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
