#!/bin/sh
# Installs what each target needs beyond scripts/install-tools.sh: runs the target's own install.sh, one after the other, for they share the system's package manager.
# With names, only those. A script does nothing when all is there.
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
    for name in "$@"; do
        for script in targets/*/"$name"/install.sh; do
            [ -f "$script" ] || { echo "install-targets: no target $name with an install.sh" >&2; exit 2; }
            sh "$script"
        done
    done
    exit
fi
for script in targets/*/*/install.sh; do
    [ -f "$script" ] || continue
    echo "$script"
    sh "$script"
done
