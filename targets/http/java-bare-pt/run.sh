#!/bin/sh
# The four targets on java-bare differ in this word alone.
exec sh "$(dirname "$0")/../java-bare/run.sh" pt
