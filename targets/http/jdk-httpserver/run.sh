#!/bin/sh
# Starts the server in this very process, so that signals reach it: sh run.sh vt|pool. JAVA_FLAGS come last, so they win.
# The properties are explained in the README.
set -eu
cd "$(dirname "$0")"
. ../java-plain/java-home.sh
find_java_home

# A bad value is left to the server, which says what is wrong with it.
case ${WORKER_THREADS:-1} in *[!0-9]* | 0*) carriers=1 ;; *) carriers=${WORKER_THREADS:-1} ;; esac

# shellcheck disable=SC2086  # flags are words
exec "$JAVA_HOME/bin/java" @../java/jvm.flags -Djdk.virtualThreadScheduler.parallelism="$carriers" \
    -Dsun.net.httpserver.nodelay=true \
    -Dsun.net.httpserver.idleInterval=120 -Dsun.net.httpserver.maxIdleConnections=1000000 \
    -Dsun.net.httpserver.maxReqTime=55 -Dsun.net.httpserver.maxReqHeaderSize=16384 \
    ${JAVA_FLAGS:-} \
    -jar target/jdk-httpserver.jar "$1"
