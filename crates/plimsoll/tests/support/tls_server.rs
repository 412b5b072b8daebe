//! A WebSocket echo server with TLS, on third-party libraries, and the CA that signed its certificate. Each connection
//! has one thread.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::version::TLS13;
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

pub(crate) struct TlsServer {
    pub(crate) port: u16,
    ca_pem: String,
    asked_for: Arc<Mutex<Vec<Option<String>>>>,
}

impl TlsServer {
    /// Starts a server on a free port of 127.0.0.1 that has a certificate for this address and speaks these versions of
    /// TLS. It serves until the test binary ends.
    pub(crate) fn start(versions: &[&'static SupportedProtocolVersion]) -> Self {
        Self::with_certificate_for(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()), versions)
    }

    /// The same with a certificate for this name, which nobody resolves.
    pub(crate) fn named(name: &str) -> Self {
        let name = name.try_into().expect("a name");
        Self::with_certificate_for(SanType::DnsName(name), &[&TLS13])
    }

    fn with_certificate_for(name: SanType, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let mut of_ca = CertificateParams::new(Vec::new()).expect("no names");
        of_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(of_ca, KeyPair::generate().expect("a key"));
        let ca = ca.expect("a CA");
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.subject_alt_names = vec![name];
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &ca).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the key is the certificate's");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let asked_for = Arc::default();
        std::thread::spawn({
            let asked_for = Arc::clone(&asked_for);
            move || {
                for stream in listener.incoming().flatten() {
                    let (config, asked_for) = (Arc::clone(&config), Arc::clone(&asked_for));
                    std::thread::spawn(move || serve(stream, config, &asked_for));
                }
            }
        });
        Self {
            port,
            asked_for,
            ca_pem: ca.pem(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("wss://127.0.0.1:{}/", self.port)
    }

    /// The name that each session asked for (SNI).
    pub(crate) fn asked_for(&self) -> Vec<Option<String>> {
        self.asked_for.lock().expect("no panic").clone()
    }

    /// Writes the certificate of its CA.
    pub(crate) fn write_ca(&self, file: &Path) {
        std::fs::write(file, &self.ca_pem).expect("a scratch file");
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, asked_for: &Mutex<Vec<Option<String>>>) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    let tls = ServerConnection::new(config).expect("a connection");
    // The command first looks at who answers, and hangs up: that is no WebSocket.
    let Ok(mut socket) = tungstenite::accept(StreamOwned::new(tls, stream)) else {
        return;
    };
    let name = socket.get_ref().conn.server_name().map(str::to_owned);
    asked_for.lock().expect("no panic").push(name);
    while let Ok(message) = socket.read() {
        if (message.is_binary() || message.is_text()) && socket.send(message).is_err() {
            return;
        }
    }
}
