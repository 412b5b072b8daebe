"""A small inference server for tests: h2 on asyncio streams, in a thread of its own, with the faults that tests need."""

import asyncio
import threading
from collections.abc import Callable
from typing import Self

import h2.config
import h2.connection
import h2.errors
import h2.events
from h2.settings import SettingCodes, Settings

from support import reference

# Gets the body; returns the status and the body of the answer, or None for none at all.
Answer = Callable[[bytes], tuple[int, bytes] | None]


def computed(body: bytes) -> tuple[int, bytes]:
    """What the contract says."""
    return 200, reference(body, 4).model_dump_json().encode()


class InferenceServer:
    """Serves at `port` between `with` and its end."""

    def __init__(self, answer: Answer = computed) -> None:
        self.answer = answer
        self.delay_s = 0.0
        self.port = 0
        self.in_flight = 0
        self.in_flight_max = 0
        self.connections = 0
        self.fault = ""
        # httpx sends one request at a time to a server that names no limit.
        self._settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 128}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1"), self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.local_settings = Settings(client=False, initial_values=self._settings)
        connection.max_inbound_frame_size = connection.local_settings.max_frame_size
        connection.initiate_connection()
        bodies: dict[int, bytearray] = {}
        tasks = set()
        try:
            while True:
                writer.write(connection.data_to_send())
                data = await reader.read(65_536)
                if not data:
                    return
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        bodies[event.stream_id] = bytearray()
                    elif isinstance(event, h2.events.DataReceived):
                        bodies[event.stream_id] += event.data
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        request = self._request(connection, writer, event.stream_id, bytes(bodies.pop(event.stream_id)))
                        tasks.add(asyncio.create_task(request))
        finally:
            writer.close()

    async def _request(
        self, connection: h2.connection.H2Connection, writer: asyncio.StreamWriter, stream_id: int, body: bytes
    ) -> None:
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight, self.in_flight_max)
        await asyncio.sleep(self.delay_s)
        self.in_flight -= 1
        if self.fault == "abort":
            writer.transport.abort()
            return
        answer = self.answer(body)
        if self.fault == "reset":
            connection.reset_stream(stream_id, h2.errors.ErrorCodes.INTERNAL_ERROR)
        elif self.fault == "goaway":
            connection.close_connection()
        elif answer is not None:
            connection.send_headers(stream_id, [(":status", str(answer[0]))])
            connection.send_data(stream_id, answer[1], end_stream=True)
        writer.write(connection.data_to_send())
