"""Sends one masked audio frame every 20 ms on each of many connections, spread evenly over the 20 ms, until they are closed: PORT CONNECTIONS."""

import os
import socket
import sys
import time

port, connections = int(sys.argv[1]), int(sys.argv[2])
frame = bytes([0x82, 0xFE, 0x02, 0x80]) + os.urandom(4 + 640)
sockets = []
for _ in range(connections):
    connected = socket.create_connection(("127.0.0.1", port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sockets.append(connected)

# Twenty portions a period, so that the receiver sees a stream and not a herd.
portions = [sockets[n::20] for n in range(20)]
due = time.monotonic()
try:
    while True:
        for portion in portions:
            due += 0.001
            time.sleep(max(0.0, due - time.monotonic()))
            for connected in portion:
                connected.send(frame)
except (BrokenPipeError, ConnectionResetError):
    pass
