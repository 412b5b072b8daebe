#!/bin/sh
# Starts the server in this very process, so that signals reach it.
set -eu
cd "$(dirname "$0")"
. ../java/java-home.sh
find_java_home
# jboss-threads, which Undertow needs, uses sun.misc.Unsafe. Without the second flag the JVM warns of it.
exec "$JAVA_HOME/bin/java" @../java/jvm.flags --sun-misc-unsafe-memory-access=allow -jar target/undertow.jar
