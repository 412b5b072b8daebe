#!/bin/sh
# Makes a release and uses it as a user would. The last line is `release: N passed, N failed`.
set -eu
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0
# holds WHAT COMMAND…: the command succeeds.
holds() {
    what=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "release: $what does not hold: $*"
        tail -n 20 "$scratch/output"
    fi
}
lacks() { ! grep -aqF -- "$1" "$2"; }

sh scripts/release.sh "$scratch/first"
archive=$(basename "$scratch"/first/*.tar.gz)
holds "the checksum" sh -c "cd '$scratch/first' && sha256sum -c '$archive.sha256'"
# The linker's part is done again; the archive must be the same to the byte.
rm -f target/dist/plimsoll target/dist/plimsoll-inference target/dist/plimsoll-providers target/*-linux-musl/dist/plimsoll*
sh scripts/release.sh "$scratch/second"
holds "a second archive is the same" cmp "$scratch/first/$archive" "$scratch/second/$archive"

image=$(basename "$scratch"/first/*.oci.tar)
holds "the image's checksum" sh -c "cd '$scratch/first' && sha256sum -c '$image.sha256'"
holds "a second image is the same" cmp "$scratch/first/$image" "$scratch/second/$image"
mkdir -p "$scratch/image/root"
tar -xf "$scratch/first/$image" -C "$scratch/image"
for blob in "$scratch"/image/blobs/sha256/*; do
    holds "the image's part $(basename "$blob" | cut -c1-12)" sh -c "sha256sum '$blob' | grep -q '^$(basename "$blob") '"
    ! tar -tzf "$blob" >/dev/null 2>&1 || tar -xzf "$blob" -C "$scratch/image/root"
done
holds "the image's command starts without anything below it" env -i "$scratch/image/root/plimsoll" --version
holds "its simulator too" env -i "$scratch/image/root/plimsoll-inference" --help
holds "its mock providers too" env -i "$scratch/image/root/plimsoll-providers" --help
holds "tar in the image is the command" test "$(readlink "$scratch/image/root/bin/tar")" = /plimsoll

tar -xzf "$scratch/first/$archive" -C "$scratch"
home=$scratch/${archive%.tar.gz}
holds "the command starts" "$home/bin/plimsoll" --version

holds "the simulator starts" "$home/bin/plimsoll-inference" --help
holds "the mock providers start" "$home/bin/plimsoll-providers" --help
for page in plimsoll plimsoll-find plimsoll-run plimsoll-check; do
    holds "the manual page $page" test -s "$home/share/man/man1/$page.1"
done
holds "completions of bash are a program" bash -n "$home/share/completions/plimsoll.bash"
holds "completions know the flags" grep -q -- --time-budget "$home/share/completions/plimsoll.bash"
holds "the licence" cmp LICENSE "$home/LICENSE"
for program in plimsoll plimsoll-inference plimsoll-providers; do
    holds "no path of this checkout in $program" lacks "$(pwd)" "$home/bin/$program"
    holds "no path of the registry in $program" lacks "${CARGO_HOME:-$HOME/.cargo}/registry" "$home/bin/$program"
done
echo "release: $passed passed, $failed failed"
[ "$failed" = 0 ]
