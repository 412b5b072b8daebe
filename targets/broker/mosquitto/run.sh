#!/bin/sh
# Writes the configuration, prints the start line and becomes the server.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=1883
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
PATH=$PATH:/usr/sbin

# Started by root it would go on as the user mosquitto. Others have no choice.
if [ "$(id -u)" = 0 ]; then user="user root"; else user=; fi
cat >"$DATA_DIR/mosquitto.conf" <<EOF
$user
listener $PORT 0.0.0.0
allow_anonymous true
persistence false
# 0 is no limit. Above its own limit of 1,000 mosquitto drops messages without a word to anybody.
max_queued_messages 0
max_inflight_messages 0
sys_interval 1
log_dest stderr
EOF
start_line
exec mosquitto -c "$DATA_DIR/mosquitto.conf"
