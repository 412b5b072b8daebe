"""The streaming speech-to-text gateway: FastAPI, on Granian or uvicorn."""
