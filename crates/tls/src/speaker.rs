//! The server's side of TLS, without I/O: around what the sink of a calibration says.
//!
//! Its certificate and the key of it come with the program, so the key is no secret. Nobody believes this certificate but
//! the client of a calibration, and that client believes no other.

use std::io::{Read, Write};
use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::speaker::{After, Speaker};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::client::{Client, Settings, SetupError, Trust};
use crate::session::take_all;

/// The name that the certificate is for. Nobody has it (RFC 6761, section 6.4).
const NAME: &str = "sink.invalid";
/// A certificate that its own key has signed, for P-256, valid from 2000 to 2999.
const CERTIFICATE_PEM: &str = include_str!("speaker/certificate.pem");
/// Its key, as PKCS #8.
const KEY_DER: &[u8] = include_bytes!("speaker/key.der");

/// Both sides of a calibration over TLS.
#[derive(Debug, Clone)]
pub struct OwnTls {
    server: Arc<ServerConfig>,
    client: Client,
}

impl OwnTls {
    /// A server with the certificate that comes with the program, and a client that believes this certificate alone.
    ///
    /// # Errors
    /// The library refuses.
    pub fn new() -> Result<Self, SetupError> {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE_PEM.as_bytes())
            .map_err(|error| SetupError::NotPem(format!(": {error}")))?;
        let key = PrivatePkcs8KeyDer::from(KEY_DER);
        let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())?;
        // No client comes a second time.
        server.send_tls13_tickets = 0;
        let client = Client::of(&Settings {
            name: NAME.to_owned(),
            trust: Trust::Only {
                pem: CERTIFICATE_PEM.to_owned(),
            },
            alpn: Vec::new(),
        })?;
        let server = Arc::new(server);
        // If one connection can be made, all can.
        ServerConnection::new(Arc::clone(&server))?;
        Ok(Self { server, client })
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// This speaker on a new connection to the server.
    #[must_use]
    pub fn speaker(&self, inner: Box<dyn Speaker>) -> TlsSpeaker {
        let mut tls = ServerConnection::new(Arc::clone(&self.server))
            .unwrap_or_else(|error| unreachable!("it was possible before: {error}"));
        // What a speaker says at once is written at once.
        tls.set_buffer_limit(None);
        TlsSpeaker {
            tls,
            inner,
            plain: Vec::new(),
            said: Vec::new(),
        }
    }
}

/// Another speaker, encrypted.
pub struct TlsSpeaker {
    tls: ServerConnection,
    inner: Box<dyn Speaker>,
    /// What it hears.
    plain: Vec<u8>,
    /// What it says.
    said: Vec<u8>,
}

impl TlsSpeaker {
    /// Takes the beginning of what came.
    fn take_in(&mut self, bytes: &mut &[u8]) -> After {
        if self.tls.read_tls(bytes).is_err() {
            return After::Close;
        }
        let Ok(state) = self.tls.process_new_packets() else {
            return After::Close;
        };
        self.plain.clear();
        // What there is has been read when it fails, because nothing follows yet.
        let _ = self.tls.reader().read_to_end(&mut self.plain);
        let after = if self.plain.is_empty() {
            After::GoOn
        } else {
            self.inner.heard(&mut self.plain, &mut self.said)
        };
        if state.peer_has_closed() {
            After::Close
        } else {
            after
        }
    }

    /// Encrypts what the inner speaker says, and adds it to `out`.
    fn say(&mut self, out: &mut Vec<u8>) {
        // Without a limit, the library takes everything.
        let taken = self.tls.writer().write_all(&self.said);
        debug_assert!(taken.is_ok(), "{taken:?}");
        self.said.clear();
        take_all(&mut self.tls, out);
    }
}

impl Speaker for TlsSpeaker {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let (mut rest, mut after) = (&*bytes, After::GoOn);
        while !rest.is_empty() && after == After::GoOn {
            after = self.take_in(&mut rest);
        }
        self.say(out);
        if after == After::Close {
            self.tls.send_close_notify();
            take_all(&mut self.tls, out);
        }
        after
    }

    fn unasked(&mut self, now_ns: u64, profile: &Profile, out: &mut Vec<u8>) {
        self.inner.unasked(now_ns, profile, &mut self.said);
        if !self.said.is_empty() {
            self.say(out);
        }
    }
}
