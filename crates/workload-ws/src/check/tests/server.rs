//! A server of a thread per connection, with one defect at a time: how it starts, what it counts, how it ends.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::Defect;
use super::connection;
use super::http::{Answer, Request, respond};
use crate::Dialect;

/// A bench whose servers have one defect.
pub(super) struct FakeBench {
    dialect: Dialect,
    defect: Defect,
}

impl FakeBench {
    pub(super) fn new(dialect: Dialect, defect: Defect) -> Self {
        Self { dialect, defect }
    }
}

/// The number of a variable.
fn number(environment: &Environment, name: &str, default: u64) -> Result<u64, String> {
    let Some(value) = environment.get(name) else {
        return Ok(default);
    };
    let number = value.parse().ok();
    let number = number.filter(|number| name != "PORT" || *number <= 65_535);
    let number = number.filter(|number| name != "WORKER_THREADS" || *number > 0);
    number.ok_or_else(|| format!("{name}={value} is not possible"))
}

impl Bench for FakeBench {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        let host = if self.defect == Defect::LoopbackOnly {
            "127.0.0.1:0"
        } else {
            "0.0.0.0:0"
        };
        let listener = TcpListener::bind(host).map_err(|error| error.to_string())?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        let shared = Arc::new(Shared {
            dialect: self.dialect,
            defect: self.defect,
            max: number(environment, "MAX_MESSAGE_BYTES", 1024 * 1024)?,
            drain: Duration::from_millis(number(environment, "DRAIN_TIMEOUT_MS", 5000)?),
            peers: Mutex::default(),
            counters: Counters::default(),
            draining: AtomicBool::new(false),
            upgrading: Mutex::new(()),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let draining = served.draining.load(Ordering::Relaxed);
                if draining && served.defect != Defect::AcceptsWhileDraining {
                    return;
                }
                let shared = Arc::clone(&served);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Box::new(FakeServer {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            terminated: Mutex::new(None),
            shared,
        }))
    }

    fn start_refused(&self, environment: &Environment, _: Duration) -> Result<Ended, String> {
        let names = [
            "PORT",
            "WORKER_THREADS",
            "DRAIN_TIMEOUT_MS",
            "MAX_MESSAGE_BYTES",
            "METRICS_PORT",
        ];
        let read = names
            .iter()
            .try_for_each(|name| number(environment, name, 1).map(|_| ()));
        match read {
            Err(line) if self.defect != Defect::TakesBadValues => Ok(Ended {
                exit_code: Some(2),
                output: format!("{line}\n"),
            }),
            _ => Err("it still runs".to_owned()),
        }
    }
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) sent: AtomicU64,
    /// What the engine of dialect `wse` read.
    pub(super) engine: AtomicU64,
}

/// An open connection, as others reach it.
pub(super) struct Peer {
    pub(super) id: u64,
    pub(super) on_hub: bool,
    pub(super) writer: Arc<Mutex<TcpStream>>,
}

pub(super) struct Shared {
    pub(super) dialect: Dialect,
    pub(super) defect: Defect,
    pub(super) max: u64,
    drain: Duration,
    pub(super) peers: Mutex<Vec<Peer>>,
    pub(super) counters: Counters,
    pub(super) draining: AtomicBool,
    upgrading: Mutex<()>,
}

impl Shared {
    fn metrics(&self) -> String {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let open = match self.defect {
            Defect::GaugeNeverFalls => get(&counters.accepted),
            _ => self.peers.lock().expect("sound").len() as u64,
        };
        let gauge = if self.defect == Defect::GaugeIsCounter {
            "counter"
        } else {
            "gauge"
        };
        let rows = [
            ("ws_connections_open", gauge, open),
            (
                "ws_connections_accepted_total",
                "counter",
                get(&counters.accepted),
            ),
            (
                "ws_connections_refused_total",
                "counter",
                get(&counters.refused),
            ),
            (
                "ws_messages_received_total",
                "counter",
                get(&counters.received),
            ),
            ("ws_bytes_received_total", "counter", get(&counters.bytes)),
            ("ws_messages_sent_total", "counter", get(&counters.sent)),
            ("ws_messages_dropped_total", "counter", 0),
            (
                "wse_messages_received_total",
                "counter",
                get(&counters.engine),
            ),
            ("wse_inbound_dropped_total", "counter", 0),
        ];
        let text = |(name, kind, value)| format!("# TYPE {name} {kind}\n{name} {value}\n");
        rows.map(text).concat()
    }

    /// Sends a message to every connection, or to those on the hub.
    pub(super) fn broadcast(
        &self,
        opcode: Opcode,
        payload: &[u8],
        hub_only: bool,
        but: Option<u64>,
    ) {
        let frame = RawFrame::server(opcode, payload).to_vec();
        for peer in self.peers.lock().expect("sound").iter() {
            if (peer.on_hub || !hub_only) && Some(peer.id) != but {
                connection::write(&peer.writer, &frame);
            }
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Arc<Shared>) {
    let defect = shared.defect;
    let request = {
        let _one =
            (defect == Defect::OneUpgradeAtATime).then(|| shared.upgrading.lock().expect("sound"));
        Request::read(&mut stream, defect)
    };
    let Some(request) = request else { return };
    match request.answer(defect) {
        Answer::Upgrade(head) => {
            shared.counters.accepted.fetch_add(1, Ordering::Relaxed);
            connection::run(stream, &head, request, shared);
        }
        Answer::Refuse(status) => {
            if defect != Defect::CountsNoRefusal {
                shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            }
            respond(&mut stream, status, "text/plain", "no");
        }
        Answer::Page => match request.path.as_str() {
            "/healthz" if defect == Defect::HealthSaysNothing => {
                respond(&mut stream, 200, "text/plain", "");
            }
            "/healthz" => respond(&mut stream, 200, "text/plain", "ok\n"),
            "/metrics" => {
                let json = defect == Defect::MetricsAreJson;
                let kind = if json {
                    "application/json"
                } else {
                    "text/plain; version=0.0.4"
                };
                respond(&mut stream, 200, kind, &shared.metrics());
            }
            _ if defect == Defect::OkForEverything => respond(&mut stream, 200, "text/plain", ""),
            _ => respond(&mut stream, 404, "text/plain", ""),
        },
    }
}

struct FakeServer {
    address: SocketAddr,
    terminated: Mutex<Option<Instant>>,
    shared: Arc<Shared>,
}

impl FakeServer {
    /// Has the thread that accepts see that it is over.
    fn stop_accepting(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
        if self.shared.defect != Defect::AcceptsWhileDraining {
            drop(TcpStream::connect(self.address));
        }
    }
}

impl Server for FakeServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn output(&self) -> String {
        match self.shared.defect {
            Defect::NoStartLine => "listening\n".to_owned(),
            _ => "{\"runtime\":\"rust 1.0\"}\n".to_owned(),
        }
    }

    fn terminate(&self) -> Result<(), String> {
        *self.terminated.lock().expect("sound") = Some(Instant::now());
        self.stop_accepting();
        Ok(())
    }

    fn wait(&self, limit: Duration) -> Result<Option<i32>, String> {
        let begun = Instant::now();
        let since = self
            .terminated
            .lock()
            .expect("sound")
            .ok_or("it was not terminated")?;
        let code = if self.shared.defect == Defect::ExitsWith1 {
            1
        } else {
            0
        };
        while begun.elapsed() < limit {
            let idle = self.shared.peers.lock().expect("sound").is_empty();
            let over = since.elapsed() > self.shared.drain;
            if idle || (over && self.shared.defect != Defect::DrainsForever) {
                return Ok(Some(code));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop_accepting();
        for peer in self.shared.peers.lock().expect("sound").iter() {
            connection::end(&peer.writer);
        }
    }
}
