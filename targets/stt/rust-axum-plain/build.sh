#!/bin/sh
# Cargo compiles only what has changed: this runs before every measurement.
set -eu
cd "$(dirname "$0")"
cargo build --release --locked
