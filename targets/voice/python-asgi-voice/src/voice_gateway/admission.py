"""Who may have a session. Exact under bursts, over all workers."""

from typing import NamedTuple

from gateway_common.auth import BearerToken

from .config import Config
from .shared import REFUSED_AT, Counter, Gauge, Refusal, Share


class Admitted(NamedTuple):
    """A place for a session."""

    # Where its address is counted, if addresses have limits.
    address_at: int | None


class Admission:
    """One worker's door."""

    def __init__(self, config: Config, share: Share) -> None:
        self._config = config
        self._book = share.book
        self._addresses = share.addresses
        self._token = BearerToken(config.auth_token)
        self.is_draining = False

    def ask(self, address: str, authorization: str | None) -> Admitted | Refusal:
        """Takes a place for a session, or says why there is none."""
        answer = self.refuse_request(authorization) or self._take(address)
        if isinstance(answer, Admitted):
            self._book.add(Counter.SESSIONS)
        elif answer not in (Refusal.AUTH, Refusal.DRAINING):
            self._book.add(REFUSED_AT[answer])
        return answer

    def refuse_request(self, authorization: str | None) -> Refusal | None:
        """What is asked of any request for speech: the token, and that the gateway stays."""
        refusal = None
        if not self._token.is_shown_by(authorization):
            refusal = Refusal.AUTH
        elif self.is_draining:
            refusal = Refusal.DRAINING
        if refusal is not None:
            self._book.add(REFUSED_AT[refusal])
        return refusal

    def give_back(self, admitted: Admitted) -> None:
        """A session is over."""
        if admitted.address_at is not None:
            self._addresses.end_session(admitted.address_at)
        self._book.give_back(Gauge.SESSIONS)

    def _take(self, address: str) -> Admitted | Refusal:
        config = self._config
        if not config.sessions_per_address_max and not config.upgrades_per_second_max:
            is_free = self._book.take(Gauge.SESSIONS, config.sessions_max)
            return Admitted(None) if is_free else Refusal.CAPACITY
        addresses = self._addresses
        with addresses.lock():
            at = addresses.place(address)
            if at is None:
                return Refusal.PER_ADDRESS
            if not addresses.may_upgrade(at, config.upgrades_per_second_max):
                return Refusal.RATE
            if 0 < config.sessions_per_address_max <= addresses.sessions(at):
                return Refusal.PER_ADDRESS
            if not self._book.take(Gauge.SESSIONS, config.sessions_max):
                return Refusal.CAPACITY
            addresses.add_session(at)
            return Admitted(at)
