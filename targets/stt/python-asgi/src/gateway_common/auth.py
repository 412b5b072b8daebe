"""The token that a client must show."""

import hmac


class BearerToken:
    """`Authorization: Bearer TOKEN`; an empty token is none, and everybody is let in."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode() if token else None

    def is_shown_by(self, authorization: str | None) -> bool:
        """Whether the field has it; takes the same time wherever it differs."""
        return self._expected is None or hmac.compare_digest((authorization or "").encode(), self._expected)
