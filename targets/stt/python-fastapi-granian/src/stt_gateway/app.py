"""The HTTP surface."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Response, WebSocket
from fastapi.requests import HTTPConnection
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from .config import Settings
from .connection import Connection
from .gateway import Gateway
from .metrics import Gauge


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    gateway = app.state.gateway = Gateway(Settings())
    # The servers tell an application of their end only when its WebSockets are closed already.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.drain)
    yield
    await gateway.aclose()


app = FastAPI(title="Streaming speech-to-text gateway", lifespan=lifespan, openapi_url=None)


def get_gateway(connection: HTTPConnection) -> Gateway:
    gateway: Gateway = connection.app.state.gateway
    return gateway


GatewayDependency = Annotated[Gateway, Depends(get_gateway)]


@app.get("/health")
async def health(gateway: GatewayDependency) -> Response:
    if gateway.draining.is_set():
        return PlainTextResponse("draining\n", 503)
    return PlainTextResponse("ok\n")


@app.get("/metrics")
async def metrics(gateway: GatewayDependency) -> Response:
    return Response(gateway.exposition.render(), media_type=CONTENT_TYPE_LATEST)


@app.get("/ws/stt")
async def upgrade_required() -> Response:
    return PlainTextResponse("this is a WebSocket\n", 426, {"Upgrade": "websocket", "Connection": "Upgrade"})


@app.websocket("/ws/stt")
async def stt(websocket: WebSocket, gateway: GatewayDependency) -> None:
    if not gateway.is_authorized(websocket.headers.get("authorization", "")):
        await websocket.send_denial_response(Response(status_code=401, headers={"WWW-Authenticate": "Bearer"}))
    elif gateway.draining.is_set() or not gateway.admit():
        await websocket.send_denial_response(Response(status_code=503, headers={"Retry-After": "1"}))
    else:
        await _serve(websocket, gateway)


async def _serve(websocket: WebSocket, gateway: Gateway) -> None:
    task = asyncio.current_task()
    assert task is not None
    gateway.sessions.add(task)
    try:
        await websocket.accept()
        await Connection(websocket, gateway).run()
    finally:
        gateway.sessions.discard(task)
        gateway.board.give_back(Gauge.SESSIONS)


@app.websocket("/{path:path}")
async def not_found(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("not found\n", 404))
