#!/bin/sh
# Builds the jar of a folder beside this one, from its source and the shared one. Any warning of the compiler is an error. Does nothing if nothing has changed.
#
#   sh build.sh FOLDER MAIN-CLASS      makes ../FOLDER/target/FOLDER.jar, and ../FOLDER/target/tests
set -eu
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home
folder=$1
main_class=$2
target=../$folder/target
mkdir -p "$target"

# Several targets build the same jar, perhaps at the same time.
exec 9>"$target/.lock"
flock 9

state() {
    echo "$main_class"
    find build.sh src ../"$folder"/src -type f | LC_ALL=C sort | xargs cksum
    cat "$JAVA_HOME/release"
}
now=$(state | cksum)
if [ -f "$target/$folder.jar" ] && [ "$(cat "$target/.built-from" 2>/dev/null)" = "$now" ]; then
    exit 0
fi
rm -rf "$target/.built-from" "$target/classes" "$target/tests"

compile() {
    into=$1
    path=$2
    shift 2
    find "$@" -name '*.java' | LC_ALL=C sort >"$target/sources"
    "$JAVA_HOME/bin/javac" --release 25 -Xlint:all -Werror -g -d "$into" -cp "$path" "@$target/sources"
}
compile "$target/classes" "" src/main ../"$folder"/src/main
compile "$target/tests" "$target/classes" src/test ../"$folder"/src/test
# A fixed date makes the jar the same, byte for byte, for the same source.
"$JAVA_HOME/bin/jar" --create --file "$target/$folder.jar" --date 2025-01-01T00:00:00Z --main-class "$main_class" -C "$target/classes" .
echo "$now" >"$target/.built-from"
