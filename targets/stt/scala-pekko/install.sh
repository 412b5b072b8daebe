#!/bin/sh
# Installs what the gateway is built and run with, on Debian 12: a JDK (25 if it is there already, else 17 from
# Debian) and Maven. Does nothing when both are there. Libraries, compiler and plugins come by Maven at the first build.
set -eu
cd "$(dirname "$0")"
have_jdk() { (. ./jdk.sh && [ -x "$JAVA_HOME/bin/javac" ]) 2>/dev/null; }
have_maven() { command -v mvn >/dev/null; }
if have_jdk && have_maven; then
    exit 0
fi
fail() {
    echo "scala-pekko: $1" >&2
    exit 1
}
packages=""
have_maven || packages="maven"
have_jdk || packages="$packages openjdk-17-jdk-headless"
# shellcheck disable=SC2086 # words on purpose
sh ../../../scripts/apt-install.sh scala-pekko $packages
if ! have_jdk || ! have_maven; then
    fail "installed $packages, and still there is no JDK or no Maven"
fi
