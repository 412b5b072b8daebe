#!/bin/sh
# Sees to a Go that is new enough; see install.sh of ../../stt/go-nethttp, whose code this target shares.
#   sh install.sh            installs
#   sh install.sh version    prints the version, or fails; installs nothing
set -eu
exec sh "$(dirname "$0")/../../stt/go-nethttp/install.sh" "$@"
