#!/bin/sh
# Writes the start line with the versions of the server and of Erlang/OTP that are installed.
set -eu
cd "$(dirname "$0")"
debian=$(dpkg-query -W -f '${Version}' rabbitmq-server 2>/dev/null) || { echo "rabbitmq: run: sh targets/broker/rabbitmq/install.sh" >&2; exit 1; }
erlang=$(dpkg-query -W -f '${Version}' erlang-base 2>/dev/null || echo none)
exec sh ../infrastructure/write-start-line.sh rabbitmq "rabbitmq ${debian%%-*}" debian-package="$debian" erlang="$erlang"
