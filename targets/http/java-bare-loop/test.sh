#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/test.sh" java-bare-loop java-bare plimsoll.http.bare.AllTests
