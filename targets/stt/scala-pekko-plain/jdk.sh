# shellcheck shell=sh disable=SC2034  # jdk_flags is for those who source this
# Sourced by the other scripts: sets JAVA_HOME to a JDK 25. With --version, for `[[build.needs]]`: prints its version.
find_jdk() {
    on_path=$(command -v javac) && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    for jdk in "${JAVA_HOME:-}" /usr/lib/jvm/*25* "${on_path:-}"; do
        if [ -x "$jdk/bin/javac" ] && grep -q '^JAVA_VERSION="25' "$jdk/release" 2>/dev/null; then
            JAVA_HOME=$jdk
            export JAVA_HOME
            return 0
        fi
    done
    echo "scala-pekko-plain: no JDK 25: set JAVA_HOME, or run: sh targets/stt/scala-pekko-plain/install.sh" >&2
    return 1
}
find_jdk || exit 1
# Scala 3.3 has its lazy vals from sun.misc.Unsafe, of which JDK 24 and newer warn.
jdk_flags="--sun-misc-unsafe-memory-access=allow"
if [ "${1:-}" = "--version" ]; then
    exec "$JAVA_HOME/bin/java" -version
fi
