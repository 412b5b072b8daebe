"""A launcher for wse-server that takes what the engine hands over, and counts it."""
