"""The life of one server process: load, serve, and the several ways it has of shutting down.

**Load**: the port is bound from the start but not listened on, so connections are refused, and SIGTERM is swallowed.
**Drain** (``--shutdown-timeout`` above 0): what is in flight or queued finishes, new requests get a 500, /health stays
200 and the port open; some seconds after the last request the process exits with 0.
**Abort** (no such timeout, or its end): the port closes at once, the engine dies, and the clients' fate is a race that
a seeded draw decides, with the shares seen on a real server: they hang until they leave (6 of 10), get an error event
(2), or a last event with finish_reason ``abort`` (2).
**Death of the engine** alone: streams end with an error event, for a moment new requests get a 500 and /health a 503,
then the port closes and the process exits with 0.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Mapping
from random import Random

from fakes.clock import WallClock
from fakes.nodes.runtime import NO_ANSWER, SIGKILL_CODE
from fakes.timing import Timing
from fakes.vllm.completions import Completions
from fakes.vllm.door import MakeDoor
from fakes.vllm.engine import Engine, EngineLimits
from fakes.vllm.flags import BLOCK_SIZE, FlagError, ServerFlags
from fakes.vllm.http_door import HttpDoor
from fakes.vllm.ledger import Ledger
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.mischief import NONE, Mischief
from fakes.vllm.presets import LatencyProfile

log = logging.getLogger(__name__)

EXIT_S = 0.4
"""From the end of the last request to the exit, scenario seconds; likewise below."""
HANG_EXIT_S = 0.5
DEAD_OPEN_S, DEAD_EXIT_S = 0.2, 0.6
"""How long the port of a server whose engine has died stays open, and the process there."""
LINGER_MIN_S, LINGER_MAX_S = 4.0, 6.0


class Phase(enum.Enum):
    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    ABORTING = "aborting"
    DYING = "dying"
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
        prefix_caching=flags.enable_prefix_caching,
        by_priority=flags.by_priority,
    )


def cache_config(flags: ServerFlags, limits: EngineLimits) -> dict[str, str]:
    """The labels of ``vllm:cache_config_info``: what a server of vLLM 0.32 shows of a plain decoder's cache."""
    tokens = limits.kv_blocks * limits.block_size
    off = ("is_attention_free", "kv_sharing_fast_prefill", "use_kda_recoverssm", "use_replayssm")
    nothing = (
        "cache_hit_alignment_tokens", "hash_block_size", "kv_cache_layout", "kv_offloading_size", "mamba_block_size",
        "mamba_page_size_padded", "num_cpu_blocks", "prefix_match_unit", "skip_page_size_padded", "sliding_window",
    )  # fmt: skip
    return {
        "_block_size_resolved": "True",
        "block_size": str(limits.block_size),
        "cache_dtype": "auto",
        "effective_attention_block_size": str(limits.block_size),
        "enable_mamba_shared_prefix_checkpoint": "False",
        "enable_prefix_caching": str(limits.prefix_caching),
        "gpu_memory_utilization": str(flags.gpu_memory_utilization),
        **dict.fromkeys(off, "False"),
        "kv_cache_dtype_skip_layers": "[]",
        "kv_cache_max_concurrency": str(round(tokens / flags.max_model_len, 2)),
        "kv_cache_memory_bytes": "None",
        "kv_cache_size_tokens": str(tokens),
        "kv_offloading_backend": "native",
        "mamba_cache_dtype": "auto",
        "mamba_cache_mode": "none",
        "mamba_ssm_cache_dtype": "auto",
        "num_gpu_blocks": str(limits.kv_blocks),
        "num_gpu_blocks_override": str(flags.num_gpu_blocks_override),
        "prefix_cache_retention_interval": "0",
        "prefix_caching_hash_algo": "sha256",
        "replayssm_buffer_len": "16",
        "swa_bounded_replay": "True",
        "user_specified_block_size": str(flags.block_size != BLOCK_SIZE),
        **dict.fromkeys(nothing, "None"),
    }


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
        self._mischief = mischief
        self._begun = 0
        limits = engine_limits(flags, profile)
        self._metrics = EngineMetrics(
            flags.names[0],
            max_model_len=flags.max_model_len,
            cache_config=cache_config(flags, limits),
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

    def fail_metrics(self, how: str | None) -> None:
        """As ``VllmContainer.fail_metrics``."""
        self._completions.metrics_fail = how == "error"
        self._completions.metrics.stand_still(how == "frozen")

    def bind(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Reserves the address; until ``listen``, connections to it are refused."""
        return self._door.bind(host, port)

    async def load(self, clock_s: float) -> None:
        """Loads the model for so long, and then serves."""
        early = self._mischief.healthy_while_loading
        if early:
            self.engine.freeze()
            await self.listen()
        await asyncio.sleep(clock_s)
        if early:
            self.engine.thaw()
        else:
            await self.listen()

    async def listen(self) -> None:
        """The model is loaded."""
        if await self._door.open() and self.phase is Phase.LOADING:
            self.phase = Phase.SERVING
            self._mischief.begin(self.engine)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)

    def health(self) -> int | None:
        """What GET /health answers now; None when the connection is refused. It says nothing about queue or drain."""
        if self._completions.silent:
            return NO_ANSWER
        if self.phase is Phase.DYING:
            return 503
        return 200 if self.phase in (Phase.SERVING, Phase.DRAINING) else None

    # Ends.

    def terminate(self) -> None:
        """SIGTERM. Swallowed while the engine loads; a second one changes nothing."""
        if self.phase is not Phase.SERVING or self._completions.silent:
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

    def engine_dies(self) -> None:
        if self.phase not in (Phase.SERVING, Phase.DRAINING):
            return
        self.phase = Phase.DYING
        self._cancel_timer()
        self._completions.dead = True
        self.engine.stop()
        for reply in list(self._completions.replies):
            reply.fail()
        self._after(DEAD_OPEN_S, self._dead_shut)

    def _dead_shut(self) -> None:
        self._door.shut()
        self._after(DEAD_EXIT_S - DEAD_OPEN_S, self._exit)

    def stand_still(self) -> None:
        """The whole process: connections are taken, by the kernel, and nothing is answered any more."""
        self._completions.silent = True
        self.engine.freeze()

    def _request_begun(self) -> None:
        mischief, in_flight = self._mischief, len(self._completions.replies)
        self._begun += 1
        if mischief.crash_at is not None and in_flight >= mischief.crash_at:
            self._loop.call_soon(self._exit, SIGKILL_CODE)  # by the kernel, which is out of memory
        if mischief.engine_dies_at is not None and in_flight >= mischief.engine_dies_at:
            self._loop.call_soon(self.engine_dies)
        if mischief.engine_stuck_after is not None and self._begun >= mischief.engine_stuck_after:
            self.engine.freeze()
        if mischief.silent_after is not None and self._begun >= mischief.silent_after:
            self.stand_still()

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
