"""What gateways on uvicorn share, whatever they are for: settings, workers, limits, the WebSocket, the start line."""
