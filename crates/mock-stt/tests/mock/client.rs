//! A client of the mock: the sans-IO dialect of `plimsoll-workload-stt-real`, over a WebSocket of other hands.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_workload_stt_real::dialect::{
    self, Dialect, Event, Form, Incoming, Kind, Message, Options, ReadyAt, Transcription, Transport,
};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, HandshakeError, WebSocket};

/// How long nothing may come before a client believes that nothing will.
const QUIET: Duration = Duration::from_millis(300);
/// How long the next message may take on a busy machine, where one must come.
pub(crate) const LONG: Duration = Duration::from_secs(3);
/// The longest wait of all.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest message that a client takes.
const MESSAGE_MAX_BYTES: usize = 1 << 20;

/// A final: its span and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) from_ns: Option<u64>,
    pub(crate) to_ns: Option<u64>,
    pub(crate) text: String,
    /// The end of its last word.
    pub(crate) words_to_ns: Option<u64>,
}

/// All that a session saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) finals: Vec<Heard>,
    pub(crate) interims: usize,
    pub(crate) faults: Vec<dialect::Fault>,
    pub(crate) unknown: usize,
    pub(crate) refused: Option<Kind>,
    pub(crate) errors: Vec<Kind>,
    pub(crate) ready: bool,
    pub(crate) drained: bool,
    /// The server closed.
    pub(crate) closed: bool,
    /// The connection broke off, or a message was too long.
    pub(crate) died: Option<String>,
    /// How far finals and progress came.
    pub(crate) cursor_ns: u64,
    /// Messages as they came.
    pub(crate) raw: Vec<Raw>,
}

/// A message as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Raw {
    Text(String),
    Bytes(Vec<u8>),
}

impl Seen {
    /// The words of all finals.
    pub(crate) fn words(&self) -> Vec<String> {
        let texts = self.finals.iter().map(|heard| heard.text.as_str());
        // Deltas may begin anywhere in a word, and bring their own blanks; others bring none.
        let all: String = texts
            .flat_map(|text| [text, if text.starts_with(' ') { "" } else { " " }])
            .collect();
        plimsoll_speech::words::words(&all)
    }

    fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Ready => self.ready = true,
            Event::Interim { .. } => self.interims += 1,
            Event::Final {
                from_ns,
                to_ns,
                text,
                words,
            } => {
                self.cursor_ns = self.cursor_ns.max(to_ns.unwrap_or(0));
                self.finals.push(Heard {
                    from_ns,
                    to_ns,
                    text: text.to_owned(),
                    words_to_ns: words.last().and_then(|word| word.to_ns),
                });
            }
            Event::Progress { upto_ns } => self.cursor_ns = self.cursor_ns.max(upto_ns),
            Event::Drained => self.drained = true,
            Event::Refused { kind } => {
                self.refused.get_or_insert(kind);
            }
            Event::Error { kind, .. } => self.errors.push(kind),
            Event::Unknown => self.unknown += 1,
            Event::Fault(fault) => self.faults.push(fault),
            Event::Received { .. } | Event::Speech { .. } | Event::Ignored => {}
        }
    }
}

enum Line {
    WebSocket(Box<WebSocket<TcpStream>>),
    Stream(TcpStream),
}

/// A session.
pub(crate) struct Client {
    pub(crate) dialect: Box<dyn Dialect>,
    session: Box<dyn Transcription>,
    line: Line,
    pub(crate) written_ns: u64,
    messages: u64,
    pub(crate) seen: Seen,
}

/// The dialect of this name, with the options of a user who gives only what must be given.
pub(crate) fn dialect_of(name: &str, options: Options) -> Box<dyn Dialect> {
    let model = options.model.clone().or_else(|| Some("mock".to_owned()));
    dialect::by_name(name, &Options { model, ..options }).expect("options of this dialect")
}

impl Client {
    /// Connects, opens, and waits until it may send audio, if it ever may.
    pub(crate) fn open(address: SocketAddr, dialect: Box<dyn Dialect>) -> Self {
        let mut session = dialect.transcription();
        let mut seen = Seen::default();
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let line = match dialect.connect().transport {
            Transport::Tcp => Some(Line::Stream(stream)),
            Transport::WebSocket => upgraded(&*dialect, address, stream, |status, reason| {
                let refused = Incoming::Refused { status, reason };
                session.parse(refused, 0, &mut |event| seen.note(event));
            }),
        };
        let is_open = line.is_some();
        let spare = || TcpStream::connect(address).expect("it listens");
        let mut client = Self {
            line: line.unwrap_or_else(|| Line::Stream(spare())),
            dialect,
            session,
            written_ns: 0,
            messages: 0,
            seen,
        };
        client.seen.closed = !is_open;
        if is_open {
            for message in client.dialect.opening(7) {
                client.send(&message);
            }
            if client.dialect.facts().ready_at == ReadyAt::Message {
                client.read_until(PATIENCE, |seen| seen.ready);
            }
        }
        client
    }

    fn timeout(&self, timeout: Duration) {
        let stream = match &self.line {
            Line::WebSocket(socket) => socket.get_ref(),
            Line::Stream(stream) => stream,
        };
        stream.set_read_timeout(Some(timeout)).expect("a socket");
    }

    fn send(&mut self, message: &Message) {
        if self.seen.closed {
            return;
        }
        let sent = match (&mut self.line, message.form) {
            (Line::Stream(stream), _) => stream.write_all(&message.content).map_err(Error::Io),
            (Line::WebSocket(socket), Form::Text) => {
                let text = String::from_utf8(message.content.clone()).expect("text");
                socket.send(tungstenite::Message::text(text))
            }
            (Line::WebSocket(socket), _) => {
                socket.send(tungstenite::Message::binary(message.content.clone()))
            }
        };
        // What the server said last is still to be read.
        if let Err(error) = sent {
            self.seen.died.get_or_insert(error.to_string());
        }
    }

    /// Sends a frame of audio.
    pub(crate) fn say(&mut self, frame: &[u8]) {
        let message = self.dialect.pack(frame);
        self.written_ns += self.dialect.audio().frame_ns;
        self.messages += 1;
        self.send(&message);
    }

    /// Asks for what there is.
    pub(crate) fn flush(&mut self) {
        if let Some(message) = self.session.flush(self.written_ns) {
            self.send(&message);
        }
    }

    /// Says that this was all.
    pub(crate) fn end(&mut self) {
        if let Some(message) = self.session.end(self.messages, self.written_ns) {
            self.send(&message);
        }
    }

    /// Reads until nothing comes any more.
    pub(crate) fn read(&mut self) {
        self.read_until(QUIET, |_| false);
    }

    /// Reads until it is enough, the server has closed, or nothing came for so long.
    pub(crate) fn read_until(&mut self, quiet: Duration, enough: impl Fn(&Seen) -> bool) {
        let began = Instant::now();
        self.timeout(quiet);
        while !self.seen.closed && !enough(&self.seen) && began.elapsed() < PATIENCE {
            if !self.read_one() {
                return;
            }
        }
    }

    /// One message, or false if none came.
    fn read_one(&mut self) -> bool {
        let Self {
            line,
            session,
            seen,
            written_ns,
            ..
        } = self;
        let mut parse = |seen: &mut Seen, incoming: Incoming<'_>| {
            session.parse(incoming, *written_ns, &mut |event| seen.note(event));
        };
        match line {
            Line::Stream(stream) => {
                let mut bytes = [0; 4096];
                match stream.read(&mut bytes) {
                    Ok(0) => {
                        seen.closed = true;
                        let (code, reason) = (None, "");
                        parse(seen, Incoming::Closed { code, reason });
                    }
                    Ok(count) => {
                        seen.raw.push(Raw::Bytes(bytes[..count].to_vec()));
                        parse(seen, Incoming::Bytes(&bytes[..count]));
                    }
                    Err(error) => return broke(seen, &Error::Io(error)),
                }
            }
            Line::WebSocket(socket) => match socket.read() {
                Ok(tungstenite::Message::Text(text)) => {
                    seen.raw.push(Raw::Text(text.as_str().to_owned()));
                    parse(seen, Incoming::Text(&text));
                }
                Ok(tungstenite::Message::Binary(bytes)) => {
                    seen.raw.push(Raw::Bytes(bytes.to_vec()));
                    parse(seen, Incoming::Binary(&bytes));
                }
                Ok(tungstenite::Message::Close(frame)) => {
                    seen.closed = true;
                    let (code, reason) = match &frame {
                        Some(CloseFrame { code, reason }) => (Some(u16::from(*code)), &**reason),
                        None => (None, ""),
                    };
                    parse(seen, Incoming::Closed { code, reason });
                }
                Ok(_) => {}
                Err(error) => return broke(seen, &error),
            },
        }
        true
    }
}

/// Notes how the connection broke off; false, for nothing came.
fn broke(seen: &mut Seen, error: &Error) -> bool {
    let waits = matches!(error, Error::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    if !waits {
        seen.closed = true;
        seen.died.get_or_insert(error.to_string());
    }
    false
}

/// The connection after the upgrade; none if it was refused.
fn upgraded(
    dialect: &dyn Dialect,
    address: SocketAddr,
    stream: TcpStream,
    mut refused: impl FnMut(u16, &str),
) -> Option<Line> {
    let connect = dialect.connect();
    let target = connect.target();
    let mut request = format!("ws://{address}{}", target.expose())
        .into_client_request()
        .expect("an address");
    let headers = request.headers_mut();
    for field in &connect.headers {
        let name = field.name.to_ascii_lowercase();
        let name = tungstenite::http::HeaderName::try_from(name).expect("a name");
        headers.insert(name, field.value.expose().parse().expect("a value"));
    }
    let offered: Vec<&str> = connect
        .subprotocols
        .iter()
        .map(|one| one.expose())
        .collect();
    if !offered.is_empty() {
        let offered = offered.join(", ");
        headers.insert("sec-websocket-protocol", offered.parse().expect("a value"));
    }
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX_BYTES));
    match tungstenite::client::client_with_config(request, stream, Some(config)) {
        Ok((socket, _)) => Some(Line::WebSocket(Box::new(socket))),
        Err(HandshakeError::Failure(Error::Http(answer))) => {
            let name = dialect.refusal_header();
            let reason = name.and_then(|name| answer.headers().get(name));
            let reason = reason.and_then(|reason| reason.to_str().ok()).unwrap_or("");
            refused(answer.status().as_u16(), reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}
