"""Prints so many TCP ports of 127.0.0.1 that nobody uses, one a line.

python3 free-ports.py COUNT
"""

import contextlib
import socket
import sys

with contextlib.ExitStack() as open_sockets:
    # All at once, so that no port comes twice.
    for _ in range(int(sys.argv[1])):
        unused = open_sockets.enter_context(socket.socket())
        unused.bind(("127.0.0.1", 0))
        print(unused.getsockname()[1])
