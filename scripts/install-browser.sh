#!/bin/sh
# Installs what tests/browser needs beyond scripts/install-tools.sh: Chromium, and the font that charts are laid out for. Does nothing, and asks nobody, when both are here.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo; then sudo "$@"; else
        echo "install-browser: needs root for: $*" >&2
        exit 1
    fi
}

missing=
have chromium || missing="$missing chromium"
[ -f /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing="$missing fonts-dejavu-core"
if [ -n "$missing" ]; then
    have apt-get || { echo "install-browser: install these and run again:$missing" >&2; exit 1; }
    as_root apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    as_root apt-get install -y -qq --no-install-recommends $missing
fi
