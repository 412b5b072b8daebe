"""Judges the environment, prints the start line and runs the server in this process."""

import os
import signal

from speech_server.program import start, whisper_model

# More than any machine carries: the load decides, not the server's default of four clients.
SESSIONS_MAX = 1000
# Its default ends a session after ten minutes.
SESSION_S_MAX = 86_400

config = start(("whisper-live", "faster-whisper", "ctranslate2", "torch", "websockets"), sessions_max=SESSIONS_MAX)
# Read when the libraries below are loaded.
os.environ |= {"OMP_NUM_THREADS": str(config.worker_threads), "HF_HUB_OFFLINE": "1"}

from whisper_live.backend.faster_whisper_backend import ServeClientFasterWhisper  # noqa: E402
from whisper_live.server import TranscriptionServer  # noqa: E402
from whisper_live.transcriber.transcriber_faster_whisper import WhisperModel  # noqa: E402

# The server's own threads never end while a client is connected, so there is no order to wait for.
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

model = whisper_model()
# The server would load it at its first client, who would wait.
ServeClientFasterWhisper.SINGLE_MODEL = WhisperModel(model, device="cpu", compute_type="int8", local_files_only=True)
TranscriptionServer().run(
    "0.0.0.0",
    port=config.port,
    backend="faster_whisper",
    faster_whisper_custom_model_path=model,
    single_model=True,
    max_clients=config.sessions_max,
    max_connection_time=SESSION_S_MAX,
)
