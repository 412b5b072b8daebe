#!/bin/sh
# Looks for what building needs: JDK 25 and Maven. Installs Maven, and the JDK where Debian's packages have it. Silent when all is there.
set -eu
cd "$(dirname "$0")"

have_jdk() { (. ./java-home.sh && find_java_home) 2>/dev/null; }
have_maven() { command -v mvn >/dev/null 2>&1; }

if have_jdk && have_maven; then
    exit 0
fi
fail() {
    echo "java-helidon-plain: $1" >&2
    exit 1
}
install() { sh ../../../scripts/apt-install.sh java-helidon-plain "$@"; }
have_maven || install maven
if ! have_jdk; then
    # Debian 13 has 25; on 12 it comes from Temurin's own repository, which this script does not add to a machine.
    for package in openjdk-25-jdk-headless temurin-25-jdk; do
        apt-cache show "$package" >/dev/null 2>&1 || continue
        install "$package" && break
    done
    have_jdk || fail "no package of JDK 25 in this machine's sources; install Temurin 25 and set JAVA_HOME"
fi
