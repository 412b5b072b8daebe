//! Where a server is that is known by its URL only.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server may take to accept a connection before it counts as absent.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What the servers of a suite speak, and so how their URLs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTTP or WebSocket: `ws://HOST[:PORT][/PATH]`, or the same with `http`.
    Http,
    /// Bytes of its own: `tcp://HOST:PORT`.
    Tcp,
}

impl Form {
    /// The usual way to write such a URL.
    fn example(self) -> &'static str {
        match self {
            Self::Http => "ws://HOST:PORT or http://HOST:PORT",
            Self::Tcp => "tcp://HOST:PORT",
        }
    }
}

/// What a URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The first address of the host.
    pub address: SocketAddr,
    /// Host and port as they are written.
    pub host: String,
    /// Path and query beyond the root.
    pub path: Option<String>,
}

impl Location {
    /// Reads a URL.
    ///
    /// # Errors
    /// It does not have this form, or its host has no address; a text for the user, with the remedy.
    pub fn of_url(url: &str, form: Form) -> Result<Self, String> {
        let example = form.example();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        if ["wss", "https"].contains(&scheme) {
            return Err(format!(
                "{url}: a check does not speak TLS; give the server's port without TLS as {example}"
            ));
        }
        let fits = match form {
            Form::Http => ["ws", "http"].contains(&scheme),
            Form::Tcp => scheme == "tcp",
        };
        if !fits {
            return Err(format!(
                "{url} is no URL that can be checked: use {example}"
            ));
        }
        let (host, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let with_port = match (has_port, form) {
            (true, _) => host.to_owned(),
            (false, Form::Http) => format!("{host}:80"),
            (false, Form::Tcp) => return Err(format!("{url} has no port: use {example}")),
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
    #[must_use]
    pub fn of_address(address: SocketAddr) -> Self {
        Self {
            address,
            host: address.to_string(),
            path: None,
        }
    }

    /// Connects once, and ends the connection.
    ///
    /// # Errors
    /// Nobody accepts it.
    pub fn connect(&self) -> std::io::Result<()> {
        TcpStream::connect_timeout(&self.address, CONNECT_WITHIN).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_form_or_is_refused_with_the_remedy() {
        let place = |url| Location::of_url(url, Form::Http);
        let found = place("ws://127.0.0.1:3000/v1/listen").unwrap();
        assert_eq!(found.address, "127.0.0.1:3000".parse().unwrap());
        assert_eq!(found.host, "127.0.0.1:3000");
        assert_eq!(found.path.as_deref(), Some("/v1/listen"));
        assert_eq!(place("http://127.0.0.1/").unwrap().address.port(), 80);
        assert_eq!(place("http://127.0.0.1/").unwrap().path, None);
        assert_eq!(place("ws://[::1]").unwrap().address.port(), 80);
        assert_eq!(place("http://[::1]:9/").unwrap().address.port(), 9);
        let stream = |url| Location::of_url(url, Form::Tcp);
        assert_eq!(stream("tcp://127.0.0.1:9").unwrap().host, "127.0.0.1:9");
        for (refused, remedy) in [
            (place("tcp://127.0.0.1:9"), "ws://HOST:PORT"),
            (place("127.0.0.1:9"), "ws://HOST:PORT"),
            (place("wss://127.0.0.1:9"), "does not speak TLS"),
            (place("https://127.0.0.1"), "does not speak TLS"),
            (stream("ws://127.0.0.1:9"), "tcp://HOST:PORT"),
            (stream("tcp://127.0.0.1"), "has no port"),
        ] {
            let told = refused.unwrap_err();
            assert!(told.contains(remedy) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_server_is_there_or_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let place = Location::of_address(listener.local_addr().expect("an address"));
        assert!(place.connect().is_ok());
        let (_kept, address) = plimsoll_testing::nobody_listens();
        assert!(Location::of_address(address).connect().is_err());
    }
}
