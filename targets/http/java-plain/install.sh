#!/bin/sh
# Looks for JDK 25, and installs it where Debian's packages have it. Silent if it is there.
#
#   sh install.sh TARGET
set -eu
cd "$(dirname "$0")"

have_jdk() { (. ./java-home.sh && find_java_home) 2>/dev/null; }

if have_jdk; then
    exit 0
fi
# Debian 13 has 25; on 12 it comes from Temurin's own repository, which this script does not add to a machine.
for package in openjdk-25-jdk-headless temurin-25-jdk; do
    apt-cache show "$package" >/dev/null 2>&1 || continue
    sh ../../../scripts/apt-install.sh "$1" "$package" && break
done
have_jdk || {
    echo "$1: no package of JDK 25 in this machine's sources; install Temurin 25 and set JAVA_HOME" >&2
    exit 1
}
