# Sourced by the run.sh of a finished program: the variables of the contract, checked and exported. A bad value ends the
# script with exit code 2 and one line that names the variable.
# shellcheck shell=sh disable=SC2154  # value is assigned by eval

# whole NAME DEFAULT MOST: exports NAME, a whole number from 1 to MOST.
whole() {
    eval "value=\${$1-$2}"
    case $value in
        '' | 0* | *[!0-9]* | ???????????*) valid=no ;;
        *) [ "$value" -le "$3" ] && valid=yes || valid=no ;;
    esac
    if [ "$valid" = no ]; then
        # One line, whatever the value holds.
        printf '%s="%s": give a whole number from 1 to %s\n' "$1" "$(printf %s "$value" | LC_ALL=C tr -c '[:print:]' '?')" "$3" >&2
        exit 2
    fi
    export "$1=$value"
}

whole PORT 3000 65535
whole WORKER_THREADS 1 64
whole DRAIN_TIMEOUT_MS 5000 1000000000
whole MAX_BODY_BYTES 1048576 2147483647
[ -z "${H2_PORT+set}" ] || whole H2_PORT 0 65535

# When requests in flight are cut off. The rest of the time is for the exit.
DRAIN_CUT_MS=$((DRAIN_TIMEOUT_MS * 4 / 5 + 1))
export DRAIN_CUT_MS

PATH=$PATH:/usr/sbin
