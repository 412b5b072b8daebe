"""Moonshine behind the WebSocket protocol of Deepgram."""
