//! A server-side WebSocket over buffers in memory: bytes in, messages out; messages in, bytes out.

use std::io::{self, Read, Write};

use tungstenite::error::Error;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Message, Utf8Bytes};

use crate::honest::messages::close;

/// The longest message that is taken (contract, section 3).
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Two frames of audio: what one read from a socket usually holds.
const READ_BUFFER_BYTES: usize = 2048;

/// The two directions of a connection, as a stream that never blocks.
#[derive(Debug, Default)]
struct Pipe {
    inbound: Vec<u8>,
    read_to: usize,
    outbound: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.inbound[self.read_to..];
        if rest.is_empty() {
            self.inbound.clear();
            self.read_to = 0;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        self.read_to += bytes;
        Ok(bytes)
    }
}

impl Write for Pipe {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.outbound.extend_from_slice(from);
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a client said.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A text message.
    Text(Utf8Bytes),
    /// A binary message.
    Binary(tungstenite::Bytes),
    /// It closed; the answer is in the outgoing bytes.
    Closed,
    /// It broke the protocol: close with this code.
    Violation(u16),
}

/// The server's side of one WebSocket.
#[derive(Debug)]
pub struct ServerSocket {
    socket: tungstenite::WebSocket<Pipe>,
}

impl ServerSocket {
    /// A socket just upgraded.
    #[must_use]
    pub fn new() -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        Self {
            socket: tungstenite::WebSocket::from_raw_socket(
                Pipe::default(),
                Role::Server,
                Some(config),
            ),
        }
    }

    /// Bytes came from the client.
    pub fn received(&mut self, bytes: &[u8]) {
        self.socket.get_mut().inbound.extend_from_slice(bytes);
    }

    /// The next thing that the client said, if it has come completely. Pings are answered on the way.
    pub fn next_said(&mut self) -> Option<Said> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(Said::Text(text)),
                Ok(Message::Binary(payload)) => return Some(Said::Binary(payload)),
                Ok(Message::Close(_)) => {
                    self.flush();
                    return Some(Said::Closed);
                }
                Ok(Message::Ping(_)) => self.flush(),
                Ok(Message::Pong(_) | Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(Error::Capacity(_)) => return Some(Said::Violation(close::TOO_BIG)),
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Some(Said::Closed),
                Err(_) => return Some(Said::Violation(close::PROTOCOL)),
            }
        }
    }

    /// Sends a text.
    pub fn send_text(&mut self, text: String) {
        // The only errors are of a socket that is closing: then nobody is to hear it.
        let _closing = self.socket.write(Message::text(text));
        self.flush();
    }

    /// Sends a close frame.
    pub fn send_close(&mut self, code: u16) {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: Utf8Bytes::from_static(""),
        };
        let _closing = self.socket.close(Some(frame));
        self.flush();
    }

    /// Takes the bytes that are to go to the client.
    pub fn take_outbound(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.socket.get_mut().outbound)
    }

    fn flush(&mut self) {
        // The pipe takes everything; an error only repeats that the socket is closing.
        let _closing = self.socket.flush();
    }
}

impl Default for ServerSocket {
    fn default() -> Self {
        Self::new()
    }
}
