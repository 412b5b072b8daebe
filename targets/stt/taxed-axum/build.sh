#!/bin/sh
# This program, and the target that it runs.
set -eu
cd "$(dirname -- "$0")"
cargo build --release --locked
cd ../rust-axum
cargo build --release --locked
