"""The gateway's question to an endpoint picker: for each request, which replica. As Envoy asks it, over gRPC.

A picker that does not answer stops its requests: ``failureMode`` of an InferencePool is FailClose by default, and Envoy
answers 500 then.
"""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio

from fakes.gateway.ext_proc import PROCESS, Picked, Refused, read_answer, request_body, request_headers

TIMEOUT_S = 2.0
"""Clock seconds for one answer. Envoy's own default is 0.2 s, which a busy machine would break."""
RECONNECT_MS = 100


class EndpointPicker:
    """One connection for all requests; each has a stream of its own."""

    def __init__(self, address: str) -> None:
        self.address = address
        options = [
            ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
            ("grpc.min_reconnect_backoff_ms", RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
            ("grpc.enable_http_proxy", 0),
        ]
        self._channel = grpc.aio.insecure_channel(address, options=options)
        self._process: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(PROCESS)

    async def ask(self, path: str, body: bytes) -> Picked | Refused:
        """Never raises for what the picker does: no answer is a refusal, too."""
        headers = {":method": "POST", ":path": path, "content-type": "application/json"}
        call = self._process(timeout=TIMEOUT_S)
        try:
            await call.write(request_headers(headers))
            await call.write(request_body(body))
            while isinstance(message := await call.read(), bytes):
                if (answer := read_answer(message)) is not None:
                    await call.done_writing()
                    return answer
            why = "it ended without an answer"
        except grpc.aio.AioRpcError as error:
            why = f"{error.code().name}: {error.details()}"
        except (asyncio.InvalidStateError, ValueError) as error:
            why = str(error)
        return Refused(500, f"the endpoint picker did not choose: {why}")

    async def close(self) -> None:
        await self._channel.close()
