#!/bin/sh
# Installs what the build and a measurement need and this machine lacks: a C linker and, for root, `ip` from the
# system's packages, Rust by rustup. With `test`, also what scripts/test.sh runs.
# Says what it installs before it does (PLIMSOLL_INSTALL=no: names it and fails). Does nothing, and asks nothing, if
# everything is there.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:$HOME/.cargo/bin
export PATH

have() { command -v "$1" >/dev/null 2>&1; }

channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
# Asks the toolchain itself, in this folder: rustup's stand-ins exist even without a toolchain.
have_rust() { have cargo && RUSTUP_AUTO_INSTALL=0 cargo --version >/dev/null 2>&1; }
have_components() { RUSTUP_AUTO_INSTALL=0 cargo fmt --version >/dev/null 2>&1 && RUSTUP_AUTO_INSTALL=0 cargo clippy --version >/dev/null 2>&1; }

missing=
have cc || missing="$missing gcc libc6-dev"
# cargo and curl verify their peers with the system's certificates.
have_certificates() {
    for bundle in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        [ ! -f "$bundle" ] || return 0
    done
    return 1
}
have_certificates || missing="$missing ca-certificates"
have_rust || have rustup || have curl || missing="$missing curl"
# Without it, a target cannot have its own network. Only root can make one anyway.
[ "$(id -u)" != 0 ] || have ip || missing="$missing iproute2"
if [ "${1:-}" = test ]; then
    have shellcheck || missing="$missing shellcheck"
    have python3 || missing="$missing python3"
fi
# Lists everything in advance, so that the user can still say no.
[ -z "$missing" ] || echo "install-tools: this machine lacks, and gets from the system's packages:$missing"
have_rust || echo "install-tools: this machine lacks Rust $channel, and gets it by rustup, in ~/.cargo and ~/.rustup"

# shellcheck disable=SC2086  # a list of packages
[ -z "$missing" ] || sh scripts/apt-install.sh install-tools $missing

if ! have_rust; then
    sh scripts/may-install.sh install-tools "Rust $channel by rustup, in ~/.cargo and ~/.rustup"
    if ! have rustup; then
        rustup_init=$(mktemp)
        trap 'rm -f "$rustup_init"' EXIT
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$rustup_init" || {
            echo "install-tools: https://sh.rustup.rs cannot be reached; install Rust $channel by other means and run again" >&2
            exit 1
        }
        sh "$rustup_init" -y --no-modify-path --default-toolchain none
    fi
    rustup toolchain install "$channel" --profile minimal --component rustfmt --component clippy
fi
if [ "${1:-}" = test ] && ! have_components; then
    have rustup || { echo "install-tools: cargo fmt or cargo clippy is missing; install the Rust components rustfmt and clippy" >&2; exit 1; }
    sh scripts/may-install.sh install-tools "the Rust components rustfmt and clippy"
    rustup component add rustfmt clippy
fi
