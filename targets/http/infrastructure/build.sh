#!/bin/sh
# Builds a target that is a finished program: the files of /bytes and the line that it prints on start, both in its
# folder's build/. Asking for versions takes longer than starting some of these programs, so it is done here.
#
#   sh build.sh TARGET PACKAGE      in the target's folder
set -eu
target=$1
package=$2
PATH=$PATH:/usr/sbin
here=$(dirname "$0")
sh "$here/make-files.sh" build/bytes

case $package in
    nginx) version=$(nginx -v 2>&1 | sed 's/.*nginx\///') ;;
    haproxy) version=$(haproxy -v | sed -n '1s/^HAProxy version \([^ ]*\).*/\1/p') ;;
    caddy) version=$(caddy version | cut -d ' ' -f 1) ;;
esac
# Of the libraries that it loads, those that take part: what else is inside is the package's.
debian=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null || echo none)
libc=$(dpkg-query -W -f '${Version}' libc6 2>/dev/null || echo none)
printf '{"target": "%s", "runtime": "%s %s", "libraries": {"debian-package": "%s", "libc6": "%s"}' \
    "$target" "$package" "$version" "$debian" "$libc" >"build/.start-line.$$"
mv "build/.start-line.$$" build/start-line
