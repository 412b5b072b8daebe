//! One client: its session tied to its socket, its schedule and its request.

use std::pin::pin;
use std::sync::Arc;

use axum::Error;
use axum::extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::future::{BoxFuture, FutureExt, OptionFuture};
use futures_util::sink::SinkExt;
use futures_util::stream::{SplitSink, SplitStream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::gateway::{CLOSE_TIMEOUT, Gateway};
use crate::messages::{self, Inference};
use crate::outbox::Outbox;
use crate::session::{self, Session};

type Sink = SplitSink<WebSocket, Message>;
type Stream = SplitStream<WebSocket>;
type Request = BoxFuture<'static, Result<Inference, Failure>>;

/// How a session ended.
#[derive(Debug)]
enum End {
    /// By us, with this code.
    Close(CloseCode),
    /// By the client.
    Gone,
}

/// Serves a client to its end. The permit is its place among `MAX_SESSIONS`.
pub async fn serve(socket: WebSocket, gateway: Arc<Gateway>, permit: OwnedSemaphorePermit) {
    let (mut sink, mut stream) = socket.split();
    let end = match start(&mut stream, &gateway).await {
        Ok(()) => run(&mut sink, &mut stream, &gateway).await,
        Err(end) => end,
    };
    tracing::debug!(?end, "session ended");
    // Before the close handshake, so that a client that was told of the end can come back at once.
    drop(permit);
    let _ = timeout(CLOSE_TIMEOUT, finish(&end, &mut sink, &mut stream)).await;
}

/// Waits for the start message.
async fn start(stream: &mut Stream, gateway: &Gateway) -> Result<(), End> {
    tokio::select! {
        first = timeout(gateway.config.start_timeout, receive(stream)) => match first {
            Ok(Ok(Message::Text(text))) if messages::is_start(&text) => Ok(()),
            Ok(Err(end)) => Err(end),
            _ => Err(End::Close(close_code::PROTOCOL)),
        },
        () = gateway.shutdown.cancelled() => Err(End::Close(close_code::AWAY)),
    }
}

/// Serves a started session until it ends.
async fn run(sink: &mut Sink, stream: &mut Stream, gateway: &Arc<Gateway>) -> End {
    let config = &gateway.config;
    let jitter = config.flush_phase_jitter.mul_f64(rand::random());
    let mut ticks = session::schedule(Instant::now() + jitter, config.flush_interval);
    let mut session = Session::new(gateway.clone());
    let mut request: Option<Request> = None;
    let mut shutdown = pin!(gateway.shutdown.cancelled());
    loop {
        tokio::select! {
            message = receive(stream) => {
                let taken = match message {
                    Ok(Message::Binary(frame)) => session.frame(&frame, Instant::now()),
                    Ok(_) => Err(close_code::PROTOCOL),
                    Err(end) => return end,
                };
                if let Err(code) = taken {
                    return End::Close(code);
                }
            }
            scheduled = ticks.tick() => {
                if let Some(pcm) = session.tick(scheduled, Instant::now()) {
                    request = Some(gateway.inference.infer(pcm).boxed());
                }
            }
            Some(outcome) = OptionFuture::from(request.as_mut()) => {
                request = None;
                session.answer(outcome, Instant::now());
            }
            delivered = deliver(sink, &mut session.outbox), if session.outbox.unsent() > 0 => {
                if delivered.is_err() {
                    return End::Gone;
                }
            }
            () = &mut shutdown => return drain(sink, stream, gateway, session, request).await,
        }
    }
}

/// Answers what is in flight, and no more.
async fn drain(
    sink: &mut Sink,
    stream: &mut Stream,
    gateway: &Gateway,
    mut session: Session,
    request: Option<Request>,
) -> End {
    let answered = async {
        if let Some(request) = request {
            session.answer(request.await, Instant::now());
        }
        while session.outbox.unsent() > 0 {
            deliver(sink, &mut session.outbox).await?;
        }
        Ok::<(), Error>(())
    };
    let left = async {
        loop {
            if let Err(end) = receive(stream).await {
                break end;
            }
        }
    };
    tokio::select! {
        _ = timeout(gateway.config.drain_timeout, answered) => End::Close(close_code::AWAY),
        end = left => end,
    }
}

/// The next message that is no ping or pong (axum answers pings), or how the client ended the session.
async fn receive(stream: &mut Stream) -> Result<Message, End> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
            Some(Ok(message)) => return Ok(message),
            Some(Err(error)) => {
                // A broken rule of RFC 6455, a message that is too long, or a broken connection.
                tracing::debug!(%error, "violation");
                return Err(End::Close(close_code::PROTOCOL));
            }
        }
    }
}

/// Hands the first message of the outbox to the kernel. It may be cancelled and called again: a message that was begun
/// is finished by the flush.
async fn deliver(sink: &mut Sink, outbox: &mut Outbox) -> Result<(), Error> {
    sink.flush().await?;
    outbox.sent();
    if let Some(message) = outbox.begin() {
        // Takes the message at once, for nothing is left to be written.
        sink.send(message).await?;
        outbox.sent();
    }
    Ok(())
}

/// Closes, or answers the client's close.
async fn finish(end: &End, sink: &mut Sink, stream: &mut Stream) -> Result<(), Error> {
    if let End::Close(code) = end {
        let frame = CloseFrame { code: *code, reason: Utf8Bytes::default() };
        sink.send(Message::Close(Some(frame))).await?;
    }
    // Reads until the client has closed too. Unread frames would turn the end into a reset, and the code would be lost.
    while let Some(Ok(_)) = stream.next().await {}
    Ok(())
}
