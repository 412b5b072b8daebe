#!/bin/sh
# Builds one module and what it needs. Does nothing, in some hundredths of a second, when nothing has changed.
#
#   sh build.sh MODULE         MODULE is the folder beside this one that holds the module: jetty-pool, netty-nio, …
set -eu
module=$1
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home

stamp=../$module/target/.built-from
state() {
    find pom.xml build.sh common/pom.xml common/src "../$module/pom.xml" "../$module/src" -type f | LC_ALL=C sort | xargs cksum
    cat "$JAVA_HOME/release"
}
# The modules share one Maven build, so one script at a time.
mkdir -p target
exec 9>target/.lock
flock 9

now=$(state | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    exit 0
fi
rm -f "$stamp"
# What Maven 3.8 itself does to sun.misc.Unsafe is no concern of ours.
export MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}"
# Not with -q, which hides the warnings that fail the build.
if ! mvn -B -ntp -DskipTests -pl ":$module" -am package >target/build.log 2>&1 9>&-; then
    grep -E '^\[(WARNING|ERROR)\]' target/build.log >&2
    exit 1
fi
echo "$now" >"$stamp"
