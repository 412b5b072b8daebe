#!/bin/sh
# Downloads from another suite of Debian than this machine's, into the current folder. Lists and archives are in a folder of
# their own: the system's apt never sees them. Apt verifies what it fetches against the signed lists.
#
#   sh scripts/apt-of-suite.sh SUITE FOLDER download PACKAGE       its archive
#   sh scripts/apt-of-suite.sh SUITE FOLDER source FLAG… PACKAGE   its source
set -eu
suite=$1
apt=$2
shift 2

fail() {
    echo "apt-of-suite: $*" >&2
    exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "needs apt-get, to fetch from Debian's $suite"

# The mirror that this machine uses for its own release, so that no host need be written here.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016  # apt's own variables
mirror=$(apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
    awk -v release="$release" '$1 == release && $2 == "main" { print $3; exit }')
[ -n "$mirror" ] || fail "no Debian mirror among this machine's apt sources"

case $1 in source) kind=deb-src ;; *) kind=deb ;; esac
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
echo "$kind $mirror $suite main" >"$apt/sources.list"
own_apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$apt/lists" \
        -o Dir::Cache="$apt" -o APT::Sandbox::User= "$@"
}
own_apt update
own_apt "$@"
