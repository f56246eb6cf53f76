"""The life of one server process: load, serve, and the several ways it has of shutting down.

**Load**: the port is bound from the start but not listened on, so connections are refused, and SIGTERM is swallowed.
**Drain** (``--shutdown-timeout`` above 0): what is in flight or queued finishes, new requests get a 500, /health stays
200 and the port open; some seconds after the last request the process exits with 0.
**Abort** (no such timeout, or its end): the port closes at once, the engine dies, and the clients' fate is a race that
a seeded draw decides, with the shares seen on a real server: they hang until they leave (6 of 10), get an error event
(2), or a last event with finish_reason ``abort`` (2).
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Mapping
from random import Random

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.completions import Completions
from fakes.vllm.door import MakeDoor
from fakes.vllm.engine import Engine, EngineLimits
from fakes.vllm.flags import FlagError, ServerFlags
from fakes.vllm.http_door import HttpDoor
from fakes.vllm.ledger import Ledger
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.mischief import NONE, Mischief
from fakes.vllm.presets import LatencyProfile

log = logging.getLogger(__name__)

SIGKILL_CODE = 137
EXIT_S = 0.4
"""From the end of the last request to the exit, scenario seconds; likewise below."""
HANG_EXIT_S = 0.5
LINGER_MIN_S, LINGER_MAX_S = 4.0, 6.0


class Phase(enum.Enum):
    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    ABORTING = "aborting"
    EXITED = "exited"


class AbortForm(enum.Enum):
    HANG = "hang"
    ERROR = "error"
    ABORT = "abort"


ABORT_WEIGHTS = {AbortForm.HANG: 6, AbortForm.ERROR: 2, AbortForm.ABORT: 2}


def engine_limits(flags: ServerFlags, profile: LatencyProfile) -> EngineLimits:
    blocks = flags.num_gpu_blocks_override or profile.kv_blocks
    if flags.max_model_len > (blocks - 1) * flags.block_size:
        raise FlagError(
            f"vllm serve: the model's max seq len ({flags.max_model_len}) is larger than the maximum number of tokens "
            f"that can be stored in KV cache ({(blocks - 1) * flags.block_size}); decrease max_model_len"
        )
    return EngineLimits(
        max_num_seqs=flags.max_num_seqs or profile.max_num_seqs,
        max_num_batched_tokens=flags.max_num_batched_tokens or profile.max_num_batched_tokens,
        kv_blocks=blocks,
        block_size=flags.block_size,
    )


class ModelServer:
    """``mischief`` is what planted bugs make of it."""

    def __init__(
        self,
        flags: ServerFlags,
        profile: LatencyProfile,
        *,
        timing: Timing,
        rng: Random,
        wall: WallClock,
        mischief: Mischief = NONE,
        abort_weights: Mapping[AbortForm, int] = ABORT_WEIGHTS,
        ledger: Ledger | None = None,
        door: MakeDoor = HttpDoor,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._timing = timing
        self._rng = rng
        self._abort_weights = {AbortForm.HANG: 1} if mischief.hangs else dict(abort_weights)
        self._drain_s = 0.0 if mischief.aborts or mischief.hangs else flags.shutdown_timeout_s
        self._crash_at = mischief.crash_at
        limits = engine_limits(flags, profile)
        self._metrics = EngineMetrics(
            flags.names[0],
            max_model_len=flags.max_model_len,
            cache_config={"block_size": str(limits.block_size), "num_gpu_blocks": str(limits.kv_blocks)},
            created_s=wall.now().timestamp(),
        )
        self.engine = Engine(mischief.slowed(profile), limits, self._metrics)
        self.ledger = ledger or Ledger()
        self._completions = Completions(
            flags, self.engine, self._metrics, ledger=self.ledger, rng=rng, wall=wall, on_idle=self._requests_ended,
            on_begun=self._request_begun, mischief=mischief,
        )  # fmt: skip
        self._door = door(self._completions)
        self._timer: asyncio.TimerHandle | None = None
        self._code: asyncio.Future[int] = self._loop.create_future()
        self.phase = Phase.LOADING

    def bind(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Reserves the address; until ``listen``, connections to it are refused."""
        return self._door.bind(host, port)

    async def listen(self) -> None:
        """The model is loaded."""
        if await self._door.open() and self.phase is Phase.LOADING:
            self.phase = Phase.SERVING

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def health(self) -> int | None:
        """What GET /health answers now; None when the connection is refused. It says nothing about queue or drain."""
        return 200 if self.phase in (Phase.SERVING, Phase.DRAINING) else None

    # Ends.

    def terminate(self) -> None:
        """SIGTERM. Swallowed while the engine loads; a second one changes nothing."""
        if self.phase is not Phase.SERVING:
            return
        if self._drain_s > 0:
            self._drain()
        else:
            self._abort()

    def kill(self) -> None:
        """SIGKILL: connections break in the middle of whatever they carried."""
        self._exit(SIGKILL_CODE)

    def _drain(self) -> None:
        self.phase = Phase.DRAINING
        self._completions.draining = True
        if self._completions.replies:
            self._after(self._drain_s, self._abort)
        else:
            self._linger()

    def _linger(self) -> None:
        self._after(self._rng.uniform(LINGER_MIN_S, LINGER_MAX_S), self._linger_over)

    def _linger_over(self) -> None:
        if not self._completions.replies:  # else a request that had just been accepted; its end begins a new linger
            self._exit()

    def _request_begun(self) -> None:
        if self._crash_at is not None and len(self._completions.replies) >= self._crash_at:
            self._loop.call_soon(self._exit, SIGKILL_CODE)  # by the kernel, which is out of memory

    def _requests_ended(self) -> None:
        if self.phase is Phase.DRAINING:
            self._linger()
        elif self.phase is Phase.ABORTING:
            self._after(HANG_EXIT_S, self._exit)

    def _abort(self) -> None:
        self.phase = Phase.ABORTING
        self._door.shut()
        self.engine.stop()
        form = self._rng.choices(list(self._abort_weights), list(self._abort_weights.values()))[0]
        replies = list(self._completions.replies)
        log.debug("aborting %d requests: %s", len(replies), form.value)
        if replies and form is AbortForm.HANG:
            self._cancel_timer()
            return
        for reply in replies:
            if form is AbortForm.ERROR:
                reply.fail()
            else:
                reply.abort()
        self._after(EXIT_S, self._exit)

    def _after(self, scenario_s: float, then: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(self._timing.clock_s(scenario_s), then)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _exit(self, code: int = 0) -> None:
        if self._code.done():
            return
        self.phase = Phase.EXITED
        self._cancel_timer()
        self.engine.stop()
        self._door.shut()
        self._door.cut()
        self._code.set_result(code)
