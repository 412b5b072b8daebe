#!/bin/sh
# The two targets on jdk-httpserver differ in this word alone. Both run with ../java/jvm.flags.
exec sh "$(dirname "$0")/../jdk-httpserver/run.sh" pool
