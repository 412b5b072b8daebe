# shellcheck shell=sh
# Sourced by the other scripts: sets `java` to a Java of 17 or newer.
# With --version, for `[[build.needs]]`: prints its version, or fails.
is_new_enough() {
    version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release" 2>/dev/null)
    [ -x "$1/bin/java" ] && [ "${version:-0}" -ge 17 ]
}
on_path=$(command -v java) && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")") || on_path=
java=
for home in "${JAVA_HOME:-}" /usr/lib/jvm/*25* "$on_path" /usr/lib/jvm/*; do
    if [ -n "$home" ] && is_new_enough "$home"; then
        java=$home/bin/java
        break
    fi
done
[ -n "$java" ] || { echo "kafka: Java 17 or newer is needed: set JAVA_HOME, or run: sh targets/broker/kafka/install.sh" >&2; exit 1; }
if [ "${1:-}" = --version ]; then
    exec "$java" --version
fi
