"""The HTTP surface: FastAPI routes, and admission while it is still HTTP."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import JSONResponse

from gateway_common.handshake import HANDOVER
from gateway_common.metrics import CONTENT_TYPE

from .conversation import Conversation
from .metrics import render
from .shared import Counter, Refusal
from .speak_request import BadRequestError, SpokenAudio, open_speech, read_request
from .speech import SpeechError

if TYPE_CHECKING:
    from .admission import Admitted
    from .service import Service

_REFUSED = {
    Refusal.CAPACITY: "all places are taken",
    Refusal.DRAINING: "the gateway ends",
    Refusal.PER_ADDRESS: "this address has its sessions",
    Refusal.RATE: "this address asks too often",
    Refusal.AUTH: "the token is missing or wrong",
}


def failure(status: int, message: str, cause: str, headers: dict[str, str] | None = None) -> Response:
    """An error as all of them look."""
    return JSONResponse({"error": message, "cause": cause}, status, headers)


def refused(refusal: Refusal) -> Response:
    """What is said at the door."""
    headers = {"WWW-Authenticate": "Bearer"} if refusal is Refusal.AUTH else {"Retry-After": "1"}
    return failure(refusal.status, _REFUSED[refusal], refusal.cause, headers)


def make_app(service: "Service") -> FastAPI:
    """The application of one worker."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    _add_state(app, service)
    _add_speech(app, service)
    _add_sessions(app, service)

    @app.exception_handler(404)
    async def not_found(_request: Request, _error: Exception) -> Response:
        return other_status(404)

    @app.exception_handler(405)
    async def other_method(_request: Request, _error: Exception) -> Response:
        return other_status(405)

    return app


def _add_state(app: FastAPI, service: "Service") -> None:
    admission = service.admission

    @app.get("/")
    async def root() -> Response:
        if admission.is_draining:
            return JSONResponse({"status": "DRAINING"}, 503)
        return JSONResponse({"status": "OK"})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(render(service.book), media_type=CONTENT_TYPE)


def _add_speech(app: FastAPI, service: "Service") -> None:
    @app.get("/voices")
    async def voices() -> Response:
        try:
            body = await service.voices.body(service.provider_url(service.next_turn()))
        except SpeechError as error:
            return provider_failure(error)
        return Response(body, media_type="application/json")

    @app.post("/speak")
    async def speak(request: Request) -> Response:
        refusal = service.admission.refuse_request(request.headers.get("authorization"))
        if refusal is not None:
            return refused(refusal)
        service.request_begins()
        try:
            text, tts = await read_request(request)
            speech = await open_speech(service, text, tts)
        except BadRequestError as error:
            return failure(error.status, str(error), error.cause)
        except SpeechError as error:
            return provider_failure(error)
        return SpokenAudio(speech, service)


def _add_sessions(app: FastAPI, service: "Service") -> None:
    admission = service.admission

    @app.get("/ws")
    async def upgrade_required() -> Response:
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        return failure(426, "this is a WebSocket", "upgrade_required", headers)

    @app.websocket("/ws")
    async def session(websocket: WebSocket) -> None:
        address = websocket.client.host if websocket.client is not None else "0.0.0.0"
        answer = admission.ask(address, websocket.headers.get("authorization"))
        if isinstance(answer, Refusal):
            await websocket.send_denial_response(refused(answer))
        else:
            await open_session(websocket, answer)

    async def open_session(websocket: WebSocket, admitted: "Admitted") -> None:
        turn = service.book.total(Counter.SESSIONS) - 1
        try:
            await websocket.accept()
        except BaseException:
            admission.give_back(admitted)
            raise
        handover = websocket.scope["extensions"][HANDOVER]["handover"]
        handover(lambda transport: Conversation(service, transport, admitted, turn))

    @app.websocket("/{path:path}")
    async def unknown_session(websocket: WebSocket) -> None:
        await websocket.send_denial_response(other_status(404))


def other_status(status: int) -> Response:
    """A path that does not exist, or not for this method."""
    phrase = HTTPStatus(status).phrase.lower()
    return failure(status, phrase, phrase.replace(" ", "_"))


def provider_failure(error: SpeechError) -> Response:
    """A provider failed before the first byte."""
    if error.is_timeout:
        return failure(504, str(error), "provider_timeout")
    return failure(502, str(error), "provider_failed")
