//! A WebSocket client that sends exactly the bytes it is told to.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::SESSION_PATH;

/// How long anything may take before a test gives up. Not a requirement on the gateway.
const PATIENCE: Duration = Duration::from_secs(10);

pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
pub const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;
pub const PONG: u8 = 0xA;
pub const FINAL: u8 = 0x80;

pub const START: &[u8] = br#"{"type":"start"}"#;

/// One HTTP request on a connection of its own; returns the whole answer as text.
pub async fn http(port: u16, request: &str, headers: &str) -> String {
    let mut socket = connect(port).await;
    let head = format!("{request} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(head.as_bytes()).await.expect("written");
    let mut answer = String::new();
    patiently(socket.read_to_string(&mut answer)).await.expect("an answer");
    answer
}

pub const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Asks for a session with more headers; returns the head of the answer, and the socket.
pub async fn upgrade(port: u16, headers: &str) -> (String, TcpStream) {
    request(connect(port).await, &format!("{UPGRADE}{headers}"), b"").await
}

/// Asks for a session with just these headers, and sends more at once; returns the head of the answer, and the socket.
pub async fn request(mut socket: TcpStream, headers: &str, more: &[u8]) -> (String, TcpStream) {
    let head = format!("GET {SESSION_PATH} HTTP/1.1\r\nHost: gateway\r\n{headers}\r\n");
    socket.write_all(&[head.as_bytes(), more].concat()).await.expect("written");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(patiently(socket.read_u8()).await.expect("an answer"));
    }
    (String::from_utf8(answer).expect("text"), socket)
}

pub struct Client {
    pub socket: TcpStream,
}

impl Client {
    /// A session that is open and not started.
    pub async fn open(port: u16) -> Self {
        let (answer, socket) = upgrade(port, "").await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        // The example of RFC 6455, section 1.3.
        assert!(answer.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
        Self { socket }
    }

    /// A session that is open on a socket whose receive buffer is small.
    pub async fn deaf(port: u16) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(8 * 1024).expect("set");
        let socket = socket.connect(([127, 0, 0, 1], port).into()).await.expect("connected");
        let (answer, socket) = request(socket, UPGRADE, b"").await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        Self { socket }
    }

    /// A session that is started.
    pub async fn started(port: u16) -> Self {
        let mut client = Self::open(port).await;
        client.send(TEXT, START).await;
        client
    }

    /// Sends a whole message, as a client should.
    pub async fn send(&mut self, opcode: u8, payload: &[u8]) {
        self.send_frame(FINAL | opcode, payload).await;
    }

    /// Sends a masked frame with any first byte.
    pub async fn send_frame(&mut self, first_byte: u8, payload: &[u8]) {
        self.write(&frame(first_byte, payload)).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("written");
    }

    /// The next frame from the gateway: opcode and payload.
    pub async fn receive(&mut self) -> (u8, Vec<u8>) {
        patiently(async {
            let first_byte = self.socket.read_u8().await.expect("a frame");
            assert_eq!(first_byte & 0xF0, FINAL, "whole messages, no reserved bits");
            let length = match self.socket.read_u8().await.expect("a length") {
                126 => usize::from(self.socket.read_u16().await.expect("a length")),
                short @ ..126 => usize::from(short),
                other => panic!("masked or very long: {other:#x}"),
            };
            let mut payload = vec![0; length];
            self.socket.read_exact(&mut payload).await.expect("a payload");
            (first_byte & 0x0F, payload)
        })
        .await
    }

    pub async fn receive_json(&mut self) -> Value {
        let (opcode, payload) = self.receive().await;
        assert_eq!(opcode, TEXT, "{payload:?}");
        serde_json::from_slice(&payload).expect("JSON")
    }

    /// The code of the close frame that must come next, and the end of the stream after it.
    pub async fn receive_close(&mut self) -> u16 {
        let (opcode, payload) = self.receive().await;
        assert_eq!(opcode, CLOSE, "{:?}", String::from_utf8_lossy(&payload));
        let mut rest = Vec::new();
        patiently(self.socket.read_to_end(&mut rest)).await.expect("a stream that ends and is not reset");
        assert_eq!(rest, b"");
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

/// A masked frame with any first byte.
pub fn frame(first_byte: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];
    let mut frame = header(first_byte, 0x80, payload.len() as u64);
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A frame's header up to the mask, which is left to the caller.
pub fn header(first_byte: u8, mask_bit: u8, length: u64) -> Vec<u8> {
    let mut header = vec![first_byte];
    match length {
        0..126 => header.push(mask_bit | u8::try_from(length).expect("short")),
        126..65_536 => {
            header.push(mask_bit | 126);
            header.extend(u16::try_from(length).expect("medium").to_be_bytes());
        }
        _ => {
            header.push(mask_bit | 127);
            header.extend(length.to_be_bytes());
        }
    }
    header
}

pub async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

pub async fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    socket.set_nodelay(true).expect("set");
    socket
}
