"""A WebSocket echo on websockets and uvloop."""
