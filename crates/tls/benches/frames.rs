//! What TLS costs the client: µs of one core to encrypt a frame, and to decrypt one. Run with
//! `cargo bench -p plimsoll-tls`.

#[path = "../tests/tls/pki.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod pki;

use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::session_plan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_tls::{Client, TlsSession};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use pki::{Authority, NAME};

const FRAMES: u32 = 100_000;
const ROUNDS: usize = 5;
const HANDSHAKES: u32 = 500;

/// Says the same frame again and again, and counts what it hears.
struct Parrot {
    frame: Vec<u8>,
    heard: usize,
}

impl Session for Parrot {
    type Claim = ();

    fn phase(&self) -> Phase {
        Phase::Open
    }

    fn next_due_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        let (head, body) = self.frame.split_at(8);
        Some(Transmit {
            head,
            body,
            due_ns: Some(0),
            held_until_ns: None,
            measured: true,
        })
    }

    fn sent(&mut self, _write_ns: u64, _recorder: &mut Recorder<()>) {}

    fn received(&mut self, _now_ns: u64, bytes: &[u8], _recorder: &mut Recorder<()>) {
        self.heard += black_box(bytes).len();
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, _recorder: &mut Recorder<()>) {
        panic!("{how:?}");
    }

    fn settled(&self) -> bool {
        true
    }

    fn finish(&mut self, _now_ns: u64, _recorder: &mut Recorder<()>) {}
}

/// An open session and its server.
struct Pair {
    session: TlsSession<Parrot>,
    server: ServerConnection,
    recorder: Recorder<()>,
}

impl Pair {
    fn open(client: &Client, config: &Arc<ServerConfig>, frame_bytes: usize) -> Self {
        let frame = vec![7; frame_bytes];
        // Time stands still before the measured window, so the session itself times nothing but its handshake.
        let plan = session_plan(0, 1, &Profile::quick(), 1);
        let parrot = Parrot { frame, heard: 0 };
        let mut session = TlsSession::new(parrot, &plan, client.clone(), thread_cpu_ns);
        let mut recorder = Recorder::default();
        session.connecting(0, &mut recorder);
        let mut server = ServerConnection::new(Arc::clone(config)).expect("a server");
        server.set_buffer_limit(None);
        while session.phase() == Phase::Opening || server.is_handshaking() {
            if let Some(transmit) = session.transmit(0) {
                let mut bytes = transmit.head;
                server.read_tls(&mut bytes).expect("memory");
                server.process_new_packets().expect("TLS");
                session.sent(0, &mut recorder);
            }
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).expect("memory");
            }
            session.received(0, &bytes, &mut recorder);
        }
        Self {
            session,
            server,
            recorder,
        }
    }

    /// µs for each frame that is encrypted.
    fn encrypt_us(&mut self) -> f64 {
        let began = Instant::now();
        for _ in 0..FRAMES {
            black_box(self.session.transmit(0));
            self.session.sent(0, &mut self.recorder);
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(FRAMES)
    }

    /// µs for each frame that is decrypted, if each comes by itself.
    fn decrypt_us(&mut self, frame_bytes: usize) -> f64 {
        let mut frames = Vec::new();
        for _ in 0..FRAMES {
            self.server
                .writer()
                .write_all(&vec![7; frame_bytes])
                .expect("memory");
            let mut bytes = Vec::new();
            self.server.write_tls(&mut bytes).expect("memory");
            frames.push(bytes);
        }
        let began = Instant::now();
        for frame in &frames {
            self.session.received(0, frame, &mut self.recorder);
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(FRAMES)
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// µs of both sides together for one full handshake.
fn handshake_us(client: &Client, config: &Arc<ServerConfig>) -> f64 {
    let began = Instant::now();
    for _ in 0..HANDSHAKES {
        let mut pair = Pair::open(client, config, 160);
        let _ = pair.server.reader().read(&mut [0; 16]);
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(HANDSHAKES)
}

fn main() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let versions: [(&str, &'static SupportedProtocolVersion); 2] =
        [("TLS 1.3", &TLS13), ("TLS 1.2", &TLS12)];
    println!("median of {ROUNDS} rounds of {FRAMES} frames");
    println!("version  bytes  encrypt µs  decrypt µs");
    for (name, version) in versions {
        let config = authority.identity(NAME).server(&[version], &[]);
        for frame_bytes in [160, 648, 4096] {
            let mut pair = Pair::open(&client, &config, frame_bytes);
            let mut rounds = |cost: &mut dyn FnMut(&mut Pair) -> f64| {
                median((0..ROUNDS).map(|_| cost(&mut pair)).collect())
            };
            let encrypt_us = rounds(&mut Pair::encrypt_us);
            let decrypt_us = rounds(&mut |pair| pair.decrypt_us(frame_bytes));
            println!("{name}  {frame_bytes:>5}  {encrypt_us:>10.2}  {decrypt_us:>10.2}");
        }
        let both_us = handshake_us(&client, &config);
        println!("{name}  a full handshake, both sides together: {both_us:.0} µs");
    }
}
