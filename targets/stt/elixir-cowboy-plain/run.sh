#!/bin/sh
# Starts the release.
exec sh "$(dirname "$0")/inside.sh" _build/prod/rel/gateway/bin/gateway start
