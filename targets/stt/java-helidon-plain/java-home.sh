# shellcheck shell=sh
# Sourced: sets JAVA_HOME to a JDK 25 or newer. Leaves it as it is when that is one, then looks at the usual place for JDKs, then at PATH.
is_new_enough() {
    [ -x "$1/bin/javac" ] && [ -r "$1/release" ] || return 1
    jdk_version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release")
    [ "${jdk_version:-0}" -ge 25 ]
}

find_java_home() {
    on_path=$(command -v javac) && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    for candidate in "${JAVA_HOME:-}" /usr/lib/jvm/*25* "${on_path:-}"; do
        if [ -n "$candidate" ] && is_new_enough "$candidate"; then
            JAVA_HOME=$candidate
            export JAVA_HOME
            return 0
        fi
    done
    echo "java-helidon-plain: JDK 25 or newer is needed: set JAVA_HOME, or run install.sh" >&2
    return 1
}
