#!/bin/sh
# Dialyzer, by hand: needs Debian's erlang-dialyzer. Its table of what Erlang's own applications do (PLT) takes minutes to
# make, once, which is why this is no part of test.sh. What the libraries do is unknown to it.
set -eu
cd "$(dirname "$0")"
sh build.sh
plt=_build/otp.plt
elixir="$(cat _build/prod/elixir-path)/ebin"
[ -e "$plt" ] || dialyzer --build_plt --output_plt "$plt" --apps erts kernel stdlib crypto >/dev/null || [ -e "$plt" ]
# Exit code 2 stands for warnings; that a function or a behaviour is unknown is one of them.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
dialyzer --no_check_plt -pa "$elixir" --plt "$plt" -Wunmatched_returns -r _build/prod/lib/stt_gateway/ebin >"$log" || true
if grep -E '^[a-z_/]+\.ex:' "$log" | grep -v 'Callback info about'; then
    exit 1
fi
grep -q '^ done in' "$log" && echo "dialyzer: nothing to report"
