#!/bin/sh
# Writes build/start-line in the target's folder: the line that run.sh prints, but for port and threads. Asking for
# versions takes longer than starting some of these brokers, so it is done in the build.
#
#   sh write-start-line.sh TARGET RUNTIME [LIBRARY=VERSION…]
set -eu
target=$1
runtime=$2
shift 2
libraries=
for library in "$@"; do
    libraries="$libraries${libraries:+, }\"${library%%=*}\": \"${library#*=}\""
done
mkdir -p build
printf '{"target": "%s", "runtime": "%s", "libraries": {%s}' "$target" "$runtime" "$libraries" >"build/.start-line.$$"
mv "build/.start-line.$$" build/start-line
