"""What every scenario works with."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from record import Recording, Socket


@dataclass
class Session:
    """A recording to be made: of the server at `port`, with these clips. A scenario notes the parameters it added."""

    recording: Recording
    port: int
    clips: list[Path]
    params: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    """The upgrade was refused, which is recorded."""


async def wait(socket: Socket, seconds: float) -> None:
    """Waits for the server's end, or this long."""
    try:
        await asyncio.wait_for(socket.closed.wait(), seconds)
    except TimeoutError:
        return
