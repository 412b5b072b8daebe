#!/bin/sh
# Starts the gateway. `exec`, so that signals reach the JVM itself.
set -eu
cd "$(dirname "$0")"
. ./jdk.sh
# shellcheck disable=SC2154,SC2086 # jdk_flags comes from jdk.sh, and is words
exec "$JAVA_HOME/bin/java" $jdk_flags -cp target/gateway.jar:target/lib/'*' stt.Main
