"""The model server as a container of a hollow node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from random import Random

from fakes.clock import WallClock, parse_stamp
from fakes.config import PlantedBug
from fakes.nodes.gpus import GpuUse
from fakes.nodes.logs import Say
from fakes.nodes.runtime import NO_ANSWER, SIGKILL_CODE
from fakes.timing import Timing
from fakes.vllm.door import MakeDoor
from fakes.vllm.flags import FlagError, parse_flags
from fakes.vllm.http_door import HttpDoor
from fakes.vllm.ledger import Ledger, Note
from fakes.vllm.mischief import Mischief
from fakes.vllm.presets import DEFAULT_PROFILE, PROFILES
from fakes.vllm.server import ModelServer, Phase
from harness.kube.port import Json

log = logging.getLogger(__name__)

PROFILE_ANNOTATION = "gpu-harness.dev/latency-profile"
USAGE_CODE = 2
"""Exit code of a server that did not understand its command line."""
SLOW_LOAD_FACTOR = 30.0
"""Of the planted bug: some seven minutes where the quick preset takes 15 s."""


def _silent(line: str) -> None:
    """For who keeps no logs."""


class VllmContainer:
    """``start`` binds the port and begins to load the model; the port is listened on once it is loaded.

    Without ``wall`` the answers' ``created`` counts from the pod's creation. ``note`` gets the lines of its ledger,
    ``say`` those of its log. ``at`` is where it listens; a free port of 127.0.0.1 if nothing else is said.
    """

    def __init__(
        self,
        pod: Json,
        container: Json,
        *,
        timing: Timing,
        rng: Random,
        bugs: Collection[PlantedBug] = (),
        wall: WallClock | None = None,
        note: Note | None = None,
        door: MakeDoor = HttpDoor,
        say: Say = _silent,
        at: tuple[str, int] | None = None,
    ) -> None:
        self._at = at
        self._say = say
        self._timing = timing
        self._rng = rng
        self._name = str(pod["metadata"]["name"])
        self._server: ModelServer | None = None
        self._load: asyncio.Task[None] | None = None
        self._failed: int | None = None
        self._ledger = Ledger(note)
        self._load_factor = SLOW_LOAD_FACTOR if PlantedBug.MODEL_LOADS_SLOWLY in bugs else 1.0
        self.address: tuple[str, int] | None = None
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        annotations = pod["metadata"].get("annotations") or {}
        try:
            flags = parse_flags([str(word) for word in command])
            name = annotations.get(PROFILE_ANNOTATION, DEFAULT_PROFILE)
            if name not in PROFILES:
                raise FlagError(f"{PROFILE_ANNOTATION}: no profile {name!r}; there are {', '.join(sorted(PROFILES))}")
            self._server = ModelServer(
                flags,
                PROFILES[name],
                timing=timing,
                rng=rng,
                wall=wall or _pod_clock(pod),
                mischief=Mischief.of(bugs, pod, rng),
                ledger=self._ledger,
                door=door,
            )
            self._memory = flags.gpu_memory_utilization
            say(f"INFO [api_server.py] vLLM API server, model {flags.model}")
        except FlagError as error:
            log.error("%s: %s", self._name, error)
            say(str(error))
            self._failed = USAGE_CODE

    async def start(self) -> None:
        if self._server is not None:
            self.address = self._server.bind(*self._at) if self._at else self._server.bind()
            self._load = asyncio.create_task(self._load_model(self._server), name=f"load {self._name}")

    async def _load_model(self, server: ModelServer) -> None:
        load_s = self._timing.draw_s(self._timing.durations.model_load, self._rng)
        await server.load(load_s * self._load_factor)
        self._say("INFO [core.py] init engine (profile, create kv cache, warmup model) done")
        self._say("INFO: Application startup complete.")

    @property
    def ledger(self) -> Ledger:
        """What this process sent; it stays readable after its end."""
        return self._ledger

    def gpu_use(self) -> GpuUse:
        """Weights and KV cache are taken in advance, all at once: what is held says nothing of the load."""
        server = self._server
        if server is None or server.phase in (Phase.LOADING, Phase.EXITED):
            return GpuUse()
        return GpuUse(server.engine.duty.share(asyncio.get_running_loop().time()), self._memory)

    def fail_metrics(self, how: str | None) -> None:
        """``error``: whoever asks for its metrics gets 503. ``frozen``: they stand still. None: as they were."""
        if self._server is not None:
            self._server.fail_metrics(how)

    def freeze(self) -> None:
        """The machine stands still under it."""
        if self._server is not None:
            self._server.engine.freeze()

    def thaw(self) -> None:
        if self._server is not None:
            self._server.engine.thaw()

    def terminate(self) -> None:
        if self._server is not None:
            self._say("INFO [launcher.py] Shutting down FastAPI HTTP server.")
            self._server.terminate()

    def kill(self) -> None:
        if self._load is not None:
            self._load.cancel()
        if self._server is not None:
            self._server.kill()
        elif self._failed is None:
            self._failed = SIGKILL_CODE

    async def wait(self) -> int:
        if self._server is None:
            return self._failed if self._failed is not None else USAGE_CODE
        return await self._server.wait()

    def probe(self, path: str) -> int | None:
        """As a GET would be answered, without the cost of a connection."""
        if self._server is None:
            return None
        status = self._server.health()
        return status if status in (None, NO_ANSWER) or path in ("/health", "/ping") else 404


def _pod_clock(pod: Json) -> WallClock:
    return WallClock(parse_stamp(str(pod["metadata"].get("creationTimestamp") or "1970-01-01T00:00:00Z")))
