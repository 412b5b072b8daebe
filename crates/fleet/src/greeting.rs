//! From a TCP connection to two sides that know each other: TLS, the proofs of the token, and what each says of itself.
//!
//! The agent proves first and says who it is. The coordinator proves as well and says what it wants, or refuses in words.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConnection, Connection as Tls, ServerConnection};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::{BadFrame, Decoder, Frame, encode};
use crate::tls::{Fingerprint, Identity, client_config, lists};
use crate::token::{Prover, Token};

/// A greeting that takes longer is none.
const TIME: Duration = Duration::from_secs(10);
/// The label under which TLS exports what the proofs are about (RFC 8446, section 7.5).
const LABEL: &[u8] = b"EXPORTER-plimsoll-fleet";

/// Why two sides did not come together.
#[derive(Debug, thiserror::Error)]
pub enum GreetError {
    /// The connection failed, or the other side was silent for too long.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// TLS failed.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The other side is somebody else: its certificate is not the pinned one.
    #[error("it shows another certificate than --fingerprint says")]
    Fingerprint,
    /// What came is no greeting.
    #[error("it sends {0}; is it the port of a coordinator?")]
    Bytes(#[from] BadFrame),
    /// It has another token.
    #[error("it does not prove that it has this token")]
    Proof,
    /// The other side does not want us, and says why.
    #[error("{0}")]
    Refused(Refusal),
}

/// Why a coordinator does not want an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    why: String,
    for_now: bool,
}

impl Refusal {
    /// It will be the same at the next attempt.
    #[must_use]
    pub fn for_good(why: String) -> Self {
        let for_now = false;
        Self { why, for_now }
    }

    /// It may be otherwise later.
    #[must_use]
    pub fn for_now(why: String) -> Self {
        let for_now = true;
        Self { why, for_now }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.why)
    }
}

impl GreetError {
    /// Whether it would be the same at the next attempt.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused(refusal) => !refusal.for_now,
            Self::Fingerprint | Self::Proof => true,
            Self::Io(_) | Self::Tls(_) | Self::Bytes(_) => false,
        }
    }

    fn of_tls(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
                Self::Fingerprint
            }
            error => Self::Tls(error),
        }
    }

    /// The library hands its own errors on in those of the stream.
    fn of_io(error: std::io::Error) -> Self {
        match error.downcast::<rustls::Error>() {
            Ok(error) => Self::of_tls(error),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let why = "it did not answer in time";
                std::io::Error::new(ErrorKind::TimedOut, why).into()
            }
            Err(error) => Self::Io(error),
        }
    }
}

/// What one side says first.
#[derive(Debug, Serialize, Deserialize)]
struct Said<T> {
    proof: String,
    said: Option<T>,
    refused: Option<Refusal>,
}

/// A connection of two sides that know each other.
#[derive(Debug)]
pub struct Channel {
    pub(crate) stream: TcpStream,
    pub(crate) tls: Tls,
    pub(crate) decoder: Decoder,
}

impl Channel {
    /// Where the other side is.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.stream.peer_addr().ok().map(|address| address.ip())
    }

    /// Tells whether the certificate that the other side showed lists an address.
    pub fn listed(&self) -> impl Fn(IpAddr) -> bool + Send + 'static {
        let shown = self.tls.peer_certificates();
        let shown = shown.and_then(|certificates| certificates.first());
        let shown: Option<CertificateDer<'static>> = shown.map(|shown| shown.clone().into_owned());
        move |address| shown.as_ref().is_some_and(|shown| lists(shown, address))
    }
}

/// The coordinator's side. `decide` hears what the agent says of itself, and answers or refuses.
///
/// # Errors
/// They did not come together.
pub fn greet_agent<A: DeserializeOwned, C: Serialize>(
    stream: TcpStream,
    identity: &Identity,
    token: &Token,
    decide: impl FnOnce(A) -> Result<C, Refusal>,
) -> Result<Channel, GreetError> {
    let tls = ServerConnection::new(std::sync::Arc::clone(&identity.config))?;
    let mut greeting = Greeting::begin(stream, tls.into())?;
    let exported = greeting.exported()?;
    let heard: Said<A> = greeting.hear()?;
    let proven = token.is_proven(Prover::Agent, &exported, &heard.proof);
    let answer = match heard.said {
        Some(said) if proven => decide(said),
        _ => Err(Refusal::for_good("this agent has another token".to_owned())),
    };
    let (said, refused) = match answer {
        Ok(said) => (Some(said), None),
        Err(why) => (None, Some(why)),
    };
    let proof = if proven {
        token.proof(Prover::Coordinator, &exported)
    } else {
        String::new()
    };
    greeting.say(&Said {
        proof,
        said,
        refused: refused.clone(),
    })?;
    match refused {
        None => greeting.channel(),
        Some(_) if !proven => Err(GreetError::Proof),
        Some(why) => Err(GreetError::Refused(why)),
    }
}

/// The agent's side. Says `about` of itself and returns what the coordinator answers.
///
/// # Errors
/// They did not come together.
pub fn greet_coordinator<A: Serialize, C: DeserializeOwned>(
    stream: TcpStream,
    pinned: Option<Fingerprint>,
    token: &Token,
    about: A,
) -> Result<(C, Channel), GreetError> {
    let peer = stream.peer_addr()?.ip();
    let tls = ClientConnection::new(client_config(pinned)?, ServerName::IpAddress(peer.into()))?;
    let mut greeting = Greeting::begin(stream, tls.into())?;
    let exported = greeting.exported()?;
    greeting.say(&Said {
        proof: token.proof(Prover::Agent, &exported),
        said: Some(about),
        refused: None,
    })?;
    let heard: Said<C> = greeting.hear()?;
    if let Some(why) = heard.refused {
        return Err(GreetError::Refused(why));
    }
    if !token.is_proven(Prover::Coordinator, &exported, &heard.proof) {
        return Err(GreetError::Proof);
    }
    let said = heard.said.ok_or(BadFrame::Nonsense)?;
    Ok((said, greeting.channel()?))
}

fn closed() -> GreetError {
    let why = "it closed the connection";
    std::io::Error::new(ErrorKind::UnexpectedEof, why).into()
}

/// A channel that is not one yet: everything blocks, and for so long only.
struct Greeting {
    channel: Channel,
    ends_at: Instant,
}

impl Greeting {
    fn begin(stream: TcpStream, tls: Tls) -> Result<Self, GreetError> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let mut greeting = Self {
            channel: Channel {
                stream,
                tls,
                decoder: Decoder::default(),
            },
            ends_at: Instant::now() + TIME,
        };
        while greeting.channel.tls.is_handshaking() {
            greeting.hurry()?;
            let Channel { stream, tls, .. } = &mut greeting.channel;
            tls.complete_io(stream).map_err(GreetError::of_io)?;
        }
        Ok(greeting)
    }

    /// A side that sends a byte now and then does not hold us for longer than the others.
    fn hurry(&self) -> Result<(), GreetError> {
        let left = self.ends_at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(GreetError::of_io(ErrorKind::TimedOut.into()));
        }
        let stream = &self.channel.stream;
        stream.set_read_timeout(Some(left))?;
        stream.set_write_timeout(Some(left))?;
        Ok(())
    }

    /// What TLS exports for this connection alone.
    fn exported(&self) -> Result<[u8; 32], GreetError> {
        let tls = &self.channel.tls;
        Ok(tls.export_keying_material([0; 32], LABEL, None)?)
    }

    fn say<T: Serialize>(&mut self, said: &T) -> Result<(), GreetError> {
        self.hurry()?;
        let json = serde_json::to_vec(said).map_err(std::io::Error::from)?;
        let bytes = encode(&Frame::Message(json))?;
        let Channel { stream, tls, .. } = &mut self.channel;
        tls.writer().write_all(&bytes)?;
        while tls.wants_write() {
            tls.write_tls(stream).map_err(GreetError::of_io)?;
        }
        Ok(())
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, GreetError> {
        loop {
            if let Some(frame) = self.channel.decoder.next_frame()? {
                let Frame::Message(json) = frame else {
                    return Err(BadFrame::Nonsense.into());
                };
                return serde_json::from_slice(&json).map_err(|_| BadFrame::Nonsense.into());
            }
            self.hurry()?;
            let Channel {
                stream,
                tls,
                decoder,
            } = &mut self.channel;
            let mut piece = [0; 4096];
            match tls.reader().read(&mut piece) {
                Ok(0) => return Err(closed()),
                Ok(length) => decoder.push(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if tls.read_tls(stream).map_err(GreetError::of_io)? == 0 {
                        return Err(closed());
                    }
                    tls.process_new_packets().map_err(GreetError::of_tls)?;
                }
                Err(error) => return Err(GreetError::of_io(error)),
            }
        }
    }

    fn channel(self) -> Result<Channel, GreetError> {
        let stream = &self.channel.stream;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        stream.set_nonblocking(true)?;
        Ok(self.channel)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    type Met = (
        Result<Channel, GreetError>,
        Result<(String, Channel), GreetError>,
    );

    /// Both sides meet, with these tokens and this pin.
    fn meet(
        identity: &Identity,
        tokens: (&Token, &Token),
        pin: Option<Fingerprint>,
        decide: impl FnOnce(u32) -> Result<String, Refusal> + Send,
    ) -> Met {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::scope(|scope| {
            let coordinator = scope.spawn(move || {
                let (stream, _) = listener.accept().expect("an agent");
                greet_agent(stream, identity, tokens.0, decide)
            });
            let stream = TcpStream::connect(address).expect("it listens");
            let agent = greet_coordinator(stream, pin, tokens.1, 7_u32);
            (coordinator.join().expect("no panic"), agent)
        })
    }

    fn identity() -> Identity {
        Identity::make(&["127.0.0.9".parse().expect("an address")]).expect("a certificate")
    }

    #[test]
    fn those_with_one_token_meet() {
        let (identity, token) = (identity(), Token::random().expect("random"));
        for pin in [None, Some(identity.fingerprint())] {
            let decide = |said| Ok(format!("welcome {said}"));
            let (coordinator, agent) = meet(&identity, (&token, &token), pin, decide);
            let (welcome, channel) = agent.expect("they meet");
            assert_eq!(welcome, "welcome 7");
            assert!(coordinator.is_ok());
            let listed = channel.listed();
            assert!(listed("127.0.0.9".parse().expect("an address")));
            assert!(!listed("127.0.0.8".parse().expect("an address")));
        }
    }

    #[test]
    fn a_wrong_token_a_wrong_certificate_and_a_refusal_are_told() {
        let (identity, token) = (identity(), Token::random().expect("random"));
        let other = Token::random().expect("random");
        let never = |_| -> Result<String, Refusal> { panic!("nobody has proven anything") };
        let (coordinator, agent) = meet(&identity, (&token, &other), None, never);
        assert!(matches!(coordinator, Err(GreetError::Proof)));
        let error = agent.expect_err("another token");
        assert!(
            error.is_final() && error.to_string().contains("another token"),
            "{error}"
        );

        let another = self::identity().fingerprint();
        let (coordinator, agent) = meet(&identity, (&token, &token), Some(another), never);
        assert!(coordinator.is_err());
        let error = agent.expect_err("another certificate");
        assert!(matches!(error, GreetError::Fingerprint), "{error}");

        for (refusal, is_final) in [
            (Refusal::for_good("not you".to_owned()), true),
            (Refusal::for_now("not you".to_owned()), false),
        ] {
            let (coordinator, agent) = meet(&identity, (&token, &token), None, |_| Err(refusal));
            assert!(matches!(coordinator, Err(GreetError::Refused(_))));
            let error = agent.expect_err("refused");
            assert_eq!(
                (error.to_string().as_str(), error.is_final()),
                ("not you", is_final)
            );
        }
    }

    /// A coordinator that lets everybody in without the token.
    #[test]
    fn an_agent_obeys_nobody_who_does_not_prove_the_token() {
        let (identity, token) = (identity(), Token::random().expect("random"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().expect("an agent");
                let tls = ServerConnection::new(std::sync::Arc::clone(&identity.config));
                let mut greeting =
                    Greeting::begin(stream, tls.expect("TLS").into()).expect("a greeting");
                let _: Said<u32> = greeting.hear().expect("it says something");
                let said = Said {
                    proof: "00".repeat(32),
                    said: Some("obey"),
                    refused: None,
                };
                greeting.say(&said).expect("said");
            });
            let stream = TcpStream::connect(address).expect("it listens");
            let obeyed = greet_coordinator::<_, String>(stream, None, &token, 7_u32);
            assert!(matches!(obeyed, Err(GreetError::Proof)));
        });
    }

    #[test]
    fn garbage_on_the_port_is_an_error_and_no_more() {
        let (identity, token) = (identity(), Token::random().expect("random"));
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 600], &[0xff; 40], b""] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(address).expect("it listens");
                    stream.write_all(garbage).expect("sent");
                });
                let (stream, _) = listener.accept().expect("somebody");
                let met = greet_agent(stream, &identity, &token, |_: u32| Ok(()));
                assert!(met.is_err());
            });
        }
    }
}
