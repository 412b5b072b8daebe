//! Certificates and servers of tests.

use std::sync::Arc;

use plimsoll_tls::{Client, Settings, Trust};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// The name that test servers have certificates for.
pub(crate) const NAME: &str = "localhost";

/// A CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server's certificate with its key.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.identity_until(name, 2999)
    }

    /// One that is valid to the end of a year.
    pub(crate) fn identity_until(&self, name: &str, year: i32) -> Identity {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.not_before = date_time_ymd(2000, 1, 1);
        parameters.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key,
        }
    }

    /// A client that believes this CA too.
    pub(crate) fn client(&self, name: &str, alpn: &[&str]) -> Client {
        let trust = Trust::Authorities {
            added_pem: Some(self.pem()),
        };
        client(name, trust, alpn)
    }
}

pub(crate) fn client(name: &str, trust: Trust, alpn: &[&str]) -> Client {
    let settings = Settings {
        name: name.to_owned(),
        trust,
        alpn: alpn.iter().map(ToString::to_string).collect(),
    };
    Client::of(&settings).unwrap()
}

impl Identity {
    /// A server with this identity that speaks these versions of TLS and chooses among these protocols.
    pub(crate) fn server(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        alpn: &[&str],
    ) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.ticketer = ring::Ticketer::new().unwrap();
        Arc::new(config)
    }
}
