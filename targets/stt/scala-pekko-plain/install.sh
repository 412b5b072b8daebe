#!/bin/sh
# Installs what the gateway is built and run with: JDK 25 and Maven, from Debian's packages. Does nothing when both are
# there. Libraries, compiler and plugins come by Maven at the first build.
set -eu
cd "$(dirname "$0")"
have_jdk() { (. ./jdk.sh) 2>/dev/null; }
have_maven() { command -v mvn >/dev/null 2>&1; }
if have_jdk && have_maven; then
    exit 0
fi
install() { sh ../../../scripts/apt-install.sh scala-pekko-plain "$@"; }
have_maven || install maven
if ! have_jdk; then
    # Debian 13 has it; 12 has not.
    if apt-cache show openjdk-25-jdk-headless >/dev/null 2>&1; then
        install openjdk-25-jdk-headless
    fi
    if ! have_jdk; then
        echo "scala-pekko-plain: no package of JDK 25 here; install one and set JAVA_HOME" >&2
        exit 1
    fi
fi
