//! The server that cases are tried on.

use std::cell::OnceCell;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::secret::Secret;
use plimsoll_host::signals::Stop;
use plimsoll_speech::clip::Clip;

use super::Make;
use super::speech::Spoken;
use crate::dialect::{Dialect, OptionError, Options, Transport};

/// The times of a check. Tests of the check have shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How long anything may take that must come. Real recognisers are slow on one core.
    pub patience: Duration,
    /// How long a session that opens without a word of the server is watched for a refusal.
    pub look: Duration,
    /// How long a session is idle.
    pub idle: Duration,
    /// How much faster than its own time audio is sent.
    pub speed: u32,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            look: Duration::from_secs(1),
            // Deepgram closes after 10 s.
            idle: Duration::from_secs(12),
            speed: 1,
        }
    }
}

/// Where a server is, and how it is tried.
#[derive(Debug, Clone)]
pub(super) struct Server<'a> {
    pub(super) address: SocketAddr,
    /// What its clients call it.
    pub(super) host: String,
    pub(super) times: Times,
    pub(super) stop: Option<&'a Stop>,
    pub(super) numbers: &'a AtomicU64,
}

impl Server<'_> {
    /// A number that no other session of this check has.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the user wants no more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::requested)
    }
}

/// So many clips are enough.
const CLIPS: usize = 3;

/// The server, the dialect to speak to it, and what the cases share.
pub(super) struct Site<'a> {
    make: &'a Make,
    /// The user's.
    pub(super) options: Options,
    clips: &'a [Clip],
    pub(super) server: Server<'a>,
    /// The session that several cases are about, once one of them has run it.
    spoken: OnceCell<Result<Spoken, String>>,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        make: &'a Make,
        options: Options,
        clips: &'a [Clip],
        server: Server<'a>,
    ) -> Self {
        Self {
            make,
            options,
            clips,
            server,
            spoken: OnceCell::new(),
        }
    }

    /// The user's key.
    pub(super) fn key(&self) -> Option<&Secret> {
        self.options.key.as_ref().map(|key| &key.value)
    }

    /// The dialect with the user's options.
    pub(super) fn dialect(&self) -> Result<Box<dyn Dialect>, String> {
        self.dialect_of(&self.options)
            .map_err(|error| error.to_string())
    }

    /// The dialect with other options.
    pub(super) fn dialect_of(&self, options: &Options) -> Result<Box<dyn Dialect>, OptionError> {
        (self.make)(options)
    }

    /// One of the clips, from 0; where there are fewer, one is said again.
    pub(super) fn clip(&self, number: usize) -> &'a Clip {
        &self.clips[number % self.clips.len().min(CLIPS)]
    }

    /// The spoken session; it is run at most once.
    pub(super) fn spoken(&self) -> Result<&Spoken, String> {
        let spoken = self.spoken.get_or_init(|| Spoken::run(self));
        spoken.as_ref().map_err(Clone::clone)
    }
}

/// What a URL says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    /// Beyond the root.
    pub(super) path: Option<String>,
}

impl Place {
    /// Reads `ws://HOST[:PORT][/PATH]`, or `tcp://HOST:PORT` where the dialect is a stream.
    pub(super) fn of_url(url: &str, transport: Transport) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let form = match transport {
            Transport::Tcp => "tcp://HOST:PORT",
            Transport::WebSocket => "ws://HOST:PORT",
        };
        let fits = match transport {
            Transport::Tcp => scheme == "tcp",
            Transport::WebSocket => ["ws", "http"].contains(&scheme),
        };
        if ["wss", "https"].contains(&scheme) {
            return Err(format!(
                "{url}: a check of a dialect does not speak TLS; give the server's port without TLS as {form}"
            ));
        }
        if !fits {
            return Err(format!(
                "{url} is not a URL of a server of this dialect: use {form}"
            ));
        }
        let (host, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let with_port = match (has_port, transport) {
            (true, _) => host.to_owned(),
            (false, Transport::WebSocket) => format!("{host}:80"),
            (false, Transport::Tcp) => return Err(format!("{url} has no port: use {form}")),
        };
        let resolved = with_port.to_socket_addrs();
        let mut addresses = resolved.map_err(|error| format!("{url}: {error}"))?;
        Ok(Self {
            address: addresses
                .next()
                .ok_or_else(|| format!("{url} has no address"))?,
            host: host.to_owned(),
            path: (!["", "/"].contains(&path)).then(|| path.to_owned()),
        })
    }

    /// A server of this machine.
    pub(super) fn of_address(address: SocketAddr) -> Self {
        Self {
            address,
            host: address.to_string(),
            path: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_fits_its_dialect_or_is_refused_with_the_form_that_does() {
        let place = |url| Place::of_url(url, Transport::WebSocket);
        let found = place("ws://127.0.0.1:3000/v1/listen").unwrap();
        assert_eq!(found.address.port(), 3000);
        assert_eq!(found.path.as_deref(), Some("/v1/listen"));
        assert_eq!(place("http://127.0.0.1/").unwrap().address.port(), 80);
        assert_eq!(place("http://127.0.0.1/").unwrap().path, None);
        assert_eq!(place("ws://[::1]").unwrap().address.port(), 80);
        let stream = |url| Place::of_url(url, Transport::Tcp);
        assert_eq!(stream("tcp://127.0.0.1:9").unwrap().host, "127.0.0.1:9");
        for (refused, remedy) in [
            (place("tcp://127.0.0.1:9"), "ws://HOST:PORT"),
            (place("127.0.0.1:9"), "ws://HOST:PORT"),
            (place("wss://127.0.0.1:9"), "does not speak TLS"),
            (stream("ws://127.0.0.1:9"), "tcp://HOST:PORT"),
            (stream("tcp://127.0.0.1"), "has no port"),
        ] {
            let told = refused.unwrap_err();
            assert!(told.contains(remedy) && !told.contains('\n'), "{told}");
        }
    }
}
