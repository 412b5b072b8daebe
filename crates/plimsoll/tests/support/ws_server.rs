//! A general WebSocket server on a third-party library. On demand it has the faults by which measurements of such
//! servers went wrong. Each connection has one thread that reads and one that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Message, WebSocket};

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Sends every message back at once.
    Echo,
    /// Takes messages and sends none back.
    Discards,
    /// Sends them back this much later.
    Late(Duration),
    /// Sends nothing from two seconds to three seconds after the first of its connections came, then all of it. The
    /// same happens when all have gone and others come.
    StandsStill,
    /// Accepts one connection in this much time.
    AcceptsOneIn(Duration),
    /// Of every three connections, one is answered with 503, one is closed without an answer, and one is upgraded.
    RefusesByTurns,
    /// Passes each message on to all connections.
    Hub,
    /// The same, but one message in ten does not reach every other connection.
    HubThatSkips,
    /// The WSE engine with an application that takes its events: pings are answered, and everything else is handed on
    /// and counted. It does not read binary messages.
    Wse,
    /// The same engine with an application that takes no events.
    WseWithoutApplication,
    /// The same engine. Of every three connections, one is told that its token is bad, and one is never told that the
    /// server is ready.
    WseRefusesByTurns,
}

/// A server that runs until the test binary ends.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections that were upgraded.
    accepted: u64,
    /// Messages handed to the application.
    handed_on: u64,
    /// Where connections came from.
    peers: BTreeSet<IpAddr>,
    /// How to answer each open connection.
    open: BTreeMap<u64, Answers>,
    /// When the first of the open connections came.
    since: Option<Instant>,
    /// Messages that were passed on.
    passed_on: u64,
}

/// Messages to send, each with its earliest time.
type Answers = Sender<(Instant, Message)>;

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Self {
            url: format!("ws://{}", listener.local_addr().expect("an address")),
            state: Arc::default(),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for (number, stream) in (0_u64..).zip(listener.incoming().flatten()) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.connection(stream, manner, number));
                if let Manner::AcceptsOneIn(time) = manner {
                    std::thread::sleep(time);
                }
            }
        });
        server
    }

    /// The addresses that WebSockets came from.
    pub(crate) fn peers(&self) -> BTreeSet<IpAddr> {
        self.state().peers.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, mut stream: TcpStream, manner: Manner, number: u64) {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let mut head = [0; 16];
        let read = stream.peek(&mut head).unwrap_or(0);
        // The command first checks whether anybody listens, and hangs up.
        if read == 0 {
            return;
        }
        if head.starts_with(b"GET /metrics") {
            take_request(&mut stream);
            let _ = stream.write_all(self.metrics(manner).as_bytes());
            return;
        }
        if manner == Manner::RefusesByTurns && !number.is_multiple_of(3) {
            take_request(&mut stream);
            if number % 3 == 1 {
                let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
                let _ = stream.write_all(busy);
            }
            return;
        }
        let peer = stream.peer_addr();
        let answers = stream.try_clone().expect("a second handle");
        let Ok(socket) = tungstenite::accept(stream) else {
            return;
        };
        let (sender, receiver) = channel();
        {
            let mut state = self.state();
            state.accepted += 1;
            state.peers.extend(peer.map(|peer| peer.ip()));
            if state.open.is_empty() {
                state.since = Some(Instant::now());
            }
            state.open.insert(number, sender.clone());
        }
        let answering = std::thread::spawn(move || answer(answers, &receiver));
        self.messages(socket, manner, number, &sender);
        self.state().open.remove(&number);
        drop(sender);
        let _ = answering.join();
    }

    /// The metrics of a target of this kind. An echo server that is not a target has none.
    fn metrics(&self, manner: Manner) -> String {
        let state = self.state();
        let (status, body) = match manner {
            Manner::Wse | Manner::WseWithoutApplication => (
                "200 OK",
                format!(
                    "ws_connections_accepted_total {}\nws_messages_received_total {}\n",
                    state.accepted, state.handed_on
                ),
            ),
            _ => ("404 Not Found", String::new()),
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    fn messages(
        &self,
        mut socket: WebSocket<TcpStream>,
        manner: Manner,
        number: u64,
        sender: &Answers,
    ) {
        let at_once = |message| sender.send((Instant::now(), message));
        match (manner, number % 3) {
            (Manner::WseRefusesByTurns, 1) => return refuse_token(&mut socket),
            (Manner::WseRefusesByTurns, 2) => {}
            (Manner::Wse | Manner::WseWithoutApplication | Manner::WseRefusesByTurns, _) => {
                let ready = json!({"c": "WSE", "t": "server_ready", "p": {"details": {}}, "v": 1});
                let _ = at_once(Message::text(ready.to_string()));
            }
            _ => {}
        }
        while let Ok(message) = socket.read() {
            if !(message.is_text() || message.is_binary()) {
                continue;
            }
            let sent = match manner {
                Manner::Discards => Ok(()),
                Manner::Echo | Manner::AcceptsOneIn(_) | Manner::RefusesByTurns => at_once(message),
                Manner::Late(by) => sender.send((Instant::now() + by, message)),
                Manner::StandsStill => sender.send((self.after_standstill(), message)),
                Manner::Hub | Manner::HubThatSkips => {
                    self.pass_on(&message, manner);
                    Ok(())
                }
                Manner::Wse | Manner::WseWithoutApplication | Manner::WseRefusesByTurns => {
                    match engines_answer(&message) {
                        Some(answer) => at_once(answer),
                        None => {
                            self.hand_on(manner);
                            Ok(())
                        }
                    }
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }

    /// Now, or the end of the standstill.
    fn after_standstill(&self) -> Instant {
        let now = Instant::now();
        let since = self.state().since.unwrap_or(now);
        let (begins, ends) = (
            since + Duration::from_secs(2),
            since + Duration::from_secs(3),
        );
        if (begins..ends).contains(&now) {
            ends
        } else {
            now
        }
    }

    fn pass_on(&self, message: &Message, manner: Manner) {
        let mut state = self.state();
        state.passed_on += 1;
        let skips = manner == Manner::HubThatSkips && state.passed_on.is_multiple_of(10);
        for (place, receiver) in state.open.values().enumerate() {
            if !(skips && place % 2 == 1) {
                // A connection that is gone takes nothing.
                let _ = receiver.send((Instant::now(), message.clone()));
            }
        }
    }

    fn hand_on(&self, manner: Manner) {
        if manner != Manner::WseWithoutApplication {
            self.state().handed_on += 1;
        }
    }
}

/// Reads a request to its end. Closing with some of it unread would reset the connection, and the answer might be lost.
fn take_request(stream: &mut TcpStream) {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Refuses the token as the WSE engine does: after the upgrade.
fn refuse_token(socket: &mut WebSocket<TcpStream>) {
    let error = json!({"c": "WSE", "t": "error", "p": {"code": "AUTH_FAILED", "message": "no"}});
    let _ = socket.send(Message::text(error.to_string()));
    let _ = socket.close(Some(CloseFrame {
        code: CloseCode::from(4401),
        reason: "".into(),
    }));
    // Reads until the client has closed as well.
    while socket.read().is_ok() {}
}

/// What the WSE engine answers by itself: hellos and pings in text.
fn engines_answer(message: &Message) -> Option<Message> {
    if !message.is_text() {
        return None;
    }
    let said: Value = serde_json::from_str(message.to_text().ok()?).ok()?;
    let answer = match said["t"].as_str()? {
        "client_hello" => json!({"c": "WSE", "t": "server_hello", "p": {}, "v": 1}),
        "ping" => {
            let p = json!({"client_timestamp": said["p"]["timestamp"], "server_timestamp": 0, "latency": 0});
            json!({"c": "WSE", "t": "PONG", "p": p, "v": 1})
        }
        _ => return None,
    };
    Some(Message::text(answer.to_string()))
}

fn answer(stream: TcpStream, due: &Receiver<(Instant, Message)>) {
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    for (at, message) in due {
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        if socket.send(message).is_err() {
            return;
        }
    }
}
