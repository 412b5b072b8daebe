"""The streaming speech-to-text gateway on FastAPI, uvicorn and uvloop."""
