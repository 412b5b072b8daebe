"""pocketsphinx behind the WebSocket protocol of vosk-server."""
