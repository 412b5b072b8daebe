#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/test.sh" jdk-pool jdk-httpserver plimsoll.http.jdk.AllTests
