//! TLS in front of a session: what comes is decrypted, and goes to the mock's own port over loopback.
//!
//! The hop costs CPU time of the same loop, so loads that are measured over TLS say nothing of the mock. In return a session knows nothing of TLS.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The first byte of a client that speaks TLS: a handshake record (RFC 8446, section 5.1).
pub(super) const FIRST_BYTE: u8 = 22;
/// What one `read` takes: a record at least.
const READ_BYTES: usize = 18 << 10;

/// Reads a certificate with its chain, and its key; in PEM.
///
/// # Errors
/// What is wrong with the files, in one line.
pub(super) fn config(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        format!(
            "{}: {error}; give --cert and --cert-key files in PEM",
            path.display()
        )
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(cert, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, private)
        })
        .map(Arc::new)
        .map_err(|error| wrong(cert, &error))
}

/// Serves a connection that speaks TLS, until one side closes.
///
/// # Errors
/// What the sockets say, or what is no TLS. The client has been told then, as far as it can be.
pub(super) async fn terminate(
    config: Arc<ServerConfig>,
    mut outer: TcpStream,
    own: SocketAddr,
) -> io::Result<()> {
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut inner = TcpStream::connect(own).await?;
    inner.set_nodelay(true)?;
    let (mut cipher, mut plain) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    loop {
        tokio::select! {
            read = outer.read(&mut cipher) => match read? {
                0 => return Ok(()),
                count => {
                    let heard = decrypted(&mut tls, &cipher[..count]);
                    flush(&mut tls, &mut outer).await?;
                    inner.write_all(&heard?).await?;
                }
            },
            read = inner.read(&mut plain) => match read? {
                0 => {
                    tls.send_close_notify();
                    flush(&mut tls, &mut outer).await?;
                    return outer.shutdown().await;
                }
                count => {
                    tls.writer().write_all(&plain[..count])?;
                    flush(&mut tls, &mut outer).await?;
                }
            },
        }
    }
}

fn decrypted(tls: &mut ServerConnection, cipher: &[u8]) -> io::Result<Vec<u8>> {
    let (mut rest, mut heard) = (cipher, Vec::new());
    while !rest.is_empty() {
        tls.read_tls(&mut rest)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        match tls.reader().read_to_end(&mut heard) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(heard)
}

async fn flush(tls: &mut ServerConnection, outer: &mut TcpStream) -> io::Result<()> {
    let mut cipher = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut cipher)?;
    }
    outer.write_all(&cipher).await
}
