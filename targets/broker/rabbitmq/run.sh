#!/bin/sh
# Starts epmd, which every Erlang node needs, writes the configuration, prints the start line and becomes the server.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=5672
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh

# The script of the same name in PATH changes the user, and fails for all but root and rabbitmq.
server=/usr/lib/rabbitmq/bin/rabbitmq-server
[ -x "$server" ] || { echo "rabbitmq: no $server; run: sh targets/broker/rabbitmq/install.sh" >&2; exit 1; }

# epmd and the port between nodes, both on 127.0.0.1 and on ports of their own: the usual ones may be somebody else's.
# shellcheck disable=SC2046  # words on purpose
set -- $(python3 ../infrastructure/free-ports.py 2)
export ERL_EPMD_PORT="$1" RABBITMQ_DIST_PORT="$2" ERL_EPMD_ADDRESS=127.0.0.1

# All that it writes. HOME gets the cookie of Erlang nodes.
export HOME="$DATA_DIR" RABBITMQ_MNESIA_BASE="$DATA_DIR/mnesia" RABBITMQ_LOG_BASE="$DATA_DIR/log" RABBITMQ_LOGS=-
export ERL_CRASH_DUMP="$DATA_DIR/erl_crash.dump"
# Nothing of this machine's own configuration.
export RABBITMQ_CONF_ENV_FILE="$DATA_DIR/none" RABBITMQ_CONFIG_FILE="$DATA_DIR/rabbitmq" RABBITMQ_ADVANCED_CONFIG_FILE="$DATA_DIR/none"
export RABBITMQ_ENABLED_PLUGINS_FILE="$DATA_DIR/enabled_plugins"
export RABBITMQ_NODENAME=plimsoll@localhost RABBITMQ_NODE_IP_ADDRESS=0.0.0.0 RABBITMQ_NODE_PORT="$PORT"
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S $WORKER_THREADS:$WORKER_THREADS +SDcpu $WORKER_THREADS:$WORKER_THREADS -kernel inet_dist_use_interface {127,0,0,1}"
# Only with this the script becomes the Erlang VM, instead of waiting for it.
export RUNNING_UNDER_SYSTEMD=true LC_ALL=C.UTF-8
echo '[].' >"$RABBITMQ_ENABLED_PLUGINS_FILE"
# The user guest may otherwise come from 127.0.0.1 alone, so not from another network namespace.
echo 'loopback_users = none' >"$DATA_DIR/rabbitmq.conf"

start_line
# A child of ours that the kernel kills when we are gone. Without it Erlang starts one that stays for ever.
setpriv --pdeathsig KILL epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 &
tries=0
until epmd -port "$ERL_EPMD_PORT" -names >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || { echo "rabbitmq: epmd does not answer on port $ERL_EPMD_PORT" >&2; exit 1; }
    sleep 0.05
done
exec "$server"
