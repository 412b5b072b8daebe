//! WebSockets with buffers that fit a caller.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// The longest message of a client; a longer one closes with 1009, once its length is declared.
const MESSAGE_MAX_BYTES: usize = 10 << 20;
/// Messages of audio have 3,200 bytes. By its own choice the library would take 128 KiB for each connection.
const BUFFER_BYTES: usize = 8 << 10;

/// For so long a client may take to close.
const LINGER: Duration = Duration::from_millis(500);

/// A client's connection.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(crate) fn buffers() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_MAX_BYTES))
        .max_frame_size(Some(MESSAGE_MAX_BYTES))
}

pub(crate) async fn accepted(upgraded: Upgraded) -> Socket {
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(buffers())).await
}

/// Reads on until the client has closed too, for a while. Closed with unread bytes, a socket is reset, and what was sent last
/// may be lost.
pub(crate) async fn linger(socket: &mut Socket) {
    let stream = socket.get_mut();
    let mut bytes = [0; 4096];
    let read_on = poll_fn(|context| {
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    let _ = timeout(LINGER, read_on).await;
}
