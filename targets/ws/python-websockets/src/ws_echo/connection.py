"""The library's connection, which does not read while it cannot write."""

import asyncio

from websockets.asyncio.server import ServerConnection


class Connection(ServerConnection):
    """Keeps the pongs for a client that does not read bounded.

    The library waits for its writer in `send()`, and thereby for echoes. Pongs it writes at once, whoever reads them.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Called when enough of the frames that wait have been taken.
        self.recv_messages.resume = self._resume_reading

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._resume_reading()

    def _resume_reading(self) -> None:
        if not self.paused and not self.recv_messages.paused:
            self.transport.resume_reading()
