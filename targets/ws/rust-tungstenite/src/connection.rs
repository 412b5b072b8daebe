//! One task per WebSocket.

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::drain::Drain;
use crate::hub::Seat;
use crate::server::Server;

/// A read takes up to this many bytes: some 45 messages of 175. Every connection owns such a buffer, and tungstenite zeroes
/// it for every read; its default of 128 KiB is for few connections.
const READ_BUFFER_BYTES: usize = 8 * 1024;

/// Echoes are collected up to this many bytes before they are written although more is to come.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// How long a close may take that the client does not answer.
const LINGER: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<TcpStream>;

/// How a connection ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// By the client, with a close that has been answered.
    Closed,
    /// By us.
    Closing(CloseCode),
    /// By the client or the network, without a word.
    Gone,
}

const DRAINED: End = End::Closing(CloseCode::Away);

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(_) => Self::Closing(CloseCode::Size),
            Error::Utf8(_) => Self::Closing(CloseCode::Invalid),
            // tungstenite calls "protocol error" also what is only a stream that ended without a close.
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Gone,
            Error::Protocol(_) => Self::Closing(CloseCode::Protocol),
            _ => Self::Gone,
        }
    }
}

/// Serves one WebSocket to its end, an echo unless it has a seat at the hub; `early` is what has come with the handshake.
pub async fn serve(server: &Server, stream: TcpStream, early: Vec<u8>, seat: Option<Seat>) {
    let mut waker = pin!(server.drain.waker());
    Drain::watch(waker.as_mut()).await;

    let limit = Some(server.config.message_bytes_max);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(limit)
        .max_frame_size(limit);
    let mut socket = WebSocketStream::from_partially_read(stream, early, Role::Server, Some(config)).await;
    let end = match seat {
        Some(seat) => fanout(server, &mut socket, seat).await,
        None => echo(server, &mut socket).await,
    };
    match end {
        End::Gone => {}
        End::Closed => linger(socket, None, LINGER).await,
        // The process ends at that time in any case.
        End::Closing(CloseCode::Away) => linger(socket, Some(CloseCode::Away), server.config.drain_timeout).await,
        End::Closing(code) => linger(socket, Some(code), LINGER).await,
    }
}

/// Sends back what comes. Pings and closes are answered by tungstenite, with the next read.
async fn echo(server: &Server, socket: &mut Socket) -> End {
    loop {
        let incoming = match socket.next().now_or_never() {
            Some(incoming) => incoming,
            // Nothing more has come: what was sent back goes out, in one write.
            None => match wait(server, socket).await {
                Ok(incoming) => incoming,
                Err(end) => return end,
            },
        };
        match incoming {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                server.metrics.message(message.len());
                if let Err(end) = send(server, socket, message).await {
                    return end;
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return error.into(),
            None => return End::Closed,
        }
    }
}

/// Writes what is to be written, then waits for what comes. A client that does not read waits here, and is not read.
async fn wait(server: &Server, socket: &mut Socket) -> Result<Option<Result<Message, Error>>, End> {
    server.drain.unless_begun(|context| socket.poll_flush_unpin(context)).await.ok_or(DRAINED)??;
    server.drain.unless_begun(|context| socket.poll_next_unpin(context)).await.ok_or(DRAINED)
}

/// Hands a message to tungstenite, which writes it when enough has been collected.
async fn send(server: &Server, socket: &mut Socket, message: Message) -> Result<(), End> {
    server.drain.unless_begun(|context| socket.poll_ready_unpin(context)).await.ok_or(DRAINED)??;
    server.metrics.sent.add(1);
    Ok(socket.start_send_unpin(message)?)
}

/// What happens to a connection to the hub.
enum Event {
    Incoming(Option<Result<Message, Error>>),
    Outgoing(Message),
}

/// Sends what comes to the hub, and what comes from the hub to the client.
async fn fanout(server: &Server, socket: &mut Socket, mut seat: Seat) -> End {
    let mut is_client_first = false;
    loop {
        let event = server.drain.unless_begun(|context| {
            // In turns, so that neither keeps the other waiting.
            is_client_first = !is_client_first;
            poll_event(socket, &mut seat, is_client_first, context)
        });
        let event = event.await;
        match event {
            None => return DRAINED,
            Some(Event::Incoming(Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))))) => {
                server.metrics.message(message.len());
                server.metrics.dropped.add(server.hub.publish(&message));
            }
            Some(Event::Incoming(Some(Ok(_)))) => {}
            Some(Event::Incoming(Some(Err(error)))) => return error.into(),
            Some(Event::Incoming(None)) => return End::Closed,
            Some(Event::Outgoing(message)) => {
                if let Err(end) = pass_on(server, socket, &mut seat, message).await {
                    return end;
                }
            }
        }
    }
}

fn poll_event(socket: &mut Socket, seat: &mut Seat, is_client_first: bool, context: &mut Context<'_>) -> Poll<Event> {
    for is_client in [is_client_first, !is_client_first] {
        let event = if is_client {
            socket.poll_next_unpin(context).map(Event::Incoming)
        } else {
            seat.poll_next(context).map(Event::Outgoing)
        };
        if event.is_ready() {
            return event;
        }
    }
    Poll::Pending
}

/// Sends a message of the hub and those that wait behind it now: what comes meanwhile has to wait for the client's turn.
async fn pass_on(server: &Server, socket: &mut Socket, seat: &mut Seat, message: Message) -> Result<(), End> {
    let waiting = seat.waiting();
    send(server, socket, message).await?;
    for _ in 0..waiting {
        let Some(message) = seat.try_next() else { break };
        send(server, socket, message).await?;
    }
    Ok(server.drain.unless_begun(|context| socket.poll_flush_unpin(context)).await.ok_or(DRAINED)??)
}

/// Closes, with a code if there is one to be sent, and sees to it that it arrives.
///
/// Closing a socket with unread data sends a reset, and that makes the peer's kernel forget what it had received, the close
/// code among it. So the socket is shut for writing and read empty until the client closes too.
async fn linger(mut socket: Socket, code: Option<CloseCode>, patience: Duration) {
    let goodbye = async {
        if let Some(code) = code {
            let frame = CloseFrame { code, reason: Utf8Bytes::default() };
            socket.close(Some(frame)).await.ok()?;
        }
        let stream = socket.get_mut();
        stream.shutdown().await.ok()?;
        let mut dropped = vec![0; 4096];
        while stream.read(&mut dropped).await.ok()? > 0 {}
        Some(())
    };
    // Over in time or not, the connection ends.
    let _ = tokio::time::timeout(patience, goodbye).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_tungstenite::tungstenite::error::CapacityError;

    #[test]
    fn what_is_found_is_told_by_its_code() {
        for (error, end) in [
            (Error::Utf8(String::new()), End::Closing(CloseCode::Invalid)),
            (CapacityError::MessageTooLong { size: 2, max_size: 1 }.into(), End::Closing(CloseCode::Size)),
            (ProtocolError::UnmaskedFrameFromClient.into(), End::Closing(CloseCode::Protocol)),
            (ProtocolError::ResetWithoutClosingHandshake.into(), End::Gone),
            (std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(), End::Gone),
        ] {
            assert_eq!(End::from(error), end);
        }
        let codes = [CloseCode::Away, CloseCode::Protocol, CloseCode::Invalid, CloseCode::Size].map(u16::from);
        assert_eq!(codes, [1001, 1002, 1007, 1009]);
    }
}
