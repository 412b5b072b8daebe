#!/bin/sh
# Installs what targets need beyond scripts/install-tools.sh. Runs each target's own install.sh, one after another,
# because they share the system's package manager.
# With names, only theirs. First says what all of them will install (PLIMSOLL_INSTALL=no: names it and fails). A script
# does nothing if everything is there.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- '*'
scripts=
for name in "$@"; do
    found=no
    # The name may be the pattern that matches all targets.
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
    # One target that cannot be installed does not stop the others.
    sh "$script" || failed="$failed $(basename "$(dirname "$script")")"
done
[ -z "$failed" ] || { echo "install-targets: not installed:$failed" >&2; exit 1; }
