#!/bin/sh
# Formatter, linter (warnings are errors), tests. Honours CARGO_TARGET_DIR.
set -eu
cd "$(dirname -- "$0")"
cargo fmt --check
cargo clippy --all-targets --locked -- -D warnings
cargo test --locked
