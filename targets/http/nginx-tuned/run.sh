#!/bin/sh
# Makes the configuration, prints the start line and becomes nginx.
set -eu
cd "$(dirname "$0")"
# shellcheck source=../infrastructure/run-nginx.sh
. ../infrastructure/run-nginx.sh
