"""`python -m vosk_server`: the environment is read and judged before anything else is even imported."""

import sys

from speech_server.program import start

# A decoder has about 95 MB of its own, and one vCPU carries a few streams.
SESSIONS_MAX = 16


def main() -> int:
    config = start(("pocketsphinx", "websockets"), sessions_max=SESSIONS_MAX)
    # They take a while to import, which a bad value need not wait for.
    from speech_server.server import serve_sessions

    from .conversation import Conversations

    with Conversations(config.worker_threads) as conversations:
        return serve_sessions(config, "/", conversations.hold)


if __name__ == "__main__":
    sys.exit(main())
