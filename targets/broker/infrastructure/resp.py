"""Redis and Valkey: greeting, one stored message, settings."""

from pathlib import Path

from peer import NotReady, Peer

Reply = bytes | int | list["Reply"] | None


class Client(Peer):
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(port, host)
        # While it reads its log, the answer is an error.
        answer = self.command("PING")
        if answer != b"PONG":
            raise NotReady(f"{answer!r} instead of PONG")

    def command(self, *words: str) -> Reply:
        text = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        self.send(f"*{len(words)}\r\n{text}".encode())
        return self.reply()

    def reply(self) -> Reply:
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise NotReady(rest.decode())
        if kind == b"+":
            return rest
        number = int(rest)
        if kind == b":" or number < 0:
            return number if kind == b":" else None
        if kind == b"*":
            return [self.reply() for _ in range(number)]
        return self.read(number + 2)[:-2]

    def put(self, _level: str) -> None:
        self.command("XADD", "check", "*", "b", "a message")

    def count(self, _level: str) -> int:
        length = self.command("XLEN", "check")
        assert isinstance(length, int)
        return length


def in_force(level: str, port: int, data: Path) -> list[tuple[str, object, object]]:
    """Name, expected and actual value of what the level needs."""
    wanted = {
        "appendonly": "no" if level == "memory" else "yes",
        "appendfsync": "always" if level == "durable" else "everysec",
        "save": "",
        "dir": str(data),
    }
    with Client(port) as client:
        actual = {}
        for name in wanted:
            answer = client.command("CONFIG", "GET", name)
            assert isinstance(answer, list) and isinstance(answer[1], bytes)
            actual[name] = answer[1].decode()
    return [(name, value, actual[name]) for name, value in wanted.items()]
