#!/bin/sh
# Installs Python with pip, which fetches the broker, by the system's packages where there is none.
#
#   sh install-pip.sh TARGET
set -eu
! python3 -m pip --version >/dev/null 2>&1 || exit 0
exec sh "$(dirname "$0")/../../../scripts/apt-install.sh" "$1" python3 python3-pip
