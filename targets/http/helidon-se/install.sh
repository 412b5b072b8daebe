#!/bin/sh
# JDK 25 and Maven, as for all targets in Java here.
exec sh "$(dirname "$0")/../java/install.sh" "$@"
