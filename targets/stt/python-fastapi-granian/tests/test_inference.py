"""The client of the inference server, over real sockets."""

import asyncio
import socket
from collections.abc import Callable, Coroutine

import pytest

from inference_server import InferenceServer
from stt_gateway.config import Settings
from stt_gateway.inference import Inference, InferenceError
from stt_gateway.messages import Failure, FailureKind
from support import reference, synthetic_frame

BODY = b"".join(synthetic_frame(3, seq) for seq in range(1, 51))


def run(
    port: int,
    work: Callable[[Inference], Coroutine[None, None, None]],
    *,
    clients: int = 1,
    timeout_ms: int = 5000,
) -> None:
    async def main() -> None:
        url = f"http://127.0.0.1:{port}"
        settings = Settings.model_validate(
            {"inference_url": url, "inference_http_clients": clients, "inference_timeout_ms": timeout_ms}
        )
        inference = Inference(settings)
        try:
            await asyncio.wait_for(work(inference), 10)
        finally:
            await inference.aclose()

    asyncio.run(main())


async def failure(inference: Inference) -> Failure:
    with pytest.raises(InferenceError) as error:
        await inference.infer(BODY)
    return error.value.failure


def test_an_answer() -> None:
    async def work(inference: Inference) -> None:
        assert await inference.infer(BODY) == reference(BODY, 4)

    with InferenceServer() as server:
        run(server.port, work)


@pytest.mark.parametrize("clients", [1, 2])
def test_requests_share_the_connections(clients: int) -> None:
    async def work(inference: Inference) -> None:
        await asyncio.gather(*(inference.infer(bytes(640)) for _ in range(40)))

    with InferenceServer() as server:
        server.delay_s = 0.2
        run(server.port, work, clients=clients)
        assert server.connections == clients
        assert server.in_flight_max == 40


@pytest.mark.parametrize(
    ("status", "expected"),
    [(404, FailureKind.HTTP_4XX), (429, FailureKind.HTTP_429), (503, FailureKind.HTTP_5XX), (204, FailureKind.PARSE_ERROR)],
)
def test_other_statuses(status: int, expected: FailureKind) -> None:
    async def work(inference: Inference) -> None:
        told = await failure(inference)
        assert (told.kind, told.status) == (expected, status)

    with InferenceServer(lambda _: (status, b"")) as server:
        run(server.port, work)


def test_an_answer_that_is_not_strict() -> None:
    async def work(inference: Inference) -> None:
        told = await failure(inference)
        assert (told.kind, told.status) == (FailureKind.PARSE_ERROR, 200)

    with InferenceServer(lambda _: (200, b"{}")) as server:
        run(server.port, work)


def test_an_answer_that_does_not_end_in_time() -> None:
    async def work(inference: Inference) -> None:
        told = await failure(inference)
        assert told.kind is FailureKind.TIMEOUT
        assert told.elapsed_ms is not None
        assert told.elapsed_ms >= 100

    with InferenceServer(lambda _: None) as server:
        run(server.port, work, timeout_ms=100)


@pytest.mark.parametrize("fault", ["reset", "abort", "goaway"])
def test_after_a_fault_the_next_request_is_answered(fault: str) -> None:
    with InferenceServer() as server:

        async def work(inference: Inference) -> None:
            server.fault = fault
            assert (await failure(inference)).kind is FailureKind.CONNECTION_RESET
            server.fault = ""
            assert await inference.infer(BODY) == reference(BODY, 4)

        run(server.port, work)


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    async def work(inference: Inference) -> None:
        assert (await failure(inference)).kind is FailureKind.CONNECTION_RESET
        assert (await failure(inference)).kind is FailureKind.CONNECTION_RESET

    run(port, work)
