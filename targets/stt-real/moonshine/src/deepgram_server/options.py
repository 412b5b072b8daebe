"""The query of a session. What this server cannot do is refused before the upgrade, as Deepgram does."""

from dataclasses import dataclass
from urllib.parse import parse_qs

SAMPLE_RATE = 16_000


class Refused(Exception):
    """The query cannot be served; its text goes into the header `dg-error`."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a session asked for. Parameters without a meaning here, such as `model` and `endpointing`, are ignored."""

    interim_results: bool

    @classmethod
    def from_query(cls, query: str) -> "Options":
        """Reads the query; raises `Refused`."""
        values = {name: texts[-1] for name, texts in parse_qs(query, keep_blank_values=True).items()}
        for name, only in (("encoding", "linear16"), ("sample_rate", str(SAMPLE_RATE)), ("channels", "1")):
            if values.get(name, only) != only:
                raise Refused(f"{name}: only {only} is served")
        if "encoding" not in values:
            raise Refused("encoding: give linear16, containers are not served")
        interim = values.get("interim_results", "false")
        if interim not in ("true", "false"):
            raise Refused("interim_results: give true or false")
        return cls(interim_results=interim == "true")
