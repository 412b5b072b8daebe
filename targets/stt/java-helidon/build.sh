#!/bin/sh
# Builds the jar, and the AOT cache with which the JVM starts warm. Does nothing, in some hundredths of a second, when nothing has changed.
set -eu
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home

stamp=target/.built-from
state() {
    find pom.xml build.sh run.sh src/main src/test/java/plimsoll/stt/support -type f | LC_ALL=C sort | xargs cksum
    cat "$JAVA_HOME/release"
}
now=$(state | cksum)
if [ -f target/java-helidon.jar ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    exit 0
fi
rm -f "$stamp" target/java-helidon.aot
# What Maven 3.8 itself does to sun.misc.Unsafe is no concern of ours.
export MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}"
mvn -B -q -ntp -DskipTests package

# The gateway as it will run, under a load of some seconds. Its cache saves time only, so the build does not fail for want of it.
if ! WORKER_THREADS=1 JAVA_GATEWAY_FLAGS="-XX:AOTCacheOutput=target/java-helidon.aot -Xlog:aot=off,cds=off" \
    "$JAVA_HOME/bin/java" -cp "target/test-classes:target/java-helidon.jar" plimsoll.stt.support.Training \
    sh run.sh >target/training.log 2>&1; then
    echo "java-helidon: no AOT cache was made, see target/training.log; the gateway will start cold" >&2
fi
echo "$now" >"$stamp"
