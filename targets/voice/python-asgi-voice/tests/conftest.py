"""A gateway that all tests share which need no settings of their own."""

from collections.abc import Generator

import pytest

from mock_provider import MockProvider, audio
from support import Gateway, gateway


@pytest.fixture(scope="session")
def shared_provider() -> Generator[MockProvider]:
    with MockProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def shared_gateway(shared_provider: MockProvider) -> Generator[Gateway]:
    with gateway(
        shared_provider.url, TTS_FIRST_MS="500", TTS_GAP_MS="300", AUDIO_BUFFER_MS="1000", PROVIDER_KEY="secret"
    ) as subject:
        yield subject


@pytest.fixture
def provider(shared_provider: MockProvider) -> MockProvider:
    """The shared provider, as new."""
    shared_provider.next.clear()
    shared_provider.usual = audio(3)
    shared_provider.spoken.clear()
    shared_provider.heard.clear()
    shared_provider.refuses_to_hear = False
    return shared_provider


@pytest.fixture
def subject(shared_gateway: Gateway, provider: MockProvider) -> Gateway:
    """The shared gateway, and a provider as new behind it."""
    return shared_gateway
