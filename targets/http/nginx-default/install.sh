#!/bin/sh
# Installs nginx by the system's packages, where there is none. No service is left running or enabled.
set -eu
exec sh "$(dirname "$0")/../infrastructure/install-program.sh" nginx-default nginx
