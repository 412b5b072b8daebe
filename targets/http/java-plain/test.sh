#!/bin/sh
# Compiles with all warnings as errors, looks at the form of the source, and runs a test program, whose last line counts.
#
#   sh test.sh TARGET FOLDER TEST-CLASS [ARGUMENT…]
set -eu
target=$1
folder=$2
class=$3
shift 3
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home
sh ../"$target"/build.sh

# What a formatter would see is checked here in part: the JDK has none.
# shellcheck disable=SC2016  # awk's own variables
find src ../"$folder"/src -name '*.java' | LC_ALL=C sort | xargs awk '
    length($0) > 120 { print FILENAME ":" FNR ": longer than 120 characters"; bad = 1 }
    /\t/ || /[ \r]$/ { print FILENAME ":" FNR ": a tab, or blanks at the end"; bad = 1 }
    FNR > 500 { print FILENAME ": longer than 500 lines"; exit bad = 1 }
    END { exit bad }
'
exec "$JAVA_HOME/bin/java" -cp "../$folder/target/tests:../$folder/target/$folder.jar" "$class" "$target" "$@"
