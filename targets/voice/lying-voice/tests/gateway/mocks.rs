//! Small mock providers: what they were asked is kept, and how they answer is set.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lying_voice::lies::blocks::Cutter;
use lying_voice::marks::{self, CALLER_BLOCK_BYTES, CallerMark, REPLY_BLOCK_BYTES, ReplyMark};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

/// What samples are made of, so that a changed one is seen.
pub(crate) const SAMPLE: u8 = 0x21;

/// How the mocks answer.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// Blocks of each reply.
    pub(crate) blocks: u32,
    /// From one block to the next.
    pub(crate) pace: Duration,
    /// Before the first byte of a reply.
    pub(crate) first: Duration,
    /// Statuses of the next requests for replies; then 200.
    pub(crate) statuses: VecDeque<u16>,
    /// After so many blocks a reply breaks off.
    pub(crate) breaks_after: Option<u32>,
    /// Whether no connection for speech is accepted.
    pub(crate) refuses_speech: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            blocks: 25,
            pace: Duration::ZERO,
            first: Duration::ZERO,
            statuses: VecDeque::new(),
            breaks_after: None,
            refuses_speech: false,
        }
    }
}

/// A request for a reply.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) manner: Manner,
    /// The heads of requests to hear.
    pub(crate) listened: Vec<String>,
    /// Blocks of callers, and whether their samples were as they should be.
    pub(crate) heard: Vec<(CallerMark, bool)>,
    /// Texts on connections for speech.
    pub(crate) texts: Vec<String>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) completed: u32,
    pub(crate) cancelled: u32,
    /// Connections for replies.
    pub(crate) connections: u32,
}

/// Mock providers; their threads end with the test.
pub(crate) struct Mocks {
    pub(crate) url: String,
    book: Arc<Mutex<Book>>,
}

impl Mocks {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let book = Arc::new(Mutex::new(Book { manner, ..Book::default() }));
        let of_thread = Arc::clone(&book);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let book = Arc::clone(&of_thread);
                std::thread::spawn(move || Provider { stream, book }.serve());
            }
        });
        Self { url, book }
    }

    /// Locked until dropped: no expression may ask for it twice.
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no mock panicked")
    }

    /// Numbers of the blocks that were heard.
    pub(crate) fn heard(&self) -> Vec<u32> {
        self.book().heard.iter().map(|(mark, _)| mark.block).collect()
    }

    /// How often they were asked to hear and to speak.
    pub(crate) fn asked(&self) -> (usize, usize) {
        let book = self.book();
        (book.listened.len(), book.asked.len())
    }

    /// Waits until so many blocks were heard.
    pub(crate) fn await_heard(&self, blocks: usize) {
        super::program::await_that(|| self.book().heard.len() >= blocks, "blocks");
    }
}

struct Provider {
    stream: TcpStream,
    book: Arc<Mutex<Book>>,
}

impl Provider {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no mock panicked")
    }

    fn serve(mut self) {
        self.stream.set_nodelay(true).expect("set");
        let mut first = true;
        while let Some(head) = self.head() {
            if head.starts_with("GET /v1/listen?") {
                self.book().listened.push(head.clone());
                self.listen(&head);
                return;
            }
            self.book().connections += u32::from(first);
            first = false;
            let goes_on = if head.starts_with("GET /v1/voices ") { self.voices() } else { self.speak(&head) };
            if !goes_on {
                return;
            }
        }
    }

    fn head(&mut self) -> Option<String> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if !matches!(self.stream.read(&mut byte), Ok(1)) {
                return None;
            }
            head.push(byte[0]);
        }
        String::from_utf8(head).ok()
    }

    fn voices(&mut self) -> bool {
        let list = r#"{"voices":[{"voice_id":"v","name":"V","labels":{"language":"en","gender":"female","accent":"none"},"preview_url":""}]}"#;
        write!(self.stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{list}", list.len()).is_ok()
    }

    fn listen(self, head: &str) {
        let Self { mut stream, book } = self;
        if book.lock().expect("book").manner.refuses_speech {
            let _ = stream.write_all(b"HTTP/1.1 503 Out\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        let accept = derive_accept_key(field(head, "sec-websocket-key").as_bytes());
        let head = "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
        write!(stream, "{head}{accept}\r\n\r\n").expect("written");
        let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
        let mut cutter = Cutter::new(CALLER_BLOCK_BYTES);
        let mut from = None;
        while let Ok(message) = socket.read() {
            match message {
                Message::Text(text) => book.lock().expect("book").texts.push(text.to_string()),
                Message::Binary(audio) => {
                    let read_ns = marks::now_ns();
                    for block in cutter.cut(&audio) {
                        let Some(mark) = CallerMark::read(&block) else { continue };
                        let is_right = block[marks::CALLER_MARK_BYTES..].iter().all(|byte| *byte == SAMPLE);
                        book.lock().expect("book").heard.push((mark, is_right));
                        if mark.speech {
                            from.get_or_insert(mark.block);
                        }
                        if let Some(from) = from.take_if(|_| mark.last) {
                            let _ = socket.send(Message::text(result(mark, from, read_ns)));
                        }
                    }
                }
                Message::Close(_) => return,
                _ => {}
            }
        }
    }

    /// Speaks; whether the connection goes on.
    fn speak(&mut self, head: &str) -> bool {
        let mut body = vec![0; field(head, "content-length").parse().expect("a length")];
        if self.stream.read_exact(&mut body).is_err() {
            return false;
        }
        let read_ns = marks::now_ns();
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let text = ["text", "input", "transcript"].iter().find_map(|name| body[name].as_str()).expect("a text");
        let (caller, turn) = marks::speak_mark(text).unwrap_or_default();
        let path = head.split(' ').nth(1).expect("a path").to_owned();
        let (manner, status, request) = {
            let mut book = self.book();
            book.asked.push(Asked { path, head: head.to_owned(), body: body.clone() });
            let request = book.asked.len();
            let status = book.manner.statuses.pop_front().unwrap_or(200);
            (book.manner.clone(), status, u32::try_from(request).expect("few"))
        };
        std::thread::sleep(manner.first);
        if status != 200 {
            return write!(self.stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").is_ok();
        }
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Mock-Provider-Ms: 12.5\r\n\r\n";
        let mut is_written = self.stream.write_all(head.as_bytes()).is_ok();
        for block in 1..=manner.blocks {
            if manner.breaks_after.is_some_and(|after| block > after) {
                return false;
            }
            let handed_ns = marks::now_ns();
            let mark = ReplyMark { caller, turn, request, block, blocks: manner.blocks, read_ns, handed_ns };
            let mut bytes = mark.bytes().to_vec();
            bytes.resize(REPLY_BLOCK_BYTES, SAMPLE);
            let chunk = [format!("{REPLY_BLOCK_BYTES:x}\r\n").as_bytes(), &bytes, b"\r\n"].concat();
            is_written = is_written && self.stream.write_all(&chunk).is_ok();
            std::thread::sleep(manner.pace);
        }
        is_written = is_written && self.stream.write_all(b"0\r\n\r\n").is_ok();
        let mut book = self.book();
        book.completed += u32::from(is_written);
        book.cancelled += u32::from(!is_written);
        is_written
    }
}

fn result(last: CallerMark, from: u32, read_ns: u64) -> String {
    let mark = marks::transcript_mark(last.caller, from, last.block, read_ns, marks::now_ns());
    json!({
        "type": "Results", "start": f64::from(from - 1) / 50.0, "duration": f64::from(last.block - from + 1) / 50.0,
        "is_final": true, "speech_final": true,
        "channel": {"alternatives": [{"transcript": format!("{mark}hello"), "confidence": 0.98, "words": []}]},
    })
    .to_string()
}

pub(crate) fn field(head: &str, name: &str) -> String {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}
