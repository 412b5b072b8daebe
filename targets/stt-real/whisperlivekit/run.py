"""Judges the environment, prints the start line and becomes the server."""

import os
import sys
from pathlib import Path

from speech_server.program import start, whisper_model

config = start(("whisperlivekit", "faster-whisper", "ctranslate2", "torch", "uvicorn"))
command = [
    str(Path(sys.executable).parent / "wlk"),
    *("--host", "0.0.0.0", "--port", str(config.port)),
    *("--backend", "faster-whisper", "--backend-policy", "localagreement"),
    *("--model_dir", whisper_model(), "--language", "en", "--pcm-input"),
    # An empty name: otherwise the server fetches a file to warm up with.
    *("--warmup-file", ""),
]
os.execve(command[0], command, os.environ | {"OMP_NUM_THREADS": str(config.worker_threads), "HF_HUB_OFFLINE": "1"})
