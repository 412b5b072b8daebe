//! One connection to a server, for a talk that ends in time whatever the server does.

use std::io::{ErrorKind, Result};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Connects to a server, and returns what `say` returns. After `limit`, from before the connection, the connection is
/// shut down. So even a server that sends a byte now and then cannot hold up one who reads until the end.
///
/// # Errors
/// Nobody takes the connection, or the time was over before `say` returned ([`ErrorKind::TimedOut`]).
pub fn talk<T>(
    to: SocketAddr,
    limit: Duration,
    say: impl FnOnce(&mut TcpStream) -> T,
) -> Result<T> {
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&to, limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let watched = stream.try_clone()?;
    let (going_on, over) = channel::<()>();
    thread::scope(|scope| {
        let watch = move || {
            let left = limit.saturating_sub(began.elapsed());
            let is_late = over.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
            if is_late {
                // This fails only if the server has closed the connection already.
                let _ = watched.shutdown(Shutdown::Both);
            }
            is_late
        };
        let watch = thread::Builder::new()
            .name("plimsoll-talk".into())
            .spawn_scoped(scope, watch)?;
        let said = say(&mut stream);
        drop(going_on);
        match watch.join() {
            // The timeout of a read ends no earlier than the watch, and may be noticed before it.
            Ok(false) if began.elapsed() < limit => Ok(said),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that does this with its only connection.
    fn server(serve: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        thread::spawn(move || serve(listener.accept().expect("accept").0));
        address
    }

    fn all(stream: &mut TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        // An error ends it as an end does.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    }

    #[test]
    fn what_was_said_is_returned() {
        let to = server(|mut stream| {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("asked");
            stream.write_all(&[byte[0] + 1]).expect("answered");
        });
        let said = talk(to, Duration::from_secs(20), |stream| {
            stream.write_all(&[7]).expect("written");
            all(stream)
        });
        assert_eq!(said.expect("in time"), [8]);
    }

    #[test]
    fn a_server_that_never_ends_is_left_in_time() {
        let limit = Duration::from_millis(100);
        let silent = |stream: TcpStream| drop(all(&mut { stream }));
        let drips = |mut stream: TcpStream| {
            while stream.write_all(b".").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        for to in [server(silent), server(drips)] {
            let began = Instant::now();
            let error = talk(to, limit, all).expect_err("too late");
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(began.elapsed() < Duration::from_secs(10));
        }
    }

    #[test]
    fn nobody_is_told_from_silence() {
        let (_socket, to) = plimsoll_testing::nobody_listens();
        let error = talk(to, Duration::from_secs(20), all).expect_err("nobody");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
