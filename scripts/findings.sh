#!/bin/sh
# Repeats the measurements of docs/stt/findings.md, docs/stt/gateways.md, docs/http/findings.md, docs/broker/findings.md, docs/voice/findings.md and docs/stt-real/findings.md. Every figure there
# is from a folder that this script creates below results/findings (or the given folder).
#
#   sh scripts/findings.sh                    all questions, about four hours on a quiet machine
#   sh scripts/findings.sh pace nodelay       only these
#   TARGETS="go-nethttp ts-bun" sh scripts/findings.sh pace overload     only these targets
#   OUT=somewhere sh scripts/findings.sh …
#   RANKING=results/… sh scripts/findings.sh overload     the folder of a `find --all --vcpu 1`: every target gets twice its load line
#
# Questions: limit accounts busier frameworks pace free-threading interpreters workers nodelay bursts beam overload
# of http:   loop-or-thread pollers warm-up jit connections pacing closed-loop
# of broker: crash load-lines tiers windows stream-readers
# of voice:  breaking stages half faults lines costs
# of stt-real: recognisers
set -eu
cd "$(dirname "$0")/.."

plimsoll=target/release/plimsoll
out=${OUT:-results/findings}
[ -x "$plimsoll" ] || make build

# variant TARGET SUFFIX VARIABLE=VALUE…: writes a manifest next to the target's own that starts the target with these
# variables, and prints its path.
variant() {
    target=$1 suffix=$2
    shift 2
    folder=$(echo targets/*/"$target")
    file=$folder/variant-$suffix.toml
    sed "s/^name = .*/name = \"$target-$suffix\"/" "$folder/target.toml" >"$file"
    # A variable counts only below the head of its table.
    grep -q '^\[run\.env\]' "$file" || printf '\n[run.env]\n' >>"$file"
    for pair in "$@"; do
        sed -i "s|^\[run\.env\]|[run.env]\n${pair%%=*} = \"${pair#*=}\"|" "$file"
    done
    echo "$file"
}

# compare NAME A B FLAGS…: runs trials of A and B in turns. If this machine cannot run one of them, it says so and
# continues with the next comparison.
compare() {
    name=$1 a=$2 b=$3
    shift 3
    echo "== $name"
    code=0
    "$plimsoll" compare "$a" "$b" --out "$out/$name" "$@" || code=$?
    # Exit codes 1 and 3 are answers: worse, or not shown. 130 means that the user interrupted it.
    [ "$code" != 130 ] || exit 130
    case $code in 0 | 1 | 3) ;; *) echo "findings: $name was not measured (exit code $code)" >&2 ;; esac
}

# compare_costs NAME A B: short trials, because they compare the cost of a frame, and each pair has its own start.
compare_costs() {
    compare "$@" --vcpu 1 --sessions 300 --pairs "${pairs:-3}" --ramp 2 --warm-up 3 --measured 6
}

paced=${TARGETS:-"rust-epoll cpp-beast java-helidon scala-pekko go-nethttp ts-bun elixir-otp python-asgi"}
divided=${TARGETS:-"rust-axum cpp-beast java-helidon scala-pekko go-nethttp elixir-otp python-asgi"}
tuned_ones="rust-axum cpp-beast go-nethttp ts-bun elixir-otp java-helidon scala-pekko python-asgi"
framework_ones="rust-axum-plain cpp-uwebsockets cpp-beast-plain go-nethttp-plain ts-bun-plain ts-node elixir-cowboy-plain java-helidon-plain scala-pekko-plain python-fastapi-granian"
every="rust-epoll $tuned_ones $framework_ones"
overloaded=${TARGETS:-"$framework_ones python-fastapi-uvicorn"}

# What a framework costs: each gateway whose manifest names a tuned one, beside that. A JVM needs more than a few seconds
# to warm up, and one vCPU does not carry 200 sessions with FastAPI.
frameworks() {
    for framework in ${TARGETS:-$(grep -l '^tuned = ' targets/stt/*/target.toml | xargs -n 1 dirname | xargs -n 1 basename)}; do
        tuned=$(sed -n 's/^tuned = "\(.*\)"$/\1/p' "targets/stt/$framework/target.toml")
        case $framework in python-fastapi-* | scala-*) sessions=100 ;; *) sessions=200 ;; esac
        case $framework in java-* | scala-*) warm_up=40 ;; *) warm_up=10 ;; esac
        compare "framework-$framework" "$tuned" "$framework" --vcpu 1 --sessions $sessions --pairs 3 --ramp 3 --warm-up $warm_up --measured 10
    done
}

limit() {
    compare limit rust-axum rust-epoll --vcpu 1 --sessions 1000 --pairs 5
    compare limit-loopback rust-axum rust-epoll --vcpu 1 --sessions 1000 --pairs 3 --network loopback
}

# Whose packets cost whom: every gateway at one load, on the loopback and in a network of its own by turns.
accounts() {
    for round in ${ROUNDS:-1 2 3}; do
        for target in ${TARGETS:-$every}; do
            case $target in python-fastapi-*) sessions=50 ;; scala-*) sessions=100 ;; *) sessions=200 ;; esac
            account "$target" $sessions "$round"
        done
    done
}

# account TARGET SESSIONS ROUND: a trial on either network; every second round in the other order.
account() {
    case $3 in 2) order="own loopback" ;; *) order="loopback own" ;; esac
    # A JVM compiles for a while.
    case $1 in java-*) warm_up=20 ;; scala-*) warm_up=30 ;; *) warm_up=8 ;; esac
    for network in $order; do
        "$plimsoll" run "$1" --vcpu 1 --sessions "$2" --seed "$3" --network "$network" --ramp 3 --warm-up $warm_up --measured 8 --out "$out/accounts-$network" || true
    done
}

# What a session costs while the same program gets busier.
busier() {
    for sessions in 50 100 200 400 600 800; do
        for target in ${TARGETS:-go-nethttp-plain rust-axum-plain}; do
            "$plimsoll" run "$target" --vcpu 1 --sessions $sessions --out "$out/busier-$target" || true
        done
    done
}

pace() {
    for target in $paced; do
        file=$(variant "$target" unpaced READ_PACE_MS=0)
        with=$(variant "$target" paced READ_PACE_MS=200)
        compare_costs "pace-$target" "$file" "$with"
    done
}

free_threading() {
    own_loop=$(variant python-asgi asyncio EVENT_LOOP=asyncio)
    compare_costs free-threading-loop python-asgi "$own_loop"
    # The same version, built in the same way, with the GIL and without.
    sh targets/stt/python-asgi-ft/build-cpython.sh
    GIL=1 sh targets/stt/python-asgi-ft/build-cpython.sh
    with_gil=$(variant python-asgi-ft gil)
    sed -i 's|build/venv/|build/venv-gil/|; s|"sh", "build.sh"|"env", "GIL=1", &|; s|"threads"|"processes"|' "$with_gil"
    # Three pairs do not show it.
    pairs=6
    compare_costs free-threading "$with_gil" python-asgi-ft
    pairs=
}

# The same gateway and libraries on the first CPython of the path, on Debian 12's, and on the one that its build.sh takes.
interpreters() {
    first=$(on_python path python3)
    [ ! -x /usr/bin/python3.11 ] || compare_interpreters interpreter-build "$first" "$(on_python bookworm /usr/bin/python3.11)"
    compare_interpreters interpreter-version "$first" python-fastapi-granian
}

compare_interpreters() {
    compare "$1" "$2" "$3" --vcpu 1 --sessions 50 --pairs 8 --ramp 2 --warm-up 5 --measured 10
}

# on_python SUFFIX PYTHON: a manifest of python-fastapi-granian on this interpreter.
on_python() {
    venv=$(realpath "$out")/venv-$1
    "$2" -m venv --clear --without-pip "$venv"
    PYTHONWARNINGS=ignore python3 -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check --no-deps \
        --require-hashes -r targets/stt/python-fastapi-granian/requirements.lock
    file=$(variant python-fastapi-granian "$1")
    sed -i "s|\"\.venv/bin/python\"|\"$venv/bin/python\"|; s|^ships = .*|ships = [\"src\", \"$venv/lib\"]|" "$file"
    echo "$file"
}

# Two workers on the target's one core: what the division costs. A machine with two cores cannot show what two cores
# would give, because the client needs one of them.
workers() {
    for target in $divided; do
        file=$(variant "$target" two-workers)
        sed -i 's/^threads_per_vcpu = .*/threads_per_vcpu = 2/' "$file"
        compare_costs "workers-$target" "$target" "$file"
    done
}

nodelay() {
    for round in 1 2 3; do
        for flag in "" --no-nodelay; do
            # shellcheck disable=SC2086  # no word, or one
            "$plimsoll" run rust-axum --vcpu 1 --sessions 300 --seed "$round" $flag --out "$out/nodelay${flag:+-off}" || true
        done
    done
}

# 1,500 connects in 3 s, to a process that has just started. A header that makes the handshake unusual keeps scala-pekko
# from its short cut. Each connection then gets a stream of Pekko HTTP, as in any server built on it.
bursts() {
    burst="--vcpu 1 --sessions 1500 --ramp 3 --warm-up 2 --measured 4"
    for round in 1 2 3; do
        # shellcheck disable=SC2086  # words
        "$plimsoll" run scala-pekko $burst --seed "$round" --out "$out/burst-recognised" || true
        # shellcheck disable=SC2086  # words
        "$plimsoll" run scala-pekko $burst --seed "$round" --header "X-Via: one" --header "X-Via: two" --out "$out/burst-streams" || true
    done
}

# Where the BEAM's time goes: its own accounts in a running gateway, and the cost of a process per connection by itself.
beam() {
    mkdir -p "$out/beam"
    accounts=$(realpath "$out/beam")/msacc.txt
    file=$(variant elixir-otp msacc "STT_ERL_FLAGS=-eval spawn(fun()->timer:sleep(9000),msacc:start(8000),msacc:print(atom_to_list('$accounts'),msacc:stats(),#{})end).")
    "$plimsoll" run --manifest "$file" --vcpu 1 --sessions 300 --out "$out/beam" || true
    sh targets/stt/elixir-otp/bench/process-per-connection.sh 300 8 5 | tee "$out/beam/process-per-connection.jsonl"
}

# Twice the load line: no crash, bounded memory, every frame named. Then a few sessions on the same process.
overload() {
    for target in $overloaded; do
        echo "== overload $target"
        sessions=1000
        bracket=${RANKING:-}/$target/bracket.json
        [ ! -f "$bracket" ] || sessions=$(python3 -c 'import json, sys; print(2 * (json.load(open(sys.argv[1]))["confirmed"] or 500))' "$bracket")
        sh scripts/overload.sh "$target" "$out/overload-$target" "$sessions" || echo "findings: overload of $target failed" >&2
    done
}

# A trial of http: ramp and window are short, and the target gets 5 s to warm up unless the question is another.
http="--workload http --vcpu 1 --ramp 1 --measured 6"

# request NAME TARGET FLAGS…: one trial of http. TARGET is a name, or the path of a manifest.
request() {
    name=$1 target=$2
    shift 2
    case $target in *.toml) target="--manifest $target" ;; esac
    case $* in *--warm-up\ *) ;; *) set -- "$@" --warm-up 5 ;; esac
    # shellcheck disable=SC2086  # words
    "$plimsoll" run $target $http "$@" --out "$out/$name" || true
}

# Where a virtual thread costs: per connection, or per request.
loop_or_thread() {
    for other in java-bare-vt-loop java-bare-loop java-bare-pt; do
        # shellcheck disable=SC2086  # words
        compare "loop-or-thread-$other" java-bare-vt "$other" $http --warm-up 5 --sessions 15000 --pairs 3
    done
}

# How the JDK's virtual threads wait for sockets: jdk.pollerMode.
pollers() {
    one=$(variant java-bare-vt poller-1 JAVA_FLAGS=-Djdk.pollerMode=1)
    two=$(variant java-bare-vt poller-2 JAVA_FLAGS=-Djdk.pollerMode=2)
    # shellcheck disable=SC2086  # words
    compare pollers "$one" "$two" $http --warm-up 5 --sessions 15000 --pairs 3
}

warm_up() {
    for seconds in 0 1 3 10 30 60; do
        request warm-up netty-nio --sessions 15000 --warm-up "$seconds"
    done
    for rate in 7500 100; do
        request warm-up netty-nio --sessions 15000 --warm-up 10 --warm-up-rate "$rate"
    done
}

# What compiles when: the JVM as it is, its first compiler alone, a cache made by a run before, and two that compile ahead.
jit() {
    c1=$(variant java-bare-loop c1 JAVA_FLAGS=-XX:TieredStopAtLevel=1)
    cache=$(realpath -m "$out/java-bare-loop.aot")
    mkdir -p "$out"
    train=$(variant java-bare-loop aot-trained "JAVA_FLAGS=-XX:AOTCacheOutput=$cache")
    cached=$(variant java-bare-loop aot "JAVA_FLAGS=-XX:AOTCache=$cache")
    request jit-training "$train" --sessions 15000
    for target in java-bare-loop "$c1" "$cached" go-nethttp-http rust-hyper; do
        request jit "$target" --sessions 15000 --warm-up 1
    done
    rm -f "$cache"
}

connections() {
    for target in rust-hyper go-nethttp-http java-bare-vt; do
        request "connections-$target" "$target" --test connections --sessions 5000
    done
}

# What the client's timer does to a server that answers in less than a tick, and what fixed dispatch and gaps do.
pacing() {
    for tick in 1000 500 50 0; do
        request pacing rust-hyper --sessions 10000 --tick-us "$tick"
    done
    request pacing rust-hyper --sessions 10000 --dispatch fixed
    request pacing rust-hyper --sessions 10000 --poisson
    request pacing rust-hyper --sessions 10000 --dispatch fixed --tick-us 1000
}

closed_loop() {
    for target in rust-hyper go-nethttp-http java-bare-vt python-granian; do
        request closed-loop "$target" --sessions 5000 --closed-loop
    done
}

# A trial of broker, or a set of them.
broker="--workload broker --vcpu 1"
short="--ramp 1 --warm-up 2 --measured 5"

# messages NAME TARGET FLAGS…: a run of broker.
messages() {
    name=$1 target=$2
    shift 2
    # shellcheck disable=SC2086  # words
    "$plimsoll" run "$target" $broker "$@" --out "$out/$name" || true
}

# What a confirmation is worth: no reader reads before the crash, so the broker holds all that it confirmed.
crash() {
    for kind in kill power; do
        for pair in \
            nats:durable nats:ephemeral nats:async nats:memory \
            redis:durable redis:ephemeral redis:memory \
            valkey:durable valkey:ephemeral valkey:memory \
            rabbitmq:durable rabbitmq:speculative rabbitmq:memory rabbitmq:stream \
            kafka:durable kafka:ephemeral \
            rust-log:durable rust-log:speculative rust-log:ephemeral rust-log:memory; do
            target=${pair%:*}
            case $target in kafka | rabbitmq) grace=30 ;; *) grace=10 ;; esac
            # Each reader of a stream gets every message.
            case $pair in *:stream) readers=1 ;; *) readers=2 ;; esac
            messages crash "$target" --level "${pair#*:}" --test replay --crash "$kind" --hold-readers --readers $readers --sessions 1000 --grace $grace
        done
        # MQTT keeps nothing for a subscriber that never came.
        messages crash mosquitto --level memory --test replay --crash "$kind" --sessions 1000
    done
    # Readers that read all the time hide losses, and show what comes again.
    for target in nats redis valkey rabbitmq kafka rust-log; do
        case $target in kafka | rabbitmq) grace=30 ;; *) grace=10 ;; esac
        # shellcheck disable=SC2086  # words
        messages crash-reading "$target" $short --level durable --test replay --crash kill --sessions 1000 --grace $grace
    done
}

# The load line of each broker that has the level.
load_lines() {
    for level in durable ephemeral; do
        # shellcheck disable=SC2086  # words
        "$plimsoll" find --all $broker $short --level "$level" --confirm 1024 --time-budget 2 --out "$out/load-lines-$level" || true
    done
    # The JVM needs time until its code is compiled.
    # shellcheck disable=SC2086  # words
    "$plimsoll" find kafka $broker --ramp 1 --warm-up 60 --measured 5 --level ephemeral --confirm 1024 --time-budget 10 --start 20000 --out "$out/load-line-kafka" || true
    # shellcheck disable=SC2086  # words
    "$plimsoll" find mosquitto $broker $short --level memory --confirm 1024 --time-budget 2 --out "$out/load-line-mosquitto" || true
}

# What durability costs on one disk: the probe of the disk is in each record.
tiers() {
    for pair in nats:durable nats:ephemeral nats:memory valkey:durable valkey:ephemeral valkey:memory rust-log:durable; do
        # shellcheck disable=SC2086  # words
        messages tiers "${pair%:*}" $short --set tiers --level "${pair#*:}"
    done
}

# Rates up to the knee and past it, and four windows at one rate.
windows() {
    # shellcheck disable=SC2086  # words
    messages windows nats $short --set confirmed --level ephemeral
}

# A stream to 1 to 256 readers. At 100 messages per second, a p99 needs a window of 10 s.
stream_readers() {
    window="--ramp 1 --warm-up 2 --measured 11 --level ephemeral"
    # shellcheck disable=SC2086  # words
    messages stream-readers nats $window --set fanout
    for pair in 32:2000 256:100; do
        # shellcheck disable=SC2086  # words
        messages stream-readers-limit rust-log $window --test fanout --readers "${pair%:*}" --sessions "${pair#*:}"
    done
}

# The gateway has about a third of a vCPU: its callers and the mocks have one core, and are late before they fill a whole one.
voice="rust-axum-voice --workload voice"

breaking() {
    # shellcheck disable=SC2086  # words
    "$plimsoll" find $voice --test breaking --vcpu 0.35 --measured 24 --ramp 4 --start 450 --max 1200 --time-budget 9 --out "$out/breaking" || true
}

# talks NAME FLAGS…: a run of voice.
talks() {
    name=$1
    shift
    # shellcheck disable=SC2086  # words
    "$plimsoll" run $voice "$@" --out "$out/$name" || true
}

stages() {
    talks stages --vcpu 0.35 --test stages --stages 100x15,200x20,400x24,600x24
}

# Half of the load line.
half() {
    talks half --vcpu 0.35 --sessions 225 --measured 40
}

# The load lines of the other two. A turn each 8 s: below 200 callers 40 s have too few turns for a 99th percentile.
lines() {
    "$plimsoll" find go-nethttp-voice --workload voice --vcpu 0.5 --measured 24 --ramp 4 --start 330 --max 700 --time-budget 7 --out "$out/lines-go" || true
    "$plimsoll" find python-asgi-voice --workload voice --vcpu 1 --measured 40 --ramp 3 --start 220 --max 500 --time-budget 5 --out "$out/lines-python" || true
}

# What a caller costs when something is otherwise.
costs() {
    for how in "" "--chunk-ms 20" "--silence skip" "--provider-latency slow"; do
        # shellcheck disable=SC2086  # words
        talks costs --vcpu 1 --measured 48 --sessions 170 $how
    done
    talks costs --vcpu 1 --measured 48 --sessions 8 --test calls --warm-up 32
    for gateway in go-nethttp-voice python-asgi-voice; do
        "$plimsoll" run $gateway --workload voice --vcpu 1 --measured 48 --sessions 170 --out "$out/costs" || true
    done
    for gateway in rust-axum-voice go-nethttp-voice python-asgi-voice; do
        "$plimsoll" run $gateway --workload voice --vcpu 1 --sessions 1000 --test rest --measured 15 --out "$out/costs" || true
    done
}

# Streams of speech that three recognisers carry.
recognisers() {
    while read -r recogniser start most minutes; do
        "$plimsoll" find "$recogniser" --workload stt-real --start "$start" --ramp 2 --warm-up 8 --measured 64 --grace 12 --max "$most" --time-budget "$minutes" --out "$out/$recogniser" || true
    done <<EOF
pocketsphinx 3 16 8
wyoming-whisper 2 32 5
whisperlivekit 1 16 6
EOF
}

faults() {
    for fault in tts-hang stt-refuse; do
        talks faults --vcpu 1 --sessions 200 --test faults --fault $fault --measured 45
    done
    talks faults --vcpu 1 --sessions 200 --test faults --fault restart --measured 40
}

[ $# -gt 0 ] || set -- breaking stages half faults lines costs recognisers crash load-lines tiers windows stream-readers loop-or-thread pollers warm-up jit connections pacing closed-loop limit accounts busier frameworks pace free-threading interpreters workers nodelay bursts beam overload
for question in "$@"; do
    case $question in
        limit | accounts | busier | frameworks | pace | interpreters | workers | nodelay | bursts | beam | overload | pollers | jit | connections | pacing | crash | tiers | windows | breaking | stages | half | faults | lines | costs | recognisers) "$question" ;;
        free-threading) free_threading ;;
        loop-or-thread) loop_or_thread ;;
        warm-up) warm_up ;;
        closed-loop) closed_loop ;;
        load-lines) load_lines ;;
        stream-readers) stream_readers ;;
        *) echo "findings: no question $question" >&2; exit 2 ;;
    esac
done
rm -f targets/*/*/variant-*.toml
