"""The Prometheus text: the contract's names first, then the engine's own metrics as they are."""

from .events import Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(tally: Tally, engine_text: str) -> str:
    """All metrics, of the application's tally and the engine's own text."""
    engine = samples(engine_text)
    dropped = engine["wse_slow_consumer_drops_total"]
    rows = [
        ("ws_connections_open", "gauge", engine["wse_connections"]),
        ("ws_connections_accepted_total", "counter", engine["wse_connections_accepted_total"]),
        ("ws_connections_refused_total", "counter", engine["wse_connections_rejected_total"]),
        ("ws_messages_received_total", "counter", tally.received),
        # The engine hands over objects, not their bytes: its own count, hellos and pings included.
        ("ws_bytes_received_total", "counter", engine["wse_bytes_received_total"]),
        # Drops are the engine's alone to know; those of its own messages would be among them, which are few and small.
        ("ws_messages_sent_total", "counter", max(0, tally.deliveries_asked - dropped)),
        ("ws_messages_dropped_total", "counter", dropped),
        ("wse_target_bare_values_total", "counter", tally.bare_values),
        ("wse_target_texts_parsed_total", "counter", tally.texts_parsed),
        ("wse_target_broadcasts_total", "counter", tally.broadcasts),
    ]
    lines = [line for name, kind, value in rows for line in (f"# TYPE {name} {kind}", f"{name} {value}")]
    lines.append("# TYPE wse_target_events_total counter")
    lines += (f'wse_target_events_total{{kind="{kind}"}} {count}' for kind, count in tally.messages.items())
    return "\n".join(lines) + "\n" + engine_text


def samples(text: str) -> dict[str, int]:
    """The samples without labels; fractions are cut off, for only an uptime has them."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name != "#" and "{" not in name and value:
            found[name] = int(float(value))
    return found
