#!/bin/sh
# Says what is about to be installed on this machine, and decides whether it may be. Every script that installs
# something asks here first.
#
#   sh scripts/may-install.sh WHO WHAT
#
# PLIMSOLL_INSTALL=no    refuses: nothing outside this folder is changed, and the line says what is missing
# PLIMSOLL_INSTALL=list  also refuses, with exit code 3: the caller only wants the line
set -eu
case ${PLIMSOLL_INSTALL:-yes} in
    list) echo "$1: $2"; exit 3 ;;
    no) echo "$1: missing, and PLIMSOLL_INSTALL=no forbids installing it: $2" >&2; exit 1 ;;
    *) echo "$1: installing $2" ;;
esac
