#!/bin/sh
# CPython 3.14: what ../python-asgi needs, too.
exec sh "$(dirname "$0")/../python-asgi/install.sh"
