//! Listening, and the end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::gateway::{Drain, Gateway};
use crate::http;
use crate::lies::process::Process;

/// Connections that the kernel holds ready.
const BACKLOG: u32 = 4096;
/// How long a session may take to close when the time to drain is up.
const CLOSING: Duration = Duration::from_millis(600);

/// A gateway that listens.
#[derive(Debug)]
pub struct Server {
    gateway: Arc<Gateway>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens at `PORT` of every interface. Needs a runtime.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn bind(config: Config) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::UNSPECIFIED, config.port).into())?;
        let gateway = Gateway::new(config);
        if let Some(bytes) = Process::send_buffer_bytes(&gateway.lies) {
            // Connections inherit it.
            socket.set_send_buffer_size(bytes)?;
        }
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self { gateway, listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a signal, and until what plays then has ended.
    ///
    /// # Errors
    /// Signals cannot be handled.
    pub async fn run(self) -> io::Result<()> {
        let Self { gateway, listener, .. } = self;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(Arc::clone(&gateway.process).act(Arc::clone(&gateway.lies)));
        let accepting = accept(Arc::clone(&gateway), listener);
        tokio::pin!(accepting);
        tokio::select! {
            () = &mut accepting => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        gateway.admission.drain();
        gateway.drain.send_replace(Drain::WhenQuiet);
        let ending = async {
            if timeout(gateway.config.drain_timeout, gateway.admission.emptied()).await.is_err() {
                gateway.drain.send_replace(Drain::Now);
                // Sessions that do not close even now end with the process.
                let _ = timeout(CLOSING, gateway.admission.emptied()).await;
            }
        };
        tokio::select! {
            () = &mut accepting => {}
            () = ending => {}
        }
        Ok(())
    }
}

/// Takes connections for ever.
async fn accept(gateway: Arc<Gateway>, listener: TcpListener) {
    loop {
        Process::before_accept(&gateway.lies).await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(serve(Arc::clone(&gateway), stream, peer));
            }
            Err(error) => {
                // Out of descriptors, most likely: they come back when connections close.
                eprintln!("lying-voice: cannot accept a connection: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(gateway: Arc<Gateway>, stream: TcpStream, peer: SocketAddr) {
    // Fails only on a socket that is gone already.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| http::answer(Arc::clone(&gateway), peer.ip(), request));
    // A connection that ends badly is the client's doing, or a body that was cut.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
