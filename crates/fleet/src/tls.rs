//! The certificate of a run, and whom an agent believes.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::token::{from_hex, hex};

/// SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate.as_ref()).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&hex(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain: String = text.chars().filter(|digit| *digit != ':').collect();
        from_hex(&plain)
            .map(Self)
            .ok_or_else(|| "give 64 hex digits, as the coordinator prints them".to_owned())
    }
}

/// The coordinator's certificate and key. They are made for a run and kept nowhere.
#[derive(Debug, Clone)]
pub struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Makes a certificate that lists the addresses to which the agents will be sent.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn make(targets: &[IpAddr]) -> Result<Self, Error> {
        let failed = |error: rcgen::Error| Error::General(error.to_string());
        let mut params = CertificateParams::default();
        params.subject_alt_names = targets.iter().copied().map(SanType::IpAddress).collect();
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let certificate = certificate.der().clone();
        let fingerprint = Fingerprint::of(&certificate);
        let key = PrivateKeyDer::try_from(key.serialize_der())
            .map_err(|why| Error::General(why.to_owned()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// What agents may pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// The agent's side. It believes the pinned certificate, or any: then the proof of the token shows who it is.
pub(crate) fn client_config(pinned: Option<Fingerprint>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Pinned {
        fingerprint: pinned,
        provider: Arc::clone(&provider),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Whether a certificate lists this address.
pub(crate) fn lists(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let name = ServerName::IpAddress(address.into());
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

/// Verifies nothing but the fingerprint, and that the other side has the certificate's key.
#[derive(Debug)]
struct Pinned {
    fingerprint: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let came = Fingerprint::of(end_entity);
        match &self.fingerprint {
            Some(pinned) if !bool::from(pinned.0.ct_eq(&came.0)) => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
