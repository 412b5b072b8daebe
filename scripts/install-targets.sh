#!/bin/sh
# Installs what targets need beyond scripts/install-tools.sh: runs each target's own install.sh, one after the other, for they share the system's package manager.
# With names, only those. Says first what all of them will install (PLIMSOLL_INSTALL=no: names it and fails). A script does nothing when all is there.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- '*'
scripts=
for name in "$@"; do
    found=no
    # The name may be the pattern for all.
    # shellcheck disable=SC2231  # the pattern is wanted
    for manifest in targets/*/$name/target.toml; do
        [ -f "$manifest" ] || continue
        found=yes
        script=$(dirname "$manifest")/install.sh
        [ ! -f "$script" ] || scripts="$scripts $script"
    done
    [ $found = yes ] || { echo "install-targets: no target $name" >&2; exit 2; }
done

wanted=$(for script in $scripts; do PLIMSOLL_INSTALL=list sh "$script" 2>/dev/null || true; done)
if [ -n "$wanted" ]; then
    echo "install-targets: this machine lacks, and gets:"
    printf '%s\n' "$wanted" | sed 's/^/  /'
fi
failed=
for script in $scripts; do
    echo "$script"
    # One that cannot be installed does not keep the others from theirs.
    sh "$script" || failed="$failed $(basename "$(dirname "$script")")"
done
[ -z "$failed" ] || { echo "install-targets: not installed:$failed" >&2; exit 1; }
