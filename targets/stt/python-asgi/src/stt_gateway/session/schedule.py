"""The absolute flush schedule: `start + jitter + k * interval` for k = 1, 2, …"""

import math


class Schedule:
    """Ticks at fixed times. A late tick moves none of the later ones; ticks that were missed altogether are one tick."""

    __slots__ = ("_interval_s", "_origin", "_tick")

    def __init__(self, origin: float, interval_s: float) -> None:
        self._origin = origin
        self._interval_s = interval_s
        self._tick = 1

    @property
    def due(self) -> float:
        """When the next tick is scheduled."""
        # Multiplied, not added up: no rounding accumulates.
        return self._origin + self._tick * self._interval_s

    def take(self, now: float) -> float:
        """Takes the tick that is due, and all that have been missed since; returns when it was scheduled."""
        scheduled = self.due
        passed = math.floor((now - self._origin) / self._interval_s)
        self._tick = max(self._tick, passed) + 1
        return scheduled
