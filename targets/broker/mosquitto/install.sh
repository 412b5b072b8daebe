#!/bin/sh
# Installs mosquitto by the system's packages, where there is none. No service is left running or enabled.
set -eu
exec sh "$(dirname "$0")/../../http/infrastructure/install-program.sh" mosquitto mosquitto
