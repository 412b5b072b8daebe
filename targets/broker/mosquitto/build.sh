#!/bin/sh
# Writes the start line with the version of the server that is installed.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:/usr/sbin
# The version is in its help, which it prints with exit code 3.
version=$({ mosquitto -h || true; } | sed -n 's/^mosquitto version \([^ ]*\).*/\1/p')
debian=$(dpkg-query -W -f '${Version}' mosquitto 2>/dev/null || echo none)
exec sh ../infrastructure/write-start-line.sh mosquitto "mosquitto $version" debian-package="$debian"
