#!/bin/sh
# All four targets on java-bare run the same jar.
exec sh "$(dirname "$0")/../java-plain/build.sh" java-bare plimsoll.http.bare.Main
