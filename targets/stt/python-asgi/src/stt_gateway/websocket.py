"""The contract's messages out of WebSocket frames.

Nearly all frames are whole, masked, binary, and 640 bytes long: `AudioReader.fast` compares their first four bytes with a
constant and is done.
"""

import struct
from collections.abc import Callable
from typing import Final

from gateway_common.websocket import Reader, apply_mask

AUDIO_BYTES: Final = 640

# FIN + binary; masked, 16 bit length; the length.
_AUDIO_HEADER: Final = b"\x82\xfe" + struct.pack("!H", AUDIO_BYTES)
_AUDIO_FRAME_BYTES: Final = len(_AUDIO_HEADER) + 4 + AUDIO_BYTES


class AudioReader(Reader):
    """Binary messages are frames of audio, or of a size that no frame has.

    `on_audio` is an attribute and not a method: it gets each binary message of 640 bytes, and is all that is called for
    it, so what takes audio is not asked each time whether the session has begun. A subclass has the place for it.
    """

    __slots__ = ()

    on_audio: Callable[[bytes, float], None]

    def on_odd_size(self) -> None:
        """A binary message of another size."""

    def feed(self, data: bytes, now: float) -> None:
        # Most often a read brings one frame of audio.
        if len(data) == _AUDIO_FRAME_BYTES and not self._rest and self._opcode is None and data.startswith(_AUDIO_HEADER):
            self.on_audio(apply_mask(data[8:], data[4:8]), now)
        else:
            super().feed(data, now)

    def fast(self, data: bytes, position: int, now: float) -> int:
        end = len(data)
        while (audio_end := position + _AUDIO_FRAME_BYTES) <= end and data.startswith(_AUDIO_HEADER, position):
            self.on_audio(apply_mask(data[position + 8 : audio_end], data[position + 4 : position + 8]), now)
            position = audio_end
        return position

    def on_binary(self, payload: bytes, now: float) -> None:
        if len(payload) == AUDIO_BYTES:
            self.on_audio(payload, now)
        else:
            self.on_odd_size()
