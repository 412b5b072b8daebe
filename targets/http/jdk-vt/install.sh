#!/bin/sh
exec sh "$(dirname "$0")/../java-plain/install.sh" jdk-vt
