"""``python -m fakes.vllm [vLLM's own flags] [--latency-profile NAME] …``: one server, alone."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from datetime import UTC, datetime
from random import Random
from typing import NoReturn

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.flags import FlagError, add_flags, flags_of, refuse_unknown, spelled
from fakes.vllm.mischief import Mischief
from fakes.vllm.presets import DEFAULT_PROFILE, PROFILES, SOURCES
from fakes.vllm.server import ModelServer

USAGE_CODE = 2
TROUBLE = "of the fake: what goes wrong"
DESCRIPTION = """\
A model server that answers as vLLM 0.32 does, without a GPU and without a model: its HTTP, its streams, its
/metrics, its scheduler, and its ways of shutting down. It takes vLLM's own flags for what it models; flags that only
concern speed or logging change nothing; every other flag is refused."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


def parser() -> Parser:
    lines = [f"  {name:24}{source}" for name, source in SOURCES.items()]
    made = Parser(
        prog="python -m fakes.vllm",
        usage="python -m fakes.vllm [MODEL] [vLLM's own flags] [flags of the fake]",
        description=DESCRIPTION,
        epilog="latency profiles, and where their figures are from:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_flags(made)
    own = made.add_argument_group("of the fake: its speed and its chance")
    own.add_argument(
        "--latency-profile", choices=sorted(PROFILES), default=DEFAULT_PROFILE, metavar="NAME", help="below"
    )
    own.add_argument("--model-load-s", type=float, default=0.0, metavar="S", help="until the weights are loaded")
    own.add_argument("--warm-up-s", type=float, default=0.0, metavar="S", help="after that, until the port is open")
    own.add_argument("--time-scale", type=float, default=1.0, metavar="X", help="scenario seconds per clock second")
    own.add_argument("--fake-seed", type=int, default=0, metavar="N", help="of ids and of how an abort ends")
    _add_trouble(made.add_argument_group(TROUBLE))
    return made


def _add_trouble(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--abort-on-sigterm", action="store_true", help="never drains, whatever --shutdown-timeout says")
    group.add_argument("--hang-on-sigterm", action="store_true", help="the same, and its clients hear nothing of it")
    group.add_argument("--healthy-while-loading", action="store_true", help="/health says 200 before it can serve")
    group.add_argument("--slow-gpu-step-s", type=float, default=0.0, metavar="S", help="no step is shorter")
    group.add_argument("--late-s", type=float, default=0.0, metavar="S", help="each request waits before the engine")
    group.add_argument("--stutters", action="store_true", help="stands still for a second now and then")
    group.add_argument("--failing-share", type=float, default=0.0, metavar="0..1", help="requests answered with a 500")
    group.add_argument("--busy-at", type=int, metavar="N", help="answers 429 from N requests in flight on")
    group.add_argument("--oom-at", type=int, metavar="N", help="is killed (137) when N requests are in flight")
    group.add_argument("--engine-dies-at", type=int, metavar="N", help="the engine dies when N requests are in flight")
    group.add_argument("--engine-stuck-after", type=int, metavar="N", help="no step after N requests; /health says 200")
    group.add_argument("--silent-after", type=int, metavar="N", help="answers nothing at all after N requests")


def mischief_of(args: argparse.Namespace, rng: Random) -> Mischief:
    return Mischief(
        aborts=args.abort_on_sigterm,
        hangs=args.hang_on_sigterm,
        healthy_while_loading=args.healthy_while_loading,
        step_s=args.slow_gpu_step_s,
        stutters=args.stutters,
        late_s=args.late_s,
        failing_share=args.failing_share,
        crash_at=args.oom_at,
        engine_dies_at=args.engine_dies_at,
        engine_stuck_after=args.engine_stuck_after,
        silent_after=args.silent_after,
        busy_at=args.busy_at,
        rng=rng,
    )


async def serve(args: argparse.Namespace) -> int:
    flags = flags_of(args)
    # The edge of the process: here the world's clock and chance begin.
    wall, rng = WallClock(datetime.now(UTC)), Random(args.fake_seed)
    server = ModelServer(
        flags, PROFILES[args.latency_profile], timing=Timing(args.time_scale), rng=rng, wall=wall,
        mischief=mischief_of(args, rng),
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.terminate)
    host, port = server.bind(flags.host, flags.port)
    print(f"loading {flags.model} on {host}:{port}", flush=True)
    await server.load((args.model_load_s + args.warm_up_s) / args.time_scale)
    print(f"serving {', '.join(flags.names)} on http://{host}:{port}", flush=True)
    return await server.wait()


def main(argv: list[str]) -> int:
    try:
        args, unknown = parser().parse_known_args(spelled(argv))
        refuse_unknown(unknown, parser())
        return asyncio.run(serve(args))
    except (FlagError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_CODE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
