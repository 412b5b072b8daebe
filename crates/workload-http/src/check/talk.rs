//! What cases are written with: a connection that sends bytes as they are and reads one answer at a time.
//!
//! What follows an answer is kept for the next. Every function fails with a text that says what was seen.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::connect;

use super::Site;
use super::answer::{self, Answer, Asked, excerpt};
use super::exchange::Exchange;

/// How long an answer, or a single write, may take. The contract sets no time: what takes longer is not served.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// What came from the server.
#[derive(Debug)]
pub(super) enum Came {
    /// A whole answer, 1xx too.
    Answer(Answer),
    /// The connection ended in order, behind an answer.
    End,
    /// The connection was reset, behind an answer.
    Reset,
    /// Nothing, or nothing whole, within the limit.
    Nothing,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    /// What was received and is not yet part of an answer that was handed out.
    kept: Vec<u8>,
    over: Option<Over>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy)]
enum Over {
    End,
    Reset,
}

impl Line {
    /// A connection to the server.
    pub(super) fn open(site: &Site<'_>) -> Result<Self, String> {
        Self::to(site.address)
    }

    /// A connection to this address. Segments leave at once, so that a request can be divided.
    pub(super) fn to(address: SocketAddr) -> Result<Self, String> {
        let connect = || -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error| format!("cannot connect to {address}: {error}"))?;
        Ok(Self::of(stream))
    }

    /// A connection that takes little at a time: the server must wait until more is read.
    pub(super) fn slowly_to(address: SocketAddr) -> Result<Self, String> {
        connect(address, Some(16 * 1024)).map(Self::of)
    }

    fn of(stream: TcpStream) -> Self {
        Self {
            stream,
            kept: Vec::new(),
            over: None,
        }
    }

    /// Sends bytes as they are.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| format!("the target stopped reading: {error}"))
    }

    /// Sends bytes to which the server may answer, or close, before it has read them all.
    pub(super) fn send_what_may_be_refused(&mut self, bytes: &[u8]) {
        // A failed write is no finding: the answer, or its absence, is.
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more will be sent. Answers can still come.
    pub(super) fn finish_sending(&self) -> Result<(), String> {
        let finished = self.stream.shutdown(Shutdown::Write);
        finished.map_err(|error| format!("the connection is gone: {error}"))
    }

    /// Reads exactly one answer, or the end.
    ///
    /// An answer that RFC 9112 forbids, or that is cut off, is an error.
    pub(super) fn next_within(&mut self, asked: Asked, limit: Duration) -> Result<Came, String> {
        let deadline = Instant::now() + limit;
        loop {
            if !self.kept.is_empty()
                && let Some((answer, len)) = answer::first(&self.kept, asked, self.over.is_some())?
            {
                self.kept.drain(..len);
                return Ok(Came::Answer(answer));
            }
            match self.over {
                Some(how) if !self.kept.is_empty() => {
                    return Err(format!(
                        "{} in an answer: {}",
                        how.text(),
                        excerpt(&self.kept)
                    ));
                }
                Some(Over::End) => return Ok(Came::End),
                Some(Over::Reset) => return Ok(Came::Reset),
                None => {}
            }
            if !self.receive(deadline)? {
                return Ok(Came::Nothing);
            }
        }
    }

    /// The next answer. One of 1xx is an error: nobody asked for it.
    pub(super) fn answer(&mut self, asked: Asked) -> Result<Answer, String> {
        match self.next_within(asked, PATIENCE)? {
            Came::Answer(answer) if answer.status < 200 => {
                Err(format!("status {}, which nobody asked for", answer.status))
            }
            Came::Answer(answer) => Ok(answer),
            Came::End => Err("the connection ended instead of an answer".to_owned()),
            Came::Reset => Err("the connection was reset instead of an answer".to_owned()),
            Came::Nothing if self.kept.is_empty() => {
                Err(format!("no answer within {} s", PATIENCE.as_secs()))
            }
            Came::Nothing => Err(format!(
                "no whole answer within {} s: {}",
                PATIENCE.as_secs(),
                excerpt(&self.kept)
            )),
        }
    }

    /// Asks, and passes when the answer is the wanted one.
    pub(super) fn ask(&mut self, exchange: &Exchange) -> Result<Answer, String> {
        let sent = self.send(exchange.request());
        sent.map_err(|seen| exchange.told(&seen))?;
        self.expect(exchange)
    }

    /// Passes when the next answer is the one that this wants.
    pub(super) fn expect(&mut self, exchange: &Exchange) -> Result<Answer, String> {
        let answer = self.answer(exchange.asked());
        let answer = answer.map_err(|seen| exchange.told(&seen))?;
        exchange.accept(&answer)?;
        Ok(answer)
    }

    /// Passes when the connection ends within `limit` and nothing comes before; how long it took.
    pub(super) fn expect_end(&mut self, limit: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        match self.next_within(Asked::Other, limit)? {
            Came::End | Came::Reset => Ok(begun.elapsed()),
            Came::Answer(answer) => Err(format!("one answer too many: {}", answer.describe())),
            Came::Nothing => Err(format!(
                "the connection is still open after {} ms",
                limit.as_millis()
            )),
        }
    }

    /// Passes when nothing at all comes within `limit`.
    pub(super) fn expect_silence(&mut self, limit: Duration) -> Result<(), String> {
        match self.next_within(Asked::Other, limit)? {
            Came::Nothing if self.kept.is_empty() => Ok(()),
            Came::Nothing => Err(format!("{} too many", excerpt(&self.kept))),
            Came::Answer(answer) => Err(format!("one answer too many: {}", answer.describe())),
            Came::End | Came::Reset => Err("the connection ended".to_owned()),
        }
    }

    /// Takes in what comes next; false when nothing did before the deadline.
    fn receive(&mut self, deadline: Instant) -> Result<bool, String> {
        let mut buffer = [0; 64 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let timeout = self.stream.set_read_timeout(Some(left));
            match timeout.and_then(|()| self.stream.read(&mut buffer)) {
                Ok(0) => self.over = Some(Over::End),
                Ok(n) => self.kept.extend_from_slice(&buffer[..n]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => continue,
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(false),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                        self.over = Some(Over::Reset);
                    }
                    _ => return Err(format!("reading failed: {error}")),
                },
            }
            return Ok(true);
        }
    }
}

impl Over {
    fn text(self) -> &'static str {
        match self {
            Self::End => "the connection ended",
            Self::Reset => "the connection was reset",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    /// A connection to a server that sends these pieces, with a pause behind each, and then ends.
    fn line(pieces: &'static [&'static str]) -> Line {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepts");
            for piece in pieces {
                // A client that saw enough is gone.
                let _ = stream.write_all(piece.as_bytes());
                thread::sleep(Duration::from_millis(20));
            }
        });
        Line::to(address).expect("connects")
    }

    fn status(came: Result<Came, String>) -> Option<u16> {
        match came {
            Ok(Came::Answer(answer)) => Some(answer.status),
            _ => None,
        }
    }

    #[test]
    fn exactly_one_answer_is_read_at_a_time() {
        let mut line = line(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 No\r\nContent-Le",
            "ngth: 1\r\n\r\n",
            "xHTTP/1.1 500 \r\n\r\nuntil the end",
        ]);
        for expected in [200, 404, 500] {
            let came = line.next_within(Asked::Other, PATIENCE);
            assert_eq!(status(came), Some(expected));
        }
        line.expect_end(SOON).expect("an end");
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error_and_one_that_is_late_is_nothing() {
        let mut cut_off = line(&["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"]);
        let late = cut_off.next_within(Asked::Other, Duration::from_millis(2));
        assert!(matches!(late, Ok(Came::Nothing)), "{late:?}");
        let seen = cut_off.answer(Asked::Other).expect_err("cut off");
        assert!(
            seen.starts_with("the connection ended in an answer"),
            "{seen}"
        );
    }

    #[test]
    fn what_nobody_asked_for_is_found() {
        const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert!(line(&[ANSWER, ""]).expect_end(SOON).is_err());
        assert!(line(&[ANSWER, ""]).expect_silence(SOON).is_err());
        assert!(line(&["HTTP/1.1", ""]).expect_silence(SOON).is_err());
        assert!(
            line(&["HTTP/1.1 100 Continue\r\n\r\n"])
                .answer(Asked::Other)
                .is_err()
        );
        line(&["", "", "", "", ""])
            .expect_silence(Duration::from_millis(50))
            .expect("silence");
    }
}
