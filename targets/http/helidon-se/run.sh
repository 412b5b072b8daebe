#!/bin/sh
# Starts the server in this very process, so that signals reach it.
set -eu
cd "$(dirname "$0")"
. ../java/java-home.sh
find_java_home

# A bad value is left to the server, which says what is wrong with it.
case ${WORKER_THREADS:-1} in
    '' | *[!0-9]* | 0*) carriers=1 ;;
    *) carriers=${WORKER_THREADS:-1} ;;
esac
exec "$JAVA_HOME/bin/java" @../java/jvm.flags -Djdk.virtualThreadScheduler.parallelism="$carriers" -jar target/helidon-se.jar
