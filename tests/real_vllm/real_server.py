"""One real vLLM on a port of its own, as the process runtime of a hollow node runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from real_install import RealVllm, env, folders_of

from fakes.config import ProcessImage
from fakes.nodes.process_container import ProcessContainer

UP_S = 900.0
"""Some 40 s on a quiet machine; on one with thirty busy programs 400 s were too few."""
STOP_S = 40.0
ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
"""The engine computes in its own process, as on one GPU, and with one thread. Else it polls a worker of its own by
giving its processor away over and over: so it waits for one most of the time, and the run calls the machine crowded."""


def process_image(places: RealVllm) -> ProcessImage:
    command = (
        str(places.program), "serve", str(places.model), "--served-model-name", "tiny", "--load-format", "dummy",
        "--host", "{host}", "--port", "{port}", "--enforce-eager", "{args}",
    )  # fmt: skip
    return ProcessImage("vllm-cpu", command, tuple(env(places).items()), folders_of(places))


class NotServing(Exception):
    """It was started and does not answer: says what became of it, and where its words are."""


@asynccontextmanager
async def real_server(places: RealVllm, log: Path, *args: str) -> AsyncIterator[tuple[str, int]]:
    with log.open("w") as lines:
        container = {"name": "vllm", "args": list(args)}
        server = ProcessContainer(
            {"metadata": {"name": "real"}}, container, process_image(places), lambda line: print(line, file=lines)
        )
        await server.start()
        ended = asyncio.create_task(server.wait())
        try:
            try:
                async with asyncio.timeout(UP_S):
                    while await server.probe("/health") != 200:
                        if ended.done():
                            raise NotServing(f"vLLM ended with {ended.result()} before it served; see {log}")
                        await asyncio.sleep(0.5)
            except TimeoutError:
                raise NotServing(f"vLLM did not serve within {UP_S:g} s; see {log}") from None
            assert server.address is not None
            yield server.address
        finally:
            server.terminate()
            await asyncio.wait({ended}, timeout=STOP_S)
            server.kill()
            await ended
