#!/bin/sh
# Installs what the gateway is built and run with, on Debian 12 as root: a JDK (25 if it is there already, else 17 from
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
[ "$(id -u)" = 0 ] || fail "needs root to install a JDK and Maven: run this as root, or install JDK 25 and Maven 3.8 yourself"
command -v apt-get >/dev/null || fail "needs a JDK 25 (or 17) and Maven 3.8, and there is no apt-get to install them with"
apt="apt-get -o DPkg::Lock::Timeout=600 -qq"
$apt update >/dev/null || fail "apt-get update failed"
packages=""
have_maven || packages="maven"
have_jdk || packages="$packages openjdk-17-jdk-headless"
# shellcheck disable=SC2086 # words on purpose
DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends $packages >/dev/null || fail "apt-get install $packages failed"
have_jdk && have_maven || fail "installed $packages, and still there is no JDK or no Maven"
