#!/bin/sh
# Makes the release, if anything changed.
set -eu
cd "$(dirname "$0")"
stamp=_build/prod/.built
if [ -e "$stamp" ] && [ -z "$(find lib rel mix.exs build.sh build/root/.made -newer "$stamp" 2>/dev/null)" ]; then
    exit 0
fi
# shellcheck disable=SC1010  # `do` is a word of mix
sh inside.sh env MIX_ENV=prod mix do compile --warnings-as-errors + release --overwrite --quiet
touch "$stamp"
