#!/bin/sh
# Installs what tests/browser needs beyond scripts/install-tools.sh: Chromium, and the font for which charts are laid
# out. Does nothing, and asks nothing, if both are there.
set -eu

missing=
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
[ -f /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing="$missing fonts-dejavu-core"
# shellcheck disable=SC2086  # a list of packages
[ -z "$missing" ] || sh "$(dirname "$0")/apt-install.sh" install-browser $missing
