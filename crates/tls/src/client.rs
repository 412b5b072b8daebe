//! Whom the client believes, and what it offers: the same for all sessions of a trial.

use std::io::{Read, Write};
use std::sync::Arc;

use plimsoll_core::record::Tls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    ProtocolVersion, RootCertStore, SignatureScheme, Stream,
};
use serde::{Deserialize, Serialize};

use crate::reason::Why;

/// All that a process has to know to make connections. Client processes get it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The name or the address that the certificate must be for, without a port. A name is sent to the server (SNI).
    pub name: String,
    /// Whom the client believes.
    pub trust: Trust,
    /// The protocols that it offers (ALPN), the best first: `http/1.1`, `h2`.
    pub alpn: Vec<String>,
}

/// Whom the client believes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// The CAs that this machine trusts, and further ones.
    Authorities {
        /// The certificates of further CAs, in PEM.
        added_pem: Option<String>,
    },
    /// These CAs and no others, whatever this machine trusts.
    Only {
        /// Their certificates, in PEM. One that its own key has signed is trusted as it is.
        pem: String,
    },
    /// Anyone: certificates are not verified.
    Anyone,
}

impl Default for Trust {
    /// The CAs that this machine trusts.
    fn default() -> Self {
        Self::Authorities { added_pem: None }
    }
}

/// Why a server could not be greeted.
#[derive(Debug, thiserror::Error)]
pub enum GreetError {
    /// The two sides do not agree, for this reason.
    #[error("{reason} ({error})")]
    Tls {
        /// In the words of a trial's ledger.
        reason: &'static str,
        /// As the library says it.
        error: Error,
    },
    /// The stream failed.
    #[error("TLS: the handshake is cut off: {0}")]
    Stream(std::io::Error),
}

impl GreetError {
    /// Whether another CA would help: the certificate is of one that is not trusted.
    #[must_use]
    pub fn is_of_authority(&self) -> bool {
        let unknown = [
            CertificateError::UnknownIssuer,
            CertificateError::BadSignature,
        ];
        matches!(self, Self::Tls { error: Error::InvalidCertificate(why), .. } if unknown.contains(why))
    }

    /// Whether it is the certificate that is not believed.
    #[must_use]
    pub fn is_of_certificate(&self) -> bool {
        matches!(
            self,
            Self::Tls {
                error: Error::InvalidCertificate(_),
                ..
            }
        )
    }
}

impl From<Error> for GreetError {
    fn from(error: Error) -> Self {
        let reason = Why::of(&error).reason;
        Self::Tls { reason, error }
    }
}

impl From<std::io::Error> for GreetError {
    fn from(error: std::io::Error) -> Self {
        // The library hands its own errors on in those of the stream.
        match error.downcast::<Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::Stream(error),
        }
    }
}

/// Why no connection can be made with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The name can be no certificate's.
    #[error("`{0}` is neither a host name nor an address")]
    Name(String),
    /// The further CAs are not in PEM.
    #[error("no certificate in PEM can be read from it{0}")]
    NotPem(String),
    /// A further CA cannot be used.
    #[error("its certificate cannot be used: {0}")]
    Authority(Error),
    /// There is nobody to believe.
    #[error("this machine trusts no CA that can be read")]
    NobodyToBelieve,
    /// The library refuses.
    #[error("TLS cannot be set up: {0}")]
    Library(#[from] Error),
}

/// Whether a server can be asked for by this name: a host name, and no address (RFC 6066, section 3).
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)))
}

/// Makes the client's side of connections.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    verifies: bool,
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// The name or a certificate cannot be used.
    pub fn of(settings: &Settings) -> Result<Self, SetupError> {
        let name = ServerName::try_from(settings.name.clone())
            .map_err(|_| SetupError::Name(settings.name.clone()))?;
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &settings.trust {
            Trust::Authorities { added_pem } => {
                verifier_of(authorities(added_pem.as_deref())?, &provider)?
            }
            Trust::Only { pem } => {
                verifier_of(with_added(RootCertStore::empty(), pem)?, &provider)?
            }
            Trust::Anyone => Arc::new(Credulous(Arc::clone(&provider))),
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = settings
            .alpn
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        // Each session stands for a client that comes for the first time.
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        Ok(Self {
            config: Arc::new(config),
            name,
            verifies: settings.trust != Trust::Anyone,
        })
    }

    /// A new connection, which has its hello ready.
    pub(crate) fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }

    /// Shakes hands over a blocking stream, lets `talk` use the encrypted one, and says goodbye. It returns what was agreed on:
    /// once before a trial, so that a certificate that cannot be trusted is one line and not a thousand failed sessions.
    ///
    /// # Errors
    /// The stream fails, or the two sides do not agree.
    pub fn greet<T: Read + Write>(
        &self,
        stream: &mut T,
        talk: impl FnOnce(&mut Stream<'_, ClientConnection, T>),
    ) -> Result<Tls, GreetError> {
        let mut connection = self.connection()?;
        while connection.is_handshaking() {
            connection.complete_io(stream)?;
        }
        talk(&mut Stream::new(&mut connection, stream));
        connection.send_close_notify();
        // A server that is gone already has agreed all the same.
        let _ = connection.complete_io(stream);
        Ok(self.agreed(&connection))
    }

    /// What a connection agreed on, as a record shows it.
    fn agreed(&self, connection: &ClientConnection) -> Tls {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
            other => format!("{other:?}"),
        };
        let suite = connection.negotiated_cipher_suite();
        let cipher = suite.and_then(|suite| suite.suite().as_str());
        let alpn = connection.alpn_protocol();
        Tls {
            version,
            // The library marks the suites of TLS 1.3 in their names; IANA does not.
            cipher: cipher.unwrap_or_default().replace("TLS13_", "TLS_"),
            alpn: alpn.map(|protocol| String::from_utf8_lossy(protocol).into_owned()),
            verified: self.verifies,
            sni: None,
        }
    }
}

/// Verifies certificates by these CAs.
fn verifier_of(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, SetupError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|_| SetupError::NobodyToBelieve)
}

/// The CAs of this machine and the further ones.
fn authorities(added_pem: Option<&str>) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    // A machine's store may hold certificates that nobody can use any more; the others count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let roots = match added_pem {
        Some(pem) => with_added(roots, pem)?,
        None => roots,
    };
    if roots.is_empty() {
        return Err(SetupError::NobodyToBelieve);
    }
    Ok(roots)
}

/// These CAs, and those in the PEM.
fn with_added(mut roots: RootCertStore, pem: &str) -> Result<RootCertStore, SetupError> {
    let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| SetupError::NotPem(format!(": {error}")))?;
    if certificates.is_empty() {
        return Err(SetupError::NotPem(String::new()));
    }
    for certificate in certificates {
        roots.add(certificate).map_err(SetupError::Authority)?;
    }
    Ok(roots)
}

/// Believes every certificate. The server must still own its key, so a handshake costs both sides the same.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, added_pem: &str) -> String {
        let settings = Settings {
            name: name.to_owned(),
            trust: Trust::Authorities {
                added_pem: Some(added_pem.to_owned()),
            },
            alpn: Vec::new(),
        };
        Client::of(&settings).unwrap_err().to_string()
    }

    #[test]
    fn a_host_name_is_no_address_and_has_no_port() {
        for name in ["localhost", "chat.example", "a-b.c"] {
            assert!(is_host_name(name), "{name}");
        }
        for name in ["", "127.0.0.1", "::1", "chat.example:443", "no name"] {
            assert!(!is_host_name(name), "{name}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused_in_one_line() {
        for (name, pem, words) in [
            ("no name", "", "no name"),
            ("h", "", "no certificate in PEM"),
            ("h", "-----BEGIN CERTIFICATE-----\n!!!", "in PEM"),
            (
                "h",
                "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
                "cannot be used",
            ),
        ] {
            let text = refusal(name, pem);
            assert!(text.contains(words) && !text.contains('\n'), "{text}");
        }
    }
}
