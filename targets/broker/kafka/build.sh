#!/bin/sh
# Fetches what pom.xml names into build/lib, once.
set -eu
cd "$(dirname "$0")"
# shellcheck source=java.sh
. ./java.sh
if ! cmp -s pom.xml build/pom.xml; then
    rm -rf build/lib
    mvn -B -q -ntp package
    cp pom.xml build/pom.xml
fi
version=$(basename build/lib/kafka_2.13-*.jar .jar | sed 's/.*-//')
jdk=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$(dirname "$java")/../release")
exec sh ../infrastructure/write-start-line.sh kafka "kafka $version" java="$jdk"
