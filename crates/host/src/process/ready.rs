//! What shows that a child is ready.

use std::fmt;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::http;
use crate::talk::talk;

/// Time between two GETs. How long a child took is a result, so it must be exact.
const GET_POLL: Duration = Duration::from_millis(1);

/// Time between two talks. A server may write each of them into its log.
const ASK_POLL: Duration = Duration::from_millis(10);

/// The timeout of a single GET.
const GET_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout of a single talk, in which a server may have to make something for the first time.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// What shows that a child is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// A GET of this URL is answered with status 200.
    Get(String),
    /// What is asked over a connection to this address is answered as it should be.
    Asked(SocketAddr, Ask),
}

/// Asks over this connection. The error is one line that says why the target is not ready.
type Question = dyn Fn(&mut TcpStream) -> Result<(), String> + Send + Sync;

/// What a server is asked over a connection of its own. The error is one line that says why it is not ready.
#[derive(Clone)]
pub struct Ask(Arc<Question>);

impl Ask {
    /// Asks with this function. It need not look at the time: the connection ends soon.
    pub fn new(ask: impl Fn(&mut TcpStream) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask")
    }
}

/// What a look shows.
pub(super) enum Look {
    Ready,
    /// Somebody is there, but not ready: how it answered.
    NotYet(String),
    Nobody,
}

impl Ready {
    /// The same as [`Ready::Get`].
    pub fn get(url: impl Into<String>) -> Self {
        Self::Get(url.into())
    }

    pub(super) fn look(&self) -> Look {
        match self {
            Self::Get(url) => match http::get(url, GET_TIMEOUT) {
                Ok(response) if response.status == 200 => Look::Ready,
                Ok(response) => Look::NotYet(format!("the last answer was {}", response.status)),
                Err(_) => Look::Nobody,
            },
            Self::Asked(at, ask) => match talk(*at, ASK_TIMEOUT, |stream| (ask.0)(stream)) {
                Ok(Ok(())) => Look::Ready,
                Ok(Err(why)) => {
                    Look::NotYet(format!("the last answer: {}", http::first_line(&why)))
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    Look::NotYet(format!("no answer within {ASK_TIMEOUT:?}"))
                }
                Err(_) => Look::Nobody,
            },
        }
    }

    /// Time between two looks.
    pub(super) fn poll(&self) -> Duration {
        match self {
            Self::Get(_) => GET_POLL,
            Self::Asked(..) => ASK_POLL,
        }
    }
}

/// For a message.
impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(url) => write!(f, "GET {url}"),
            Self::Asked(at, _) => write!(f, "asked at {at}"),
        }
    }
}
