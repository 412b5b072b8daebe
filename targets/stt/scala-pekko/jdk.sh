# shellcheck shell=sh disable=SC2034  # jdk_flags is for those who source this
# Sourced by the other scripts: sets JAVA_HOME to the JDK to use, 25 where there is one.
# With --version, for `[[build.needs]]`: prints its version.
find_jdk() {
    for jdk in "${JAVA_HOME:-}" /usr/lib/jvm/*25*; do
        # The AOT cache and compact object headers need 25, and JAVA_HOME may point to an older one.
        if [ -n "$jdk" ] && [ -x "$jdk/bin/java" ] && grep -q '^JAVA_VERSION="25' "$jdk/release" 2>/dev/null; then
            JAVA_HOME=$jdk
            export JAVA_HOME
            return 0
        fi
    done
    if java=$(command -v java); then
        JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$java")")")
        export JAVA_HOME
        return 0
    fi
    echo "scala-pekko: no JDK found: set JAVA_HOME to a JDK 25, or run: sh targets/stt/scala-pekko/install.sh" >&2
    return 1
}
find_jdk || exit 1
# Scala 3.3 has its lazy vals from sun.misc.Unsafe, of which JDK 24 and newer warn, and older ones do not know the flag.
if grep -q '^JAVA_VERSION="2[4-9]' "$JAVA_HOME/release" 2>/dev/null; then
    jdk_flags="--sun-misc-unsafe-memory-access=allow"
else
    jdk_flags=""
fi
if [ "${1:-}" = "--version" ]; then
    exec "$JAVA_HOME/bin/java" -version
fi
