//! `foreign_load`: another client of this server, that whoever measures it knows nothing of. A thread with a few sessions that speak
//! as the contract says and do not care for the answers.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::honest::session::FRAME_BYTES;

/// An upgrade with the key of RFC 6455's example.
const UPGRADE: &[u8] =
    b"GET /ws/stt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const START: &[u8] = br#"{"type":"start"}"#;
/// Time between two frames of a session.
const PERIOD: Duration = Duration::from_millis(20);
/// The server that it speaks to is its own process; one that does not answer is stalled by another hand.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens that many sessions at this server's own port and speaks in all of them until `stop` is set.
pub(super) fn load(port: u16, sessions: u64, stop: &AtomicBool) {
    let opened: io::Result<Vec<TcpStream>> = (0..sessions).map(|_| open(port)).collect();
    let spoken = opened.and_then(|mut streams| speak(&mut streams, stop));
    if let Err(error) = spoken {
        eprintln!("lying-server: the foreign load ended: {error}");
    }
}

fn open(port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(UPGRADE)?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    stream.write_all(&message(0x81, START))?;
    Ok(stream)
}

fn speak(streams: &mut [TcpStream], stop: &AtomicBool) -> io::Result<()> {
    let frame = message(0x82, &[0; FRAME_BYTES]);
    let mut unread = vec![0; 16 << 10];
    for stream in &mut *streams {
        stream.set_nonblocking(true)?;
    }
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for stream in &mut *streams {
            stream.write_all(&frame)?;
            match stream.read(&mut unread) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        due += PERIOD;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// A whole client message of at most 65,535 bytes, masked with zeros.
fn message(head: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![head];
    match u8::try_from(payload.len()) {
        Ok(length) if length < 126 => bytes.push(0x80 | length),
        _ => {
            bytes.push(0x80 | 126);
            let length = u16::try_from(payload.len()).expect("a message of this module");
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}
