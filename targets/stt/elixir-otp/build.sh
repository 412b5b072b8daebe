#!/bin/sh
# Compiles for production, if anything changed.
set -eu
cd "$(dirname "$0")"
export MIX_ENV=prod LC_ALL=C.UTF-8

stamp=_build/prod/.built
if [ -e "$stamp" ] && [ -z "$(find lib vendor/lib mix.exs build.sh -newer "$stamp" 2>/dev/null)" ]; then
    exit 0
fi

if [ "${STT_DEPS:-}" = hex ]; then
    mix local.hex --force --if-missing
    mix deps.get
elif [ ! -d vendor/lib ]; then
    echo "elixir-otp: the libraries are missing; run: sh targets/stt/elixir-otp/install.sh" >&2
    exit 1
else
    export ERL_LIBS="$PWD/vendor/lib"
fi
mix compile --warnings-as-errors
# run.sh starts the VM itself and needs to know where Elixir's own modules are.
elixir -e 'IO.puts(:code.lib_dir(:elixir))' >_build/prod/elixir-path
touch "$stamp"
