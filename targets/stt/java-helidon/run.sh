#!/bin/sh
# Starts the gateway in this very process, so that signals reach it. The flags are explained in the README.
set -eu
. ./java-home.sh
find_java_home

# A bad value is left to the gateway, which says what is wrong with it.
case ${WORKER_THREADS:-} in
    '' | *[!0-9]* | 0*) workers=$(nproc) ;;
    *) workers=$WORKER_THREADS ;;
esac

# Made by build.sh. A JVM that cannot use it starts without it.
cache=target/java-helidon.aot
[ ! -f "$cache" ] || set -- "$@" -XX:AOTCache="$cache" -Xlog:aot=off,cds=off

# shellcheck disable=SC2086  # flags are words
exec "$JAVA_HOME/bin/java" \
    -Djdk.virtualThreadScheduler.parallelism="$workers" -Djdk.pollerMode=1 \
    -XX:+UseSerialGC -Xms512m -Xmx1g \
    "$@" ${JAVA_GATEWAY_FLAGS:-} \
    -jar target/java-helidon.jar
