#!/bin/sh
# Installs what building and testing need and is not here: a C compiler and make by the system's packages, Rust's own components by rustup. Does
# nothing, and asks nobody, when all is here.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo; then sudo "$@"; else
        echo "install-tools: needs root for: $*" >&2
        exit 1
    fi
}

missing=
have cc || missing="$missing gcc libc6-dev"
have curl || missing="$missing curl"
if [ -n "$missing" ]; then
    have apt-get || { echo "install-tools: install these and run again:$missing" >&2; exit 1; }
    as_root apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    as_root apt-get install -y -qq --no-install-recommends $missing
fi

if ! have cargo; then
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
        echo "install-tools: cargo is in ~/.cargo/bin, which is not in PATH; run: . \"\$HOME/.cargo/env\"" >&2
    else
        echo "install-tools: Rust 1.88 or newer is needed; install it from https://rustup.rs" >&2
    fi
    exit 1
fi
for component in rustfmt clippy; do
    case $component in clippy) tool=cargo-clippy ;; *) tool=$component ;; esac
    have "$tool" && continue
    have rustup || { echo "install-tools: $tool is missing; install the Rust component $component" >&2; exit 1; }
    rustup component add "$component"
done
