"""What the speech servers here share: their variables, the start line, and a WebSocket server for those that we wrote."""
