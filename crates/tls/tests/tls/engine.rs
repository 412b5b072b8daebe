//! The engine over real sockets to an echo server with TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use plimsoll_core::profile::Profile;
use plimsoll_core::tls_cost::TlsCost;
use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_engine::{Options, Report, run};
use plimsoll_tls::{Client, TlsMachines};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::pki::{Authority, NAME};
use crate::toy::{BYE, Toys};

/// Echoes until the connection ends. Whether it ended by TLS, and not by a cut.
fn echo(stream: TcpStream, config: Arc<ServerConfig>) -> bool {
    stream.set_nodelay(true).unwrap();
    let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match tls.read(&mut buffer) {
            Ok(0) => return true,
            // An answer to somebody who has hung up would reset the connection before its end is read.
            Ok(count) if buffer[..count] == *BYE => {}
            Ok(count) => {
                if tls.write_all(&buffer[..count]).is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}

/// A server of one connection.
pub(crate) fn serve_one(config: Arc<ServerConfig>) -> (SocketAddr, JoinHandle<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || echo(listener.accept().unwrap().0, config));
    (address, serving)
}

/// A run of this many sessions against a server of as many connections; how each connection ended.
fn measured(
    client: &Client,
    config: &Arc<ServerConfig>,
    sessions: u32,
    message_bytes: usize,
) -> (Report, Vec<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::clone(config);
    let serving = std::thread::spawn(move || {
        let connections: Vec<_> = listener
            .incoming()
            .take(sessions as usize)
            .map(|stream| {
                let (stream, config) = (stream.unwrap(), Arc::clone(&config));
                std::thread::spawn(move || echo(stream, config))
            })
            .collect();
        let ends = connections.into_iter().map(|each| each.join().unwrap());
        ends.collect::<Vec<_>>()
    });
    let profile = Profile {
        ramp_s: 0.3,
        warm_up_s: 0.2,
        measured_s: 1.0,
        grace_s: 5.0,
        session_start_spread_ms: 100.0,
        ..Profile::quick()
    };
    let toys = Toys { message_bytes };
    let machines = TlsMachines::new(&toys, client, thread_cpu_ns);
    let options = Options::new(address, sessions, profile);
    let report = run(&machines, &options, &AtomicBool::new(false), |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    (report, serving.join().unwrap())
}

#[test]
fn every_message_comes_back() {
    let authority = Authority::new();
    let client = authority.client(NAME, &["http/1.1"]);
    for (version, message_bytes) in [(&TLS13, 160), (&TLS12, 648), (&TLS13, 50_000)] {
        let server = authority.identity(NAME).server(&[version], &["http/1.1"]);
        let (report, ends) = measured(&client, &server, 4, message_bytes);
        let ledger = &report.ledger;
        assert!(ledger.is_whole());
        assert_eq!(ledger.frames_due, 4 * 500);
        assert_eq!(ledger.frames_answered, ledger.frames_due);
        assert_eq!((ledger.sessions_started, ledger.sessions_died), (4, 0));
        assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
        // The engine counts what is on the wire, and the kernel agrees.
        let plain = ledger.frames_sent_in_all * message_bytes as u64;
        assert!(ledger.bytes_sent > plain);
        let kernel = report.kernel_bytes.as_ref().expect("all lived to the end");
        let checks =
            plimsoll_core::sanity::kernel_bytes(kernel, ledger.bytes_sent, ledger.bytes_received);
        assert!(checks.iter().all(|check| check.holds), "{checks:?}");
        // Each thread's own clock has seen what TLS took of its time.
        assert_eq!(report.tls.handshakes.count, 4);
        let handshake_us = report.tls.handshakes.mean_us().expect("each is timed");
        assert!((1.0..100_000.0).contains(&handshake_us), "{handshake_us}");
        let us = report.tls_us_per_frame().expect("some were timed");
        let of_us = report.cpu_us_per_frame().expect("frames were written");
        assert!(us > 0.0 && us < of_us, "{us} of {of_us}");
        assert!(
            ends.iter().all(|polite| *polite),
            "each connection was closed by TLS"
        );
    }
}

#[test]
fn a_server_that_is_not_believed_has_no_sessions() {
    let server = Authority::named("another")
        .identity(NAME)
        .server(&[&TLS13], &[]);
    let client = Authority::new().client(NAME, &[]);
    let (report, _) = measured(&client, &server, 3, 160);
    let reason = "TLS: the target's certificate is of a CA that is not trusted";
    assert_eq!(report.ledger.reasons.get(reason), Some(&3));
    assert_eq!(report.ledger.sessions_failed, 3);
    assert_eq!(report.ledger.sessions_started, 0);
    // A handshake that fails half-way is none.
    assert_eq!(report.tls, TlsCost::default());
}
