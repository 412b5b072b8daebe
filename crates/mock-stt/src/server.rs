//! Sockets: listening, who answers what, and sessions over WebSocket and TCP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use plimsoll_mock_server::http::{Answer, Connection};
use plimsoll_mock_server::program::{self, Clocks};
use plimsoll_mock_server::request::Request;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::audio::Format;
use crate::config::Config;
use crate::corpus::Corpus;
use crate::dialect::{Dialect, KEPT_HEADERS, Known, Refusal, subprotocol};
use crate::faults::Fault;
use crate::session::{Book, Opening, Session};

mod live;
mod tls;

use live::{Live, Wire};

/// A mock that listens.
#[derive(Debug)]
pub struct Mock {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections share. The lock is never contended, there is one thread, and never held across an await.
#[derive(Debug)]
struct Shared {
    started: Instant,
    config: Config,
    /// Its own address.
    address: SocketAddr,
    at_root: &'static Known,
    /// How it speaks TLS, if it does.
    tls: Option<Arc<rustls::ServerConfig>>,
    book: Mutex<Book>,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book
            .lock()
            .unwrap_or_else(|_| unreachable!("one thread, and no code under the lock panics"))
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn at(&self, ns: u64) -> Instant {
        self.started + Duration::from_nanos(ns)
    }

    fn clocks(&self) -> Clocks {
        Clocks::now(self.started)
    }

    /// The next session: its number, and what is wrong with it.
    fn next_session(&self, known: &Known, request: Option<&Request>) -> Next {
        let book = self.book();
        let counts = &book.stats.counts;
        let number = counts.sessions + counts.sessions_refused;
        let fault = self.config.fault.of(number, self.config.seed);
        let key = self.config.key.expose();
        let is_shown = |request| key.is_empty() || known.is_shown(key, request);
        let is_full =
            self.config.sessions_max > 0 && counts.sessions_open >= self.config.sessions_max;
        let refusal = match fault {
            Some(Fault::Unauthorized) => Some(Refusal::Key),
            Some(Fault::RateLimited) => Some(Refusal::Rate),
            Some(Fault::Capacity) => Some(Refusal::Capacity),
            _ if !request.is_none_or(is_shown) => Some(Refusal::Key),
            _ => is_full.then_some(Refusal::Capacity),
        };
        Next {
            number,
            fault,
            refusal,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Next {
    number: u64,
    fault: Option<Fault>,
    refusal: Option<Refusal>,
}

impl Mock {
    /// Reads the corpus and listens; connections wait until [`Mock::run`]. Needs a current-thread tokio runtime: the busy time that
    /// it reports is that of the runtime's first worker.
    ///
    /// # Errors
    /// One line: the corpus cannot be read, or what the operating system says to listening.
    pub fn bind(config: Config) -> Result<Self, String> {
        let corpus = Corpus::read(&config.corpus).map_err(|error| error.to_string())?;
        Self::with_corpus(config, corpus)
    }

    /// Serves these clips in a thread of its own until the program ends, and returns where it listens: for tests of what talks
    /// to it.
    ///
    /// # Errors
    /// One line: what the operating system says to an event loop, to a thread or to listening.
    pub fn in_a_thread(config: Config, corpus: Corpus) -> Result<SocketAddr, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start its event loop: {error}"))?;
        let (told, address) = mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let mock = Self::with_corpus(config, corpus);
                // Whoever waits no longer has no use for the address.
                let _ = told.send(mock.as_ref().map(Self::address).map_err(Clone::clone));
                if let Ok(mock) = mock {
                    mock.run().await;
                }
            });
        });
        address
            .recv()
            .map_err(|_| "its thread ended before it listened".to_owned())?
    }

    /// The same, with clips that are there.
    ///
    /// # Errors
    /// One line: what the operating system says to listening.
    pub fn with_corpus(config: Config, mut corpus: Corpus) -> Result<Self, String> {
        // The usual formats, so that no session waits until the clips are resampled.
        for rate_hz in [16_000, 24_000] {
            corpus.bank(Format::s16le(rate_hz));
        }
        let at_root = Known::by_name(config.dialect)
            .unwrap_or_else(|| unreachable!("a valid setting names a dialect"));
        let tls = match (&config.cert, &config.cert_key) {
            (Some(cert), Some(key)) => Some(tls::config(cert, key)?),
            (None, None) => None,
            _ => return Err("one of --cert and --cert-key; give both, or none".to_owned()),
        };
        let (listener, address) = program::listen(SocketAddr::new(config.bind, config.port))?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            config,
            address,
            at_root,
            tls,
            book: Mutex::new(Book::new(corpus)),
        });
        Ok(Self {
            listener,
            address,
            shared,
        })
    }

    /// The address that it listens at, with the port that was free where port 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until dropped.
    pub async fn run(self) {
        let serve = |stream| serve(stream, Arc::clone(&self.shared));
        program::accept(&self.listener, "plimsoll-mock-stt", serve).await;
    }
}

/// Serves a connection. Its first byte says what it is: a handshake of TLS, a JSON object, which is Wyoming's, or a request.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // A result must not wait for an acknowledgement. Fails only on a socket that is gone already.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    if !matches!(stream.peek(&mut first).await, Ok(1)) {
        return;
    }
    if let (Some(tls), tls::FIRST_BYTE) = (&shared.tls, first[0]) {
        // The client has been told what was wrong.
        let _ = tls::terminate(Arc::clone(tls), stream, shared.address).await;
        return;
    }
    let mut connection = Connection::keeping(stream, KEPT_HEADERS);
    if first == *b"{" {
        return serve_stream(shared, connection).await;
    }
    while let Some(request) = connection.request().await {
        let known = Known::at(&request, shared.at_root);
        if let Some(known) = known.filter(|_| request.websocket_key.is_some()) {
            return serve_websocket(shared, connection, &request, known).await;
        }
        let answer = control(&shared, &request, known.is_some());
        if connection
            .answer(&answer, request.keep_alive)
            .await
            .is_err()
        {
            return;
        }
        if !request.keep_alive {
            return connection.linger().await;
        }
    }
}

async fn serve_stream(shared: Arc<Shared>, connection: Connection) {
    let dialect = Box::new(crate::dialect::wyoming::Wyoming::default());
    let known = Known::by_name("wyoming").unwrap_or(shared.at_root);
    let next = shared.next_session(known, None);
    begin(shared, connection, dialect, next, Wire::Stream).await;
}

async fn serve_websocket(
    shared: Arc<Shared>,
    mut connection: Connection,
    request: &Request,
    known: &'static Known,
) {
    let next = shared.next_session(known, Some(request));
    let opened = known.open(request);
    let opened = opened.and_then(|dialect| {
        match next.refusal.and_then(|refusal| dialect.refused(refusal)) {
            Some(answer) => Err(answer),
            None => Ok(dialect),
        }
    });
    let dialect = match opened {
        Ok(dialect) => dialect,
        Err(answer) => {
            note_refused(&shared, next);
            if connection.answer(&answer, false).await.is_ok() {
                connection.linger().await;
            }
            return;
        }
    };
    connection.switch_to_websocket(request, subprotocol(request));
    begin(shared, connection, dialect, next, Wire::WebSocket).await;
}

fn note_refused(shared: &Shared, next: Next) {
    let mut book = shared.book();
    book.stats.counts.sessions_refused += 1;
    if let (Some(fault), Some(_)) = (next.fault, next.refusal) {
        book.stats.fault(fault);
    }
}

async fn begin(
    shared: Arc<Shared>,
    connection: Connection,
    dialect: Box<dyn Dialect>,
    next: Next,
    wire: Wire,
) {
    {
        let mut book = shared.book();
        let counts = &mut book.stats.counts;
        counts.sessions += u64::from(next.refusal.is_none());
        counts.sessions_refused += u64::from(next.refusal.is_some());
        counts.sessions_open += 1;
    }
    let opening = Opening {
        number: next.number,
        dialect,
        fault: next.fault,
        refusal: next.refusal,
    };
    let session = Session::new(opening, &shared.config);
    Live::new(Arc::clone(&shared), connection, session, wire)
        .run()
        .await;
    shared.book().stats.counts.sessions_open -= 1;
}

/// Answers what is no session.
fn control(shared: &Shared, request: &Request, is_session: bool) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => Answer::line("200 OK", "ok\n"),
        ("GET", "/stats") => {
            let clocks = shared.clocks();
            Answer::json(&shared.book().stats.report(clocks))
        }
        ("POST", "/stats/reset") => {
            let clocks = shared.clocks();
            shared.book().stats.reset_window(clocks);
            Answer::line("200 OK", "a new window has begun\n")
        }
        _ if is_session => Answer {
            header: Some(("upgrade", "websocket")),
            ..Answer::line("426 Upgrade Required", "this is a WebSocket\n")
        },
        _ => Answer::line("404 Not Found", "no such path\n"),
    }
}
