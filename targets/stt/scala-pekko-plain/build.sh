#!/bin/sh
# Builds target/gateway.jar and target/lib, if anything they are made of has changed.
set -eu
cd "$(dirname "$0")"
. ./jdk.sh
stamp=$({ cat pom.xml build.sh "$JAVA_HOME/release"; find src/main -type f | LC_ALL=C sort | xargs cat; } | cksum)
if [ -f target/gateway.jar ] && [ "$(cat target/stamp 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi
rm -f target/stamp
MAVEN_OPTS="$jdk_flags ${MAVEN_OPTS:-}" mvn -B -q -ntp -DskipTests package
echo "$stamp" >target/stamp
