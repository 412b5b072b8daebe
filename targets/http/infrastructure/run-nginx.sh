# Sourced by the run.sh of both nginx targets, in their folder: makes the configuration from nginx.conf.in and becomes
# nginx.
# shellcheck shell=sh disable=SC2154
# shellcheck source=environment.sh
. ../infrastructure/environment.sh

# One folder for each port, so that two can run at a time. Paths in the configuration are relative to it.
run=$PWD/build/run-$PORT
mkdir -p "$run/temp"
# A master that is root would start its workers as www-data, which may not be allowed to read this folder. Others have no choice.
if [ "$(id -u)" = 0 ]; then user="user root;"; else user=; fi
if [ -n "${H2_PORT:-}" ]; then h2=; else h2=/@H2_PORT@/d; fi
sed -e "$h2" \
    -e "s/@USER@/$user/" \
    -e "s/@PORT@/$PORT/" \
    -e "s/@H2_PORT@/${H2_PORT:-}/" \
    -e "s/@WORKER_THREADS@/$WORKER_THREADS/" \
    -e "s/@DRAIN_CUT_MS@/$DRAIN_CUT_MS/" \
    -e "s/@MAX_BODY_BYTES@/$MAX_BODY_BYTES/" \
    nginx.conf.in >"$run/nginx.conf.$$"
mv "$run/nginx.conf.$$" "$run/nginx.conf"

# shellcheck source=start-line.sh
. ../infrastructure/start-line.sh
exec nginx -p "$run/" -c "$run/nginx.conf" -e stderr -g 'daemon off;'
