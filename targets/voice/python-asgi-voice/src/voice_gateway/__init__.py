"""The voice gateway on FastAPI, uvicorn and uvloop: callers on one side, speech providers on the other."""
