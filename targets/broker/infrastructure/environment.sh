# Sourced by the run.sh of a finished broker, in its folder, after DEFAULT_PORT is set: the variables of the contract,
# checked and exported. A bad value ends the script with exit code 2 and one line that names the variable.
# shellcheck shell=sh disable=SC2034,SC2154  # value is assigned by eval; who sources this uses the rest

# refuse NAME REMEDY: one line, whatever the variable holds.
refuse() {
    eval "value=\${$1-}"
    printf '%s="%s": %s\n' "$1" "$(printf %s "$value" | LC_ALL=C tr -c '[:print:]' '?')" "$2" >&2
    exit 2
}

# whole NAME DEFAULT MOST: exports NAME, a whole number from 1 to MOST.
whole() {
    eval "value=\${$1-$2}"
    case $value in
        '' | 0* | *[!0-9]* | ???????????*) valid=no ;;
        *) [ "$value" -le "$3" ] && valid=yes || valid=no ;;
    esac
    [ "$valid" = yes ] || refuse "$1" "give a whole number from 1 to $3"
    export "$1=$value"
}

whole PORT "$DEFAULT_PORT" 65535
whole WORKER_THREADS 1 64

# What configuration files of these brokers cannot hold is refused here: quotes, backslashes, commas, control characters.
case ${DATA_DIR-} in
    *[\"\'\\,]* | *[[:cntrl:]]*) refuse DATA_DIR "give a folder without quotes, backslashes, commas and control characters" ;;
    /*) [ -d "$DATA_DIR" ] || refuse DATA_DIR "there is no such folder; make it" ;;
    *) refuse DATA_DIR "give the absolute path of a folder" ;;
esac

# The levels that the manifest has, by name. The first is the usual one.
levels=$(grep -o '"[a-z][a-z-]*: confirm [a-z]*, deliver [a-z]*"' target.toml | sed 's/"\([^:]*\):.*/\1/' | tr '\n' ' ')
LEVEL=${LEVEL-${levels%% *}}
case " $levels" in
    *" $LEVEL "*) ;;
    *) refuse LEVEL "give one of: ${levels% }" ;;
esac

# Prints the start line that build.sh prepared. All that follows on stdout goes to stderr, where the log is.
start_line() {
    [ -f build/start-line ] || { echo "run build.sh first: build/start-line is missing" >&2; exit 1; }
    printf '%s, "port": %s, "worker_threads": %s}\n' "$(cat build/start-line)" "$PORT" "$WORKER_THREADS"
    exec >&2
}
