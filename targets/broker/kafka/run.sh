#!/bin/sh
# Writes the configuration, formats the folder if it is new, prints the start line and becomes the server.
set -eu
cd "$(dirname "$0")"
DEFAULT_PORT=9092
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
# shellcheck source=java.sh
. ./java.sh

# The controller is in the same process, and the broker talks to it over a port all the same. The folder's own data
# names this port, so it stays.
controller=$DATA_DIR/controller-port
[ -s "$controller" ] || python3 ../infrastructure/free-ports.py 1 >"$controller"
controller_port=$(cat "$controller")

case $LEVEL in durable) flush="log.flush.interval.messages=1" ;; *) flush= ;; esac
cat >"$DATA_DIR/server.properties" <<EOF
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://0.0.0.0:$PORT,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:$controller_port
log.dirs=$DATA_DIR/log
auto.create.topics.enable=false
# There is one broker.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
$flush
EOF
start_line
mkdir -p "$DATA_DIR/tmp"
set -- "-Dlog4j2.configurationFile=file:$PWD/log4j2.properties" "-Djava.io.tmpdir=$DATA_DIR/tmp" -cp 'build/lib/*'
# The name of the cluster is 16 bytes as base64url. Each folder is a cluster of its own, so it may be always the same.
[ -f "$DATA_DIR/log/meta.properties" ] ||
    "$java" -Xmx256m -XX:-UsePerfData "$@" kafka.tools.StorageTool format --standalone --cluster-id UGxpbXNvbGxCcm9rZXJLZg --config "$DATA_DIR/server.properties"
exec "$java" @jvm.flags "-XX:ActiveProcessorCount=$WORKER_THREADS" "$@" kafka.Kafka "$DATA_DIR/server.properties"
