#!/bin/sh
# Makes the files of /bytes/N: the first N bytes of `0123456789abcdef` repeated. Does nothing if they are there.
#
#   sh make-files.sh FOLDER
set -eu
mkdir -p "$1"
for size in 64 1024 16384 65536 1048576; do
    [ "$(stat -c %s "$1/$size" 2>/dev/null)" != "$size" ] || continue
    # `yes` ends by a closed pipe. A file appears under its name only when it is complete.
    yes 0123456789abcdef | tr -d '\n' | head -c "$size" >"$1/.$size.$$"
    chmod 644 "$1/.$size.$$"
    mv "$1/.$size.$$" "$1/$size"
done
