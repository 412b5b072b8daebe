#!/bin/sh
# Python with pip, which fetches the server at the first build. Does nothing if it is there.
set -eu
exec sh "$(dirname "$0")/../infrastructure/install-pip.sh" nats
