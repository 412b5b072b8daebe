#!/bin/sh
# Installs a Debian package that brings a service, and leaves that service stopped and disabled. Does nothing if the
# program is there: a service that somebody else set up stays as it is.
#
#   sh install-program.sh TARGET PACKAGE
set -eu
target=$1
package=$2
PATH=$PATH:/usr/sbin
! command -v "$package" >/dev/null 2>&1 || exit 0

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Packages ask this program before they start a service. Without one they start it.
policy=/usr/sbin/policy-rc.d
if [ "${PLIMSOLL_INSTALL:-yes}" = yes ] && [ ! -e $policy ]; then
    trap 'as_root rm -f $policy' EXIT
    printf '#!/bin/sh\n# Written by %s while it installs %s.\nexit 101\n' "$target" "$package" | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
fi
sh "$(dirname "$0")/../../../scripts/apt-install.sh" "$target" "$package"

# The package enables its service for the next boot.
if command -v systemctl >/dev/null 2>&1; then
    as_root systemctl --quiet disable "$package" >/dev/null 2>&1 || true
elif command -v update-rc.d >/dev/null 2>&1; then
    as_root update-rc.d "$package" disable >/dev/null 2>&1 || true
fi
if command -v systemctl >/dev/null 2>&1 && systemctl --quiet is-enabled "$package" 2>/dev/null; then
    echo "$target: the service $package is still enabled; disable it with: systemctl disable $package" >&2
    exit 1
fi
