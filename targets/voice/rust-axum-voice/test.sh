#!/bin/sh
# Formatter, linter (a warning is an error) and tests.
set -eu
cd "$(dirname "$0")"
cargo fmt --check
cargo clippy --all-targets --locked -- -D warnings
cargo test --locked
