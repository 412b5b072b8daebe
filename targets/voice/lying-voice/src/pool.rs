//! Connections to providers that speak, kept open between requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::task::Task;

/// A connection, closed when dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    place: String,
    sender: SendRequest<Full<Bytes>>,
    _driver: Task,
}

impl Connection {
    async fn open(place: &str) -> Option<Self> {
        let stream = TcpStream::connect(place).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await.ok()?;
        let driver = Task::spawn(async {
            // How it ended is seen by whoever waits for an answer.
            let _ = driver.await;
        });
        Some(Self { place: place.to_owned(), sender, _driver: driver })
    }
}

/// Connections that wait for their next request, by place.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<HashMap<String, Vec<Connection>>>);

impl Pool {
    /// Asks; `None` if there was no answer.
    pub(crate) async fn ask(
        &self,
        place: &str,
        request: Request<Full<Bytes>>,
    ) -> Option<(Response<Incoming>, Connection)> {
        let mut connection = match self.waiting(place) {
            Some(connection) => connection,
            None => Connection::open(place).await?,
        };
        let response = connection.sender.send_request(request).await.ok()?;
        Some((response, connection))
    }

    /// Takes back a connection whose answer was read to its end.
    pub(crate) fn put(&self, connection: Connection) {
        self.connections().entry(connection.place.clone()).or_default().push(connection);
    }

    fn waiting(&self, place: &str) -> Option<Connection> {
        let mut connections = self.connections();
        let waiting = connections.get_mut(place)?;
        // Those that the provider has closed meanwhile are dropped.
        while let Some(connection) = waiting.pop() {
            if connection.sender.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, Vec<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
