#!/bin/sh
# The four targets on java-bare differ in this word alone. All of them run with ../java/jvm.flags.
exec sh "$(dirname "$0")/../java-bare/run.sh" loop
