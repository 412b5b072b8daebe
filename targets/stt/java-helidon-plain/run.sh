#!/bin/sh
# Starts the gateway in this very process, so that signals reach it.
set -eu
. ./java-home.sh
find_java_home

# A bad value is left to the gateway, which says what is wrong with it.
case ${WORKER_THREADS:-} in
    '' | *[!0-9]* | 0*) workers=$(nproc) ;;
    *) workers=$WORKER_THREADS ;;
esac
exec "$JAVA_HOME/bin/java" -Djdk.virtualThreadScheduler.parallelism="$workers" -jar target/java-helidon-plain.jar
