//! Providers that do what a test tells them, byte by byte.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tungstenite::handshake::derive_accept_key;

use super::client::{BINARY, CLOSE, FINAL, PING, PONG, TEXT, header, patiently};

/// Takes requests and hands them to the test. Stops listening on drop, or when told.
pub struct Providers {
    pub port: u16,
    links: UnboundedReceiver<Exchange>,
    speeches: UnboundedReceiver<Exchange>,
    accepting: JoinHandle<()>,
}

/// Who takes what comes in.
#[derive(Clone)]
struct Takers {
    links: UnboundedSender<Exchange>,
    speeches: UnboundedSender<Exchange>,
}

impl Providers {
    pub async fn start() -> Self {
        Self::start_at(0).await
    }

    /// Listens at a port that was used before.
    pub async fn start_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (link_taker, links) = unbounded_channel();
        let (speech_taker, speeches) = unbounded_channel();
        let takers = Takers { links: link_taker, speeches: speech_taker };
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(hand_over(socket, takers.clone()));
            }
        });
        Self { port, links, speeches, accepting }
    }

    /// Refuses connections from now on; those that are open stay so.
    pub async fn refuse(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }

    /// The next handshake of a WebSocket, which waits for an answer.
    pub async fn handshake(&mut self) -> Exchange {
        patiently(self.links.recv()).await.expect("a handshake")
    }

    /// The next connection for speech-to-text, opened.
    pub async fn link(&mut self) -> Link {
        self.handshake().await.accept().await
    }

    /// That nobody asks for speech-to-text for a while.
    pub async fn no_handshake(&mut self, duration: Duration) {
        let asked = tokio::time::timeout(duration, self.links.recv()).await;
        assert!(asked.is_err(), "somebody asked");
    }

    /// The next request for speech.
    pub async fn speech(&mut self) -> Exchange {
        patiently(self.speeches.recv()).await.expect("a request")
    }

    /// That nobody asks for speech for a while.
    pub async fn no_speech(&mut self, duration: Duration) {
        let asked = tokio::time::timeout(duration, self.speeches.recv()).await;
        assert!(asked.is_err(), "somebody asked");
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn hand_over(mut socket: TcpStream, takers: Takers) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).expect("text");
    let mut exchange = Exchange { head, body: Vec::new(), socket, takers: takers.clone() };
    let length = exchange.header("content-length").map_or(0, |length| length.parse().expect("a number"));
    exchange.body = vec![0; length];
    if exchange.socket.read_exact(&mut exchange.body).await.is_err() {
        return;
    }
    let taker = if exchange.target().starts_with("/v1/listen") { takers.links } else { takers.speeches };
    // A test that is over takes no more.
    let _ = taker.send(exchange);
}

/// A request that waits for its answer.
pub struct Exchange {
    head: String,
    pub body: Vec<u8>,
    pub socket: TcpStream,
    takers: Takers,
}

impl Exchange {
    /// The path and the query.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).expect("a target")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1)
    }

    /// A field of the body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("written");
    }

    /// An answer without audio. The connection may be used again.
    pub async fn answer(mut self, status: u16, headers: &str) {
        self.write(format!("HTTP/1.1 {status} Told\r\ncontent-length: 0\r\n{headers}\r\n").as_bytes()).await;
        tokio::spawn(hand_over(self.socket, self.takers));
    }

    /// The head of an answer with audio.
    pub async fn begin(&mut self, headers: &str) {
        self.write(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{headers}\r\n").as_bytes()).await;
    }

    pub async fn send(&mut self, audio: &[u8]) {
        let chunk = [format!("{:x}\r\n", audio.len()).as_bytes(), audio, b"\r\n"].concat();
        self.write(&chunk).await;
    }

    /// Ends the audio. The connection may be used again.
    pub async fn end(mut self) {
        self.write(b"0\r\n\r\n").await;
        tokio::spawn(hand_over(self.socket, self.takers));
    }

    /// The whole answer.
    pub async fn play(mut self, audio: &[u8]) {
        self.begin("").await;
        for block in audio.chunks(960) {
            self.send(block).await;
        }
        self.end().await;
    }

    /// Resets the connection.
    pub fn reset(self) {
        self.socket.set_zero_linger().expect("set");
    }

    /// That the gateway gives the request up within 100 ms.
    pub async fn expect_cancelled(mut self) {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(100), self.socket.read(&mut byte)).await;
        assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
    }

    /// Opens the WebSocket that was asked for.
    pub async fn accept(self) -> Link {
        self.accept_with(b"").await
    }

    /// Opens the WebSocket, and says something in the same breath.
    pub async fn accept_and_say(self, transcript: &str) -> Link {
        let result = result(transcript, 0.0, true, true).to_string();
        let frame = [header(FINAL | TEXT, 0, result.len() as u64).as_slice(), result.as_bytes()].concat();
        self.accept_with(&frame).await
    }

    async fn accept_with(mut self, more: &[u8]) -> Link {
        let accept = derive_accept_key(self.header("sec-websocket-key").expect("a key").as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
        );
        self.write(&[head.as_bytes(), more].concat()).await;
        Link { socket: self.socket, answers_pings: true }
    }
}

/// As Deepgram has it, for audio up to so many seconds.
fn result(transcript: &str, until_s: f64, is_final: bool, speech_final: bool) -> Value {
    json!({
        "type": "Results", "start": 0.0, "duration": until_s, "is_final": is_final, "speech_final": speech_final,
        "channel": {"alternatives": [{"transcript": transcript, "confidence": 0.98, "words": []}]},
    })
}

/// A connection for speech-to-text.
pub struct Link {
    pub socket: TcpStream,
    pub answers_pings: bool,
}

impl Link {
    /// The next frame of the gateway: opcode and payload.
    pub async fn receive(&mut self) -> (u8, Vec<u8>) {
        patiently(async {
            loop {
                let (opcode, payload) = self.receive_frame().await;
                if opcode == PING && self.answers_pings {
                    self.send(PONG, &payload).await;
                    continue;
                }
                return (opcode, payload);
            }
        })
        .await
    }

    async fn receive_frame(&mut self) -> (u8, Vec<u8>) {
        let first = self.socket.read_u8().await.expect("a frame");
        assert_eq!(first & 0xF0, FINAL, "whole messages, no reserved bits");
        let second = self.socket.read_u8().await.expect("a length");
        assert_eq!(second & 0x80, 0x80, "a client masks");
        let length = match second & 0x7F {
            126 => u64::from(self.socket.read_u16().await.expect("a length")),
            127 => self.socket.read_u64().await.expect("a length"),
            short => u64::from(short),
        };
        let mut mask = [0; 4];
        self.socket.read_exact(&mut mask).await.expect("a mask");
        let mut payload = vec![0; usize::try_from(length).expect("fits")];
        self.socket.read_exact(&mut payload).await.expect("a payload");
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        (first & 0x0F, payload)
    }

    /// So many bytes of audio, and nothing else.
    pub async fn receive_audio(&mut self, bytes: usize) -> Vec<u8> {
        let mut audio = Vec::new();
        while audio.len() < bytes {
            let (opcode, payload) = self.receive().await;
            assert_eq!(opcode, BINARY, "{:?}", String::from_utf8_lossy(&payload));
            audio.extend(payload);
        }
        audio
    }

    pub async fn receive_json(&mut self) -> Value {
        let (opcode, payload) = self.receive().await;
        assert_eq!(opcode, TEXT, "{payload:?}");
        serde_json::from_slice(&payload).expect("JSON")
    }

    pub async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let frame = [header(FINAL | opcode, 0, payload.len() as u64).as_slice(), payload].concat();
        self.socket.write_all(&frame).await.expect("written");
    }

    /// A result for audio up to so many seconds.
    pub async fn say(&mut self, transcript: &str, until_s: f64, is_final: bool, speech_final: bool) {
        let result = result(transcript, until_s, is_final, speech_final);
        self.send(TEXT, result.to_string().as_bytes()).await;
    }

    pub async fn close(mut self) {
        self.send(CLOSE, &1011_u16.to_be_bytes()).await;
    }
}
