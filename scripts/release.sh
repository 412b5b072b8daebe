#!/bin/sh
# Builds what is distributed: one archive with the two programs, their manual pages, shell completions, licence and
# change log, and a checksum file. The output folder is target/dist, or the given one. The same commit, compiler and
# checkout folder give the same bytes. The paths of this machine are not in them.
#
#   sh scripts/release.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/dist}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
machine=$(rustc -vV | sed -n 's/^host: //p')
name=plimsoll-$version-$machine
limit_mib=25

# The time of every file in the archive is that of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0
sysroot=$(rustc --print sysroot)
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/plimsoll --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$sysroot=/rust"
export RUSTFLAGS
build=${CARGO_TARGET_DIR:-target}
cargo build --profile dist --locked -p plimsoll -p plimsoll-inference -p plimsoll-providers

mkdir -p "$out"
rm -rf "${out:?}/$name" "$out/$name.tar.gz"
mkdir -p "$out/$name/bin"
cp "$build/dist/plimsoll" "$build/dist/plimsoll-inference" "$build/dist/plimsoll-providers" "$out/$name/bin/"
"$build/dist/plimsoll" generate man "$out/$name/share/man/man1"
"$build/dist/plimsoll" generate completions "$out/$name/share/completions"
cp LICENSE "$out/$name/"
[ ! -f CHANGELOG.md ] || cp CHANGELOG.md "$out/$name/"

bytes=$(cat "$out/$name"/bin/* | wc -c)
echo "release: the programs are $((bytes / 1024)) KiB together"
[ "$bytes" -lt $((limit_mib * 1024 * 1024)) ] || { echo "release: that is more than $limit_mib MiB" >&2; exit 1; }

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=go-w,a+rX -C "$out" -cf - "$name" | gzip -n -9 >"$out/$name.tar.gz"
rm -rf "${out:?}/$name"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "release: $out/$name.tar.gz, $(($(wc -c <"$out/$name.tar.gz") / 1024)) KiB"
