#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/test.sh" java-bare-vt-loop java-bare plimsoll.http.bare.AllTests
