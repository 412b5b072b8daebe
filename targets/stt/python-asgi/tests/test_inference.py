"""The HTTP/2 client, against a server made of the same library's other half."""

import asyncio
import socket
from collections.abc import Callable, Coroutine

import pytest
from h2.settings import SettingCodes

from gateway_common.variables import BaseUrl
from inference_server import InferenceServer, computed
from stt_gateway.inference import Client, Outcome
from stt_gateway.session.messages import Failure, FailureKind, Inference
from support import reference, synthetic_frame

BODY = b"".join(synthetic_frame(3, seq) for seq in range(1, 51))


def run(
    port: int, work: Callable[[Client], Coroutine[None, None, None]], *, connections: int = 1, timeout_s: float = 5.0
) -> None:
    async def main() -> None:
        client = Client(BaseUrl("127.0.0.1", port, "/infer", f"127.0.0.1:{port}"), connections, timeout_s, 4)
        try:
            await asyncio.wait_for(work(client), 10)
        finally:
            client.close()

    asyncio.run(main())


async def post(client: Client, body: bytes = BODY) -> Outcome:
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    client.post(body, future.set_result)
    assert not future.done(), "never before post() has returned"
    return await future


def kind(outcome: Outcome) -> FailureKind:
    assert isinstance(outcome, Failure)
    return outcome.kind


def test_an_answer() -> None:
    async def work(client: Client) -> None:
        assert await post(client) == reference(BODY, 4)

    with InferenceServer() as server:
        run(server.port, work)


def test_requests_share_connections() -> None:
    async def work(client: Client) -> None:
        outcomes = await asyncio.gather(*(post(client, bytes(640)) for _ in range(40)))
        assert all(isinstance(outcome, Inference) for outcome in outcomes)

    with InferenceServer() as server:
        server.delay_s = 0.2
        run(server.port, work, connections=2)
        assert server.connections == 2
        assert server.in_flight_max == 40


@pytest.mark.parametrize(
    "settings",
    [
        {SettingCodes.INITIAL_WINDOW_SIZE: 1000},
        {SettingCodes.MAX_CONCURRENT_STREAMS: 2},
        {SettingCodes.MAX_FRAME_SIZE: 1 << 20},
    ],
    ids=["small windows", "few streams", "large frames"],
)
def test_the_servers_limits_are_kept(settings: dict[SettingCodes, int]) -> None:
    async def work(client: Client) -> None:
        # The settings come with the first answer.
        await post(client, bytes(2))
        bodies = [BODY[: 2 * number * 640] for number in range(1, 20)]
        assert await asyncio.gather(*(post(client, body) for body in bodies)) == [reference(body, 4) for body in bodies]

    with InferenceServer(settings=settings) as server:
        server.delay_s = 0.01
        run(server.port, work)
        limit = settings.get(SettingCodes.MAX_CONCURRENT_STREAMS, 1000)
        assert server.in_flight_max <= limit


@pytest.mark.parametrize(
    ("status", "expected"),
    [(404, FailureKind.HTTP_4XX), (429, FailureKind.HTTP_429), (503, FailureKind.HTTP_5XX), (204, FailureKind.PARSE_ERROR)],
)
def test_other_statuses(status: int, expected: FailureKind) -> None:
    async def work(client: Client) -> None:
        outcome = await post(client)
        assert kind(outcome) is expected
        assert isinstance(outcome, Failure)
        assert outcome.status == status

    with InferenceServer(lambda _: (status, b"")) as server:
        run(server.port, work)


def test_an_answer_that_does_not_end_in_time() -> None:
    async def work(client: Client) -> None:
        assert kind(await post(client)) is FailureKind.TIMEOUT

    with InferenceServer(lambda _: None) as server:
        run(server.port, work, timeout_s=0.1)


@pytest.mark.parametrize("fault", ["reset", "abort", "goaway"])
def test_after_a_fault_the_next_request_is_answered(fault: str) -> None:
    with InferenceServer() as server:

        async def work(client: Client) -> None:
            server.fault = fault
            assert kind(await post(client)) is FailureKind.CONNECTION_RESET
            server.fault = ""
            assert await post(client) == reference(BODY, 4)

        run(server.port, work)


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    async def work(client: Client) -> None:
        assert kind(await post(client)) is FailureKind.CONNECTION_RESET
        assert kind(await post(client)) is FailureKind.CONNECTION_RESET

    run(port, work)


def test_a_cancelled_request_calls_nobody_and_frees_its_stream() -> None:
    called: list[Outcome] = []

    async def work(client: Client) -> None:
        requests = [client.post(BODY, called.append) for _ in range(3)]
        await asyncio.sleep(0.05)
        for request in requests:
            request.cancel()
        assert await post(client, bytes(2)) == reference(bytes(2), 4)

    with InferenceServer(settings={SettingCodes.MAX_CONCURRENT_STREAMS: 2}) as server:
        server.answer = lambda body: computed(body) if len(body) == 2 else None
        run(server.port, work)
    assert called == []
