"""Fields of a JSON object, with their types."""

import json
from math import isfinite
from typing import Any


class FieldsError(Exception):
    """A field that is missing or of another type, or no JSON object at all; its text names it."""


_MISSING: Any = object()


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


class Fields:
    """An object's fields. Without a default a field must be there; others than those asked for do not matter."""

    def __init__(self, fields: dict[str, Any], parents: str = "") -> None:
        self._fields = fields
        self._parents = parents

    @classmethod
    def parse(cls, text: str | bytes) -> "Fields":
        """Raises `NotJsonError`, or `FieldsError` for JSON that is no object."""
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise NotJsonError("not JSON") from None
        if not isinstance(value, dict):
            raise NotJsonError("not a JSON object")
        return cls(value)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def path(self, name: str) -> str:
        """The name of a field, as an error tells it."""
        return f"{self._parents}{name}"

    def text(self, name: str, default: str = _MISSING) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def flag(self, name: str, default: bool = _MISSING) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def whole(self, name: str, default: int = _MISSING) -> int:
        value = self._get(name, default)
        # To Python a bool is an int.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, "a whole number")
        return value

    def number(self, name: str, default: float = _MISSING) -> float:
        value = self._get(name, default)
        # 1e999 is infinite to Python.
        if (
            not isinstance(value, (int, float))
            or isinstance(value, bool)
            or (isinstance(value, float) and not isfinite(value))
        ):
            raise self._wrong(name, "a number")
        return value

    def object(self, name: str) -> "Fields":
        value = self._get(name, _MISSING)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(value, f"{self.path(name)}.")

    def _get(self, name: str, default: Any) -> Any:
        value = self._fields.get(name, default)
        if value is _MISSING:
            raise FieldsError(f"{self.path(name)}: is missing")
        return value

    def _wrong(self, name: str, expected: str) -> FieldsError:
        return FieldsError(f"{self.path(name)}: must be {expected}")


class NotJsonError(FieldsError):
    """No JSON object."""
