"""`python -m deepgram_server`: the environment is read and judged before anything else is even imported."""

import os
import sys

from speech_server.program import start

SESSIONS_MAX = 64


def main() -> int:
    config = start(("moonshine-voice", "websockets"), sessions_max=SESSIONS_MAX)
    # They take a while to import, which a bad value need not wait for.
    from speech_server.server import serve_sessions

    from .conversation import Conversations

    conversations = Conversations(config.worker_threads)
    return serve_sessions(config, "/v1/listen", conversations.hold, conversations.refusal)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The library faults (SIGSEGV) when it is freed at the end of the interpreter, so it is not.
    os._exit(code)
