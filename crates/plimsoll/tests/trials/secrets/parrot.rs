//! A server that reveals whatever it is sent, and whatever it was started with: an echo server whose log repeats the
//! request, and whose start line names its password.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// This variable tells the test program to be the target of a trial.
pub(crate) const IS_TARGET: &str = "PARROT_IS_TARGET";
/// In this variable, its manifest gives it a password.
pub(crate) const PASSWORD: &str = "PARROT_PASSWORD";

/// The heads of all requests so far.
pub(crate) type Heard = Arc<Mutex<String>>;

/// Serves in this process; returns `HOST:PORT` and what it hears.
pub(crate) fn start() -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let heard = Heard::default();
    let hears = heard.clone();
    std::thread::spawn(move || serve(&listener, &hears, false));
    (address, heard)
}

/// Acts as the target of a trial until it is killed.
pub(crate) fn be_the_target() -> ! {
    let port = std::env::var("PORT").expect("told by Plimsoll");
    let password = std::env::var(PASSWORD).expect("told by its manifest");
    let listener = TcpListener::bind(format!("0.0.0.0:{port}")).expect("its port");
    // The test harness has already begun a line.
    println!();
    println!("{{\"runtime\": \"parrot\", \"login\": \"user:{password}\"}}");
    for (name, value) in std::env::vars() {
        println!("started with {name}={value}");
    }
    serve(&listener, &Heard::default(), true);
    unreachable!("connections come as long as it lives");
}

fn serve(listener: &TcpListener, heard: &Heard, aloud: bool) {
    for stream in listener.incoming().flatten() {
        let heard = heard.clone();
        std::thread::spawn(move || connection(stream, &heard, aloud));
    }
}

fn connection(mut stream: TcpStream, heard: &Heard, aloud: bool) {
    let _ = stream.set_nodelay(true);
    let mut head = [0; 8192];
    let length = loop {
        let Ok(length) = stream.peek(&mut head) else {
            return;
        };
        if length == 0 {
            return;
        }
        if head[..length].windows(4).any(|end| end == b"\r\n\r\n") {
            break length;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    heard.lock().expect("not poisoned").push_str(&head);
    if aloud {
        println!("{head}");
    }
    if !head.to_ascii_lowercase().contains("upgrade: websocket") {
        let _ = stream.read(&mut [0; 8192]);
        let body = format!("you said: {head}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes());
        return;
    }
    let Ok(mut socket) = tungstenite::accept(stream) else {
        return;
    };
    while let Ok(message) = socket.read() {
        if (message.is_binary() || message.is_text()) && socket.send(message).is_err() {
            return;
        }
    }
}
