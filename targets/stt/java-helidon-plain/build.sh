#!/bin/sh
# Builds the jar and gathers its libraries. Does nothing when nothing has changed.
set -eu
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home

stamp=target/.built-from
state() {
    find pom.xml build.sh src/main -type f | LC_ALL=C sort | xargs cksum
    cat "$JAVA_HOME/release"
}
now=$(state | cksum)
if [ -f target/java-helidon-plain.jar ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    exit 0
fi
rm -f "$stamp"
# Maven 3.8 itself uses sun.misc.Unsafe, of which a new JDK warns.
export MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}"
mvn -B -q -ntp -DskipTests package
echo "$now" >"$stamp"
