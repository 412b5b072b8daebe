#!/bin/sh
# Builds target/gateway.jar, target/lib and the AOT cache, if anything they are made of has changed.
set -eu
cd "$(dirname "$0")"
. ./jdk.sh

stamp=$({ cat pom.xml build.sh jvm.options "$JAVA_HOME/release"; find src/main -type f | LC_ALL=C sort | xargs cat; } | cksum)
if [ -f target/gateway.aot ] && [ "$(cat target/stamp 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi
rm -f target/stamp target/gateway.aot
mvn -B -q -ntp -DskipTests package

# A rehearsal of start, sessions and stop, for the classes to be loaded, linked and profiled ahead of time. The gateway then
# starts in a third of the time, and a burst of connections right after the start meets code that the JIT knows of.
"$JAVA_HOME/bin/java" @jvm.options $jdk_flags -XX:AOTCacheOutput=target/gateway.aot -cp target/gateway.jar:target/lib/'*' stt.Rehearsal
[ -f target/gateway.aot ] || : >target/gateway.aot # a JDK before 25 makes none, and does without
echo "$stamp" >target/stamp
