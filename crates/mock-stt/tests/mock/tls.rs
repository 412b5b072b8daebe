//! Sessions over TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use plimsoll_mock_stt::config::Config;
use plimsoll_workload_stt_real::dialect::Options;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::Message;

use crate::client::dialect_of;
use crate::rig::{Speech, config, serve};

/// The files of a certificate that signs itself, and the client that believes it.
fn believed(name: &str) -> (Config, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let folder =
        std::env::temp_dir().join(format!("plimsoll-mock-stt-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.cert))
        .expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let settings = Config {
        cert: Some(cert),
        cert_key: Some(key),
        ..config("deepgram", "none")
    };
    (settings, Arc::new(client))
}

#[test]
fn a_session_may_be_encrypted() {
    let (settings, client) = believed("session");
    let files = settings.cert.clone().expect("a certificate");
    let address = serve(settings);
    let name = "localhost".try_into().expect("a name");
    let tls = ClientConnection::new(client, name).expect("a client");
    let stream = StreamOwned::new(tls, TcpStream::connect(address).expect("it listens"));
    let dialect = dialect_of("deepgram", Options::default());
    let target = dialect.connect().target();
    let address = format!("wss://localhost{}", target.expose());
    let (mut socket, _) = tungstenite::client(address, stream).expect("upgraded");
    let speech = Speech::new(dialect.audio(), 8, 1);
    for frame in &speech.frames {
        socket
            .send(Message::binary(dialect.pack(frame).content))
            .expect("sent");
    }
    socket
        .send(Message::text(r#"{"type":"CloseStream"}"#))
        .expect("sent");
    let mut heard = Vec::new();
    while let Ok(Message::Text(text)) = socket.read() {
        let message: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        if message["is_final"] == true {
            let transcript = message["channel"]["alternatives"][0]["transcript"].as_str();
            heard.extend(plimsoll_speech::words::words(transcript.expect("a text")));
        }
    }
    assert_eq!(heard, speech.words());
    std::fs::remove_dir_all(files.parent().expect("a folder")).expect("removed");
}

#[test]
fn what_is_no_handshake_ends_the_connection() {
    let (settings, _) = believed("no-handshake");
    let address = serve(settings);
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        // An empty hello of a server.
        .write_all(&[22, 3, 1, 0, 4, 2, 0, 0, 0])
        .expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an end");
    // An alert (RFC 8446, section 5.1), and nothing of HTTP.
    assert_eq!(answer.first(), Some(&21), "{answer:?}");
}
