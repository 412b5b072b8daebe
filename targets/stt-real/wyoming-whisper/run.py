"""Judges the environment, prints the start line and becomes the server."""

import os
import sys
from pathlib import Path

from speech_server.program import start, whisper_model

config = start(("wyoming-faster-whisper", "wyoming", "faster-whisper", "ctranslate2"))
model = whisper_model()
command = [
    str(Path(sys.executable).parent / "wyoming-faster-whisper"),
    *("--uri", f"tcp://0.0.0.0:{config.port}"),
    # With a path as the model, nothing is looked for in the folder of downloads.
    *("--model", model, "--data-dir", model, "--local-files-only"),
    *("--language", "en", "--beam-size", "1", "--cpu-threads", str(config.worker_threads)),
]
os.execve(command[0], command, os.environ | {"OMP_NUM_THREADS": str(config.worker_threads), "HF_HUB_OFFLINE": "1"})
