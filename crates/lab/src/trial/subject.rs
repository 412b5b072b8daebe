//! What is measured: a target that we start anew for each trial, or one that already runs.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use plimsoll_core::record::Tls;
use plimsoll_core::secret::{Secret, redacted_url};
use plimsoll_host::resources::Source;
use plimsoll_tls::{Client, Settings, SetupError};
use plimsoll_workload::Refusal;

use super::conditions::Conditions;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// What is measured.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A target with a manifest, started anew for each trial on its own cores.
    Started(Box<Manifest>),
    /// A server that the user runs.
    Running {
        /// Where it listens.
        url: TargetUrl,
        /// Where its resources are read, if the user named it.
        resources: Option<Source>,
    },
}

impl Subject {
    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Started(manifest) => &manifest.name,
            Self::Running { url, .. } => &url.text,
        }
    }

    /// Which variant of its program it is, if its manifest says it.
    #[must_use]
    pub fn variant(&self) -> Option<&str> {
        match self {
            Self::Started(manifest) => manifest.variant(),
            Self::Running { .. } => None,
        }
    }
}

/// A WebSocket URL, resolved.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetUrl {
    /// As the user gave it, without secrets. This is its name in results.
    pub text: String,
    /// As the user gave it.
    given: Secret,
    /// `name:port`, for the Host field.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Whether connections use TLS.
    pub secure: bool,
    /// Where to connect.
    pub address: SocketAddr,
}

/// Omits the secrets that its query may hold.
impl fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetUrl({} at {})", self.text, self.address)
    }
}

impl TargetUrl {
    /// Reads `ws://host:port/path` (or `http://`), `wss://host:port/path` (or `https://`), or `tcp://host:port`. Without a path, it uses
    /// `default_path`.
    ///
    /// # Errors
    /// One line: not such a URL, or a name that does not resolve.
    pub fn parse(text: &str, default_path: &str) -> Result<Self> {
        let shown = redacted_url(text);
        let refuse = |why: &str| Error::Usage(format!("--url {shown}: {why}"));
        let (secure, rest) = match text.split_once("://") {
            Some(("ws" | "http" | "tcp", rest)) => (false, rest),
            Some(("wss" | "https", rest)) => (true, rest),
            _ => {
                return Err(refuse(
                    "no URL that can be measured; write ws://HOST:PORT/PATH, wss:// for TLS, or tcp://HOST:PORT for a broker",
                ));
            }
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, default_path),
        };
        if authority.contains('@') {
            return Err(refuse(
                "the user and password in a URL are not sent; put them into a header, for example Authorization in --header-file FILE",
            ));
        }
        if authority.is_empty() {
            return Err(refuse("names no host; write ws://HOST:PORT/PATH"));
        }
        let usual_port = match (text.starts_with("tcp:"), secure) {
            (true, _) => None,
            (false, true) => Some(443),
            (false, false) => Some(80),
        };
        let (host, address) = resolved(authority, usual_port).map_err(|why| refuse(&why))?;
        Ok(Self {
            text: shown,
            given: Secret::new(text),
            host,
            path: if path == "/" { default_path } else { path }.to_owned(),
            secure,
            address,
        })
    }

    /// The same URL, for a load with another default path.
    ///
    /// # Errors
    /// Its host no longer resolves.
    pub fn with_default_path(&self, default_path: &str) -> Result<Self> {
        Self::parse(self.given.expose(), default_path)
    }

    /// The URL of a target that we start, at this address.
    #[must_use]
    pub fn at(address: SocketAddr, path: &str) -> Self {
        let host = address.to_string();
        Self {
            given: Secret::new(format!("ws://{host}{path}")),
            text: format!("ws://{host}{path}"),
            path: path.to_owned(),
            secure: false,
            address,
            host,
        }
    }

    /// How connections use TLS; `None` if they do not.
    pub(super) fn tls(&self, conditions: &Conditions) -> Option<Settings> {
        let alpn = conditions.plan.alpn().iter();
        self.secure.then(|| Settings {
            name: conditions
                .sni
                .clone()
                .unwrap_or_else(|| self.name().to_owned()),
            trust: conditions.trust.clone(),
            alpn: alpn.map(ToString::to_string).collect(),
        })
    }

    /// The host without its port. An IPv6 address stands in brackets only in a URL.
    fn name(&self) -> &str {
        let name = self.host.rsplit_once(':').map_or("", |(name, _)| name);
        name.trim_start_matches('[').trim_end_matches(']')
    }

    /// Checks that something listens there and, with TLS, that client and server agree. Returns what they agree on.
    ///
    /// # Errors
    /// One line if nothing listens, or if they do not agree.
    pub(super) fn must_answer(&self, conditions: &Conditions) -> Result<Option<Tls>> {
        let refuse =
            |why: &str| Error::Usage(format!("nothing can be measured at {}: {why}", self.text));
        let lost = |error: std::io::Error| {
            refuse(&format!(
                "{error}; start the server first, or correct --url"
            ))
        };
        let plan = &conditions.plan;
        let to = plan.let_in(conditions.endpoint(self))?;
        let mut stream =
            TcpStream::connect_timeout(&self.address, CONNECT_TIMEOUT).map_err(lost)?;
        for limit in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            limit(&stream, Some(CONNECT_TIMEOUT)).map_err(lost)?;
        }
        let not_taken = |refusal: Refusal| refuse(&refusal.to_string());
        let Some(settings) = self.tls(conditions) else {
            plan.meets(&to, &mut stream).map_err(not_taken)?;
            return Ok(None);
        };
        let mut met = Ok(());
        let greeted = client(&settings)?.greet(&mut stream, |stream| {
            met = plan.meets(&to, stream);
        });
        let agreed = greeted.map_err(|error| {
            let remedy = if error.is_of_authority() {
                "give the certificate of its CA with --tls-ca FILE, or verify nothing with --tls-insecure"
            } else if error.is_of_certificate() {
                "use a URL that the certificate is for, name the host that it is for with --sni NAME, correct the certificate, or verify nothing with --tls-insecure"
            } else {
                "if the server has no TLS there, write ws:// instead of wss://"
            };
            refuse(&format!("{error}; {remedy}"))
        })?;
        met.map_err(not_taken)?;
        Ok(Some(Tls {
            sni: conditions.sni.clone(),
            ..agreed
        }))
    }
}

/// The host of a URL with its port, which is the usual one if it names none, and where that is.
///
/// # Errors
/// A clause: it names no port and there is no usual one, or it does not resolve.
pub fn resolved(
    authority: &str,
    usual_port: Option<u16>,
) -> std::result::Result<(String, SocketAddr), String> {
    // An IPv6 address has colons of its own, within brackets.
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
    let host = match usual_port {
        _ if has_port => authority.to_owned(),
        Some(port) => format!("{authority}:{port}"),
        None => return Err("names no port; write tcp://HOST:PORT".to_owned()),
    };
    let mut addresses = host
        .to_socket_addrs()
        .map_err(|error| format!("the host does not resolve: {error}"))?;
    let address = addresses.next();
    let address = address.ok_or_else(|| "the host has no address".to_owned())?;
    Ok((host, address))
}

/// The client with these settings.
///
/// # Errors
/// One line: the host is no name, or no CA can be used.
pub(super) fn client(settings: &Settings) -> Result<Client> {
    Client::of(settings).map_err(|error| {
        Error::Usage(match error {
            SetupError::NotPem(_) | SetupError::Authority(_) => format!("--tls-ca: {error}"),
            SetupError::NobodyToBelieve => format!(
                "{error}; give the server's CA with --tls-ca FILE, or verify nothing with --tls-insecure"
            ),
            SetupError::Name(_) | SetupError::Library(_) => format!("--url: {error}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = TargetUrl::parse("ws://127.0.0.1:3000/a?b=c", "/ws/stt").unwrap();
        assert_eq!(
            (url.host.as_str(), url.path.as_str()),
            ("127.0.0.1:3000", "/a?b=c")
        );
        assert_eq!(url.address.port(), 3000);
        let bare = TargetUrl::parse("ws://127.0.0.1", "/ws/stt").unwrap();
        assert_eq!(
            (bare.host.as_str(), bare.path.as_str()),
            ("127.0.0.1:80", "/ws/stt")
        );
        let six = TargetUrl::parse("ws://[::1]:99/", "/x").unwrap();
        assert_eq!((six.address.port(), six.path.as_str()), (99, "/x"));
        assert!(!url.secure && !six.secure);
    }

    #[test]
    fn a_url_with_tls_has_another_port_and_a_name_to_verify() {
        for (text, host, name) in [
            ("wss://127.0.0.1", "127.0.0.1:443", "127.0.0.1"),
            ("https://localhost:8443/", "localhost:8443", "localhost"),
            ("wss://[::1]:99/", "[::1]:99", "::1"),
        ] {
            let url = TargetUrl::parse(text, "/x").unwrap();
            assert!(url.secure && url.path == "/x");
            assert_eq!((url.host.as_str(), url.name()), (host, name));
            let settings = url.tls(&crate::find::tests::conditions()).unwrap();
            assert_eq!((settings.name.as_str(), settings.alpn.len()), (name, 1));
            let mut conditions = crate::find::tests::conditions();
            conditions.sni = Some("chat.example".to_owned());
            let settings = url.tls(&conditions).unwrap();
            assert_eq!(settings.name, "chat.example");
        }
    }

    #[test]
    fn a_url_shows_no_secret() {
        let url = TargetUrl::parse("ws://127.0.0.1:3000/a?token=canary", "/").unwrap();
        assert_eq!(url.text, "ws://127.0.0.1:3000/a?token=[redacted]");
        assert_eq!(url.path, "/a?token=canary", "the server is asked with it");
        assert_eq!(url.with_default_path("/x").unwrap().path, url.path);
        assert!(!format!("{url:?}").contains("canary"));
        for text in ["ws://u:canary@127.0.0.1:1/", "wss:///?token=canary"] {
            let error = TargetUrl::parse(text, "/").unwrap_err().to_string();
            assert!(
                !error.contains("canary") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn other_urls_are_refused_in_one_line_with_the_remedy() {
        let without_port = TargetUrl::parse("tcp://127.0.0.1", "/").unwrap_err();
        assert!(without_port.to_string().contains("tcp://HOST:PORT"));
        assert_eq!(
            TargetUrl::parse("tcp://127.0.0.1:4222", "/")
                .unwrap()
                .address
                .port(),
            4222
        );
        for text in ["localhost:3000", "wss:///x", "ws:///x", "ftp://h/"] {
            let error = TargetUrl::parse(text, "/").unwrap_err().to_string();
            assert!(
                error.contains("ws://HOST:PORT/PATH") && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
