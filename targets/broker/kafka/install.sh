#!/bin/sh
# Installs Java and Maven by the system's packages, where they are missing. Maven fetches Kafka at the first build.
set -eu
cd "$(dirname "$0")"
packages=
sh java.sh --version >/dev/null 2>&1 || packages=openjdk-17-jre-headless
command -v mvn >/dev/null 2>&1 || packages="$packages maven"
[ -n "$packages" ] || exit 0
# shellcheck disable=SC2086 # words on purpose
exec sh ../../../scripts/apt-install.sh kafka $packages
