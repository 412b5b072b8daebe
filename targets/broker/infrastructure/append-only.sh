# Sourced by the run.sh of redis and of valkey after environment.sh: writes the configuration, which both read alike.
# shellcheck shell=sh disable=SC2154
case $LEVEL in
    durable) append=yes fsync=always ;;
    memory) append=no fsync=everysec ;;
    *) append=yes fsync=everysec ;;
esac
cat >"$DATA_DIR/server.conf" <<EOF
bind 0.0.0.0
port $PORT
# It is protected otherwise, and then answers only clients of this host without a password.
protected-mode no
daemonize no
dir "$DATA_DIR"
io-threads $WORKER_THREADS
save ""
appendonly $append
appendfsync $fsync
EOF
