#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/test.sh" jdk-vt jdk-httpserver plimsoll.http.jdk.AllTests
