#!/bin/sh
# Builds what is distributed: one archive with the programs, their manual pages, shell completions, licence and change
# log; the command's image as an OCI archive of the same programs, static; and a checksum file of each. The output folder is
# target/dist, or the given one. The same commit, compiler and checkout folder give the same bytes. The paths of this
# machine are not in them.
#
#   sh scripts/release.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/dist}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
machine=$(rustc -vV | sed -n 's/^host: //p')
name=plimsoll-$version-$machine
limit_mib=25
image_limit_mib=30

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

# The image has nothing below its programs, so they bring their C library along.
static=$(uname -m)-unknown-linux-musl
if ! rustc --print target-libdir --target "$static" 2>/dev/null | xargs -I{} test -d {}; then
    sh scripts/may-install.sh release "the Rust target $static by rustup"
    rustup target add "$static"
fi
command -v musl-gcc >/dev/null 2>&1 || sh scripts/apt-install.sh release musl-tools
env "CC_$(echo "$static" | tr - _)=musl-gcc" \
    cargo build --profile dist --locked --target "$static" -p plimsoll -p plimsoll-inference -p plimsoll-providers
programs=$build/$static/dist
image=plimsoll-$version-$(uname -m).oci.tar
"$build/dist/plimsoll" generate image --out "$out/$image" "$programs/plimsoll" "$programs/plimsoll-inference" "$programs/plimsoll-providers"
(cd "$out" && sha256sum "$image" >"$image.sha256")
bytes=$(wc -c <"$out/$image")
echo "release: $out/$image, $((bytes / 1024)) KiB; the static programs are $(($(cat "$programs/plimsoll" "$programs/plimsoll-inference" "$programs/plimsoll-providers" | wc -c) / 1024)) KiB"
[ "$bytes" -lt $((image_limit_mib * 1024 * 1024)) ] || { echo "release: that is more than $image_limit_mib MiB" >&2; exit 1; }
