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
    echo "java-helidon: $1" >&2
    exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "JDK 25 and Maven are needed, and there is no apt-get here; install both, and set JAVA_HOME"
[ "$(id -u)" = 0 ] || fail "run install.sh as root, or install JDK 25 and Maven and set JAVA_HOME"

apt() { apt-get -o DPkg::Lock::Timeout=600 "$@"; }
apt update -qq
have_maven || apt install -y -qq --no-install-recommends maven >/dev/null || fail "the package maven could not be installed"
if ! have_jdk; then
    # Debian 13 has 25; on 12 it comes from Temurin's own repository, which this script does not add to a machine.
    for package in openjdk-25-jdk-headless temurin-25-jdk; do
        if apt-cache show "$package" >/dev/null 2>&1 && apt install -y -qq --no-install-recommends "$package" >/dev/null; then
            break
        fi
    done
    have_jdk || fail "no package of JDK 25 in this machine's sources; install Temurin 25 and set JAVA_HOME"
fi
