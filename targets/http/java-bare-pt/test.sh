#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/test.sh" java-bare-pt java-bare plimsoll.http.bare.AllTests
