#!/bin/sh
# Formatter, linters and tests; see run-tests.sh of ../../stt/go-nethttp. Many tests wait for the contract's times, so they
# wait side by side.
set -eu
cd "$(dirname "$0")"
exec sh ../../stt/go-nethttp/run-tests.sh go-nethttp-voice gonethttpvoice -parallel 16
