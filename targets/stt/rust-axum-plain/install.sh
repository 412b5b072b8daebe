#!/bin/sh
# Looks for Rust 1.95 or newer. Does nothing when it is there: the libraries come with the build.
set -eu
minor=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
if [ "${minor:-0}" -lt 95 ]; then
    echo "rust-axum-plain: needs Rust 1.95 or newer; install it with rustup (https://rustup.rs) and run this again" >&2
    exit 1
fi
