#!/bin/sh
# Makes speech.wav, the sample that sessions speak: see README.md. Needs flite (Debian and Ubuntu: apt-get install flite).
# The result is checked to be canonical PCM before it replaces the old file.
set -eu

folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sample=$folder/speech.wav
fresh=$folder/.speech.wav.new
trap 'rm -f "$fresh"' EXIT

command -v flite >/dev/null || {
    echo "make-speech.sh: flite is missing; install it (Debian and Ubuntu: apt-get install flite)" >&2
    exit 2
}

# Written for this project. Questions, numbers, pauses, short and long sentences: stretches of silence, of vowels and of sibilants,
# so that consecutive seconds differ.
text='Is the harbour master awake? Twenty seven ships wait outside the breakwater, and the tide turns at a quarter past six.
Load the grain first. Stop! Her line is under water, so take eleven sacks off again, slowly.
Now she floats as she should. Cast off, steer east by south, and write down what you saw, not what you hoped.'

# slt is a 16 kHz voice: nothing is resampled.
flite -voice slt -t "$text" -o "$fresh"

# Bytes of the header as unsigned little-endian numbers; od is everywhere, and the header is 44 bytes of known layout.
number() { od -An -t u1 -j "$1" -N "$2" "$fresh" | awk '{ v = 0; for (i = NF; i > 0; i--) v = v * 256 + $i; print v }'; }
letters() { dd if="$fresh" bs=1 skip="$1" count=4 2>/dev/null; }
expect() {
    [ "$2" = "$3" ] || {
        echo "make-speech.sh: $1 is $2, not $3: this flite writes another format; use flite 2.2" >&2
        exit 1
    }
}
size=$(($(wc -c <"$fresh")))
expect 'RIFF tag' "$(letters 0)" RIFF
expect 'RIFF size' "$(number 4 4)" $((size - 8))
expect 'WAVE tag' "$(letters 8)" WAVE
expect 'fmt tag' "$(letters 12)" 'fmt '
expect 'fmt chunk size' "$(number 16 4)" 16
expect 'format (1 = PCM)' "$(number 20 2)" 1
expect 'channels' "$(number 22 2)" 1
expect 'sample rate' "$(number 24 4)" 16000
expect 'bytes per second' "$(number 28 4)" 32000
expect 'bytes per sample' "$(number 32 2)" 2
expect 'bits per sample' "$(number 34 2)" 16
expect 'data tag' "$(letters 36)" data
expect 'data size' "$(number 40 4)" $((size - 44))

mv "$fresh" "$sample"
echo "speech.wav: $(((size - 44) / 640)) frames of 20 ms"
