#!/bin/sh
# Makes .venv from requirements.lock on Debian's Python and PyTorch. With --interpreter: names them.
set -eu
cd "$(dirname "$0")"
exec sh ../infrastructure/make-torch-venv.sh whisperlivekit "$@"
