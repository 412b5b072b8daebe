#!/bin/sh
# Both targets on jdk-httpserver run the same jar.
exec sh "$(dirname "$0")/../java-plain/build.sh" jdk-httpserver plimsoll.http.jdk.Main
