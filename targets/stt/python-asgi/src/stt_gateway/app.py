"""The HTTP surface: FastAPI routes, and admission while it is still HTTP."""

from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import PlainTextResponse

from gateway_common.handshake import HANDOVER
from gateway_common.metrics import CONTENT_TYPE

from .conversation import Conversation
from .metrics import render
from .shared import Gauge

if TYPE_CHECKING:
    from .gateway import Service


def make_app(gateway: "Service") -> FastAPI:
    """The application of one worker."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)

    @app.get("/health")
    async def health() -> Response:
        if gateway.is_draining:
            return PlainTextResponse("draining\n", 503)
        return PlainTextResponse("ok\n")

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(render(gateway.book), media_type=CONTENT_TYPE)

    @app.get("/ws/stt")
    async def upgrade_required() -> Response:
        return PlainTextResponse("this is a WebSocket\n", 426, {"Upgrade": "websocket", "Connection": "Upgrade"})

    @app.websocket("/ws/stt")
    async def session(websocket: WebSocket) -> None:
        if not gateway.token.is_shown_by(websocket.headers.get("authorization")):
            await websocket.send_denial_response(Response(status_code=401, headers={"WWW-Authenticate": "Bearer"}))
        elif gateway.is_draining or not gateway.admit():
            await websocket.send_denial_response(Response(status_code=503, headers={"Retry-After": "1"}))
        else:
            await open_session(websocket)

    async def open_session(websocket: WebSocket) -> None:
        try:
            await websocket.accept()
        except BaseException:
            gateway.book.give_back(Gauge.SESSIONS)
            raise
        websocket.scope["extensions"][HANDOVER]["handover"](lambda transport: Conversation(gateway, transport))

    @app.websocket("/{path:path}")
    async def unknown_session(websocket: WebSocket) -> None:
        await websocket.send_denial_response(PlainTextResponse("not found\n", 404))

    @app.exception_handler(405)
    async def other_method(_request: Request, _error: Exception) -> Response:
        return PlainTextResponse("not found\n", 404)

    return app
