//! An RFC 6455 echo server on a third-party WebSocket library, with faults on demand. Each connection has one thread
//! that reads and one that answers.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// At once.
    Honest,
    /// Every tenth message of a connection has no answer.
    SwallowsEveryTenth,
    /// This much later.
    Late(Duration),
}

/// Starts a server on a free port and returns its URL. It serves until the test binary ends.
pub(crate) fn start(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, manner));
        }
    });
    format!("ws://{address}/")
}

fn serve(stream: TcpStream, manner: Manner) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    let answers = stream.try_clone().expect("a second handle");
    // The command first checks whether anybody listens, and hangs up: that is no WebSocket.
    let Ok(mut socket) = tungstenite::accept(stream) else {
        return;
    };
    let (sender, receiver) = channel();
    let answering = std::thread::spawn(move || answer(answers, &receiver));
    let mut number = 0_u64;
    while let Ok(message) = socket.read() {
        if !message.is_binary() && !message.is_text() {
            continue;
        }
        number += 1;
        let due = match manner {
            Manner::SwallowsEveryTenth if number.is_multiple_of(10) => continue,
            Manner::Late(by) => Instant::now() + by,
            Manner::Honest | Manner::SwallowsEveryTenth => Instant::now(),
        };
        if sender.send((due, message)).is_err() {
            break;
        }
    }
    drop(sender);
    let _ = answering.join();
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
