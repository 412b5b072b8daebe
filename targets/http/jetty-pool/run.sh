#!/bin/sh
# Starts the server in this very process, so that signals reach it.
set -eu
cd "$(dirname "$0")"
. ../java/java-home.sh
find_java_home
exec "$JAVA_HOME/bin/java" @../java/jvm.flags -jar target/jetty-pool.jar jetty-pool
