#!/bin/sh
set -eu
cd "$(dirname "$0")"
exec sh ../infrastructure/build.sh haproxy haproxy
