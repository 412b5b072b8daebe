//! The other side, as far as calibration's sink and tests need it: reads requests, writes answers.

use super::answer::is_http_10;
use super::body::{Body, Framing};
use super::fault::Flaw;
use super::head::{Fields, HeadReader, StartLine};
use super::scan::token_end;

/// What a client sent. Borrows live until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// The head of a request.
    Head(RequestHead<'a>),
    /// Bytes of its body, never none.
    Body(&'a [u8]),
    /// The request is complete.
    End,
}

/// The head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method, such as `GET`.
    pub method: &'a [u8],
    /// The path with its query, as it was sent.
    pub target: &'a [u8],
    /// Where the body ends.
    pub framing: Framing,
    /// The client wants the connection closed after the answer.
    pub closes: bool,
    /// The client waits for status 100 before it sends the body.
    pub expects_continue: bool,
    /// All field lines.
    pub fields: Fields<'a>,
}

/// Reads the requests on one connection.
#[derive(Debug, Clone)]
pub struct RequestReader {
    head: HeadReader<RequestLine>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Head,
    Body(Body),
    Faulty(Flaw),
}

impl Default for RequestReader {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: HeadReader::new(),
            stage: Stage::Head,
        }
    }

    /// Whether the stream stands between requests.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Head) && self.head.is_empty()
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete.
    ///
    /// # Errors
    /// The first rule that the client broke. Every later call returns the same.
    pub fn received(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(RequestEvent<'_>),
    ) -> Result<(), Flaw> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = match &mut self.stage {
                Stage::Faulty(flaw) => return Err(*flaw),
                Stage::Head => self.read_head(rest, &mut on_event),
                Stage::Body(body) => {
                    let mut on_bytes = |bytes: &[u8]| on_event(RequestEvent::Body(bytes));
                    body.take(rest, &mut on_bytes).map(|(used, is_end)| {
                        if is_end {
                            self.stage = Stage::Head;
                            on_event(RequestEvent::End);
                        }
                        used
                    })
                }
            };
            match used {
                Ok(used) => rest = &rest[used..],
                Err(flaw) => {
                    self.stage = Stage::Faulty(flaw);
                    return Err(flaw);
                }
            }
        }
        Ok(())
    }

    fn read_head(
        &mut self,
        input: &[u8],
        on_event: &mut impl FnMut(RequestEvent<'_>),
    ) -> Result<usize, Flaw> {
        let Some(head) = self.head.read(input)? else {
            return Ok(input.len());
        };
        let used = head.used;
        let RequestLine {
            method_len,
            target_len,
            is_http_10,
        } = head.start;
        if head.framed.hosts > 1 || head.framed.hosts == 0 && !is_http_10 {
            return Err(Flaw::Host);
        }
        let framing = head.framed.framing(is_http_10)?.unwrap_or(Framing::Empty);
        let target_at = usize::from(method_len) + 1;
        on_event(RequestEvent::Head(RequestHead {
            method: &head.start_line[..usize::from(method_len)],
            target: &head.start_line[target_at..target_at + target_len as usize],
            framing,
            closes: head.framed.closes(is_http_10),
            expects_continue: head.framed.expects_continue,
            fields: head.fields,
        }));
        self.head.clear();
        match Body::new(framing) {
            Some(body) => self.stage = Stage::Body(body),
            None => on_event(RequestEvent::End),
        }
        Ok(used)
    }
}

/// A request line; its parts stand in the head's bytes.
#[derive(Debug, Clone, Copy)]
struct RequestLine {
    method_len: u16,
    target_len: u32,
    is_http_10: bool,
}

impl StartLine for RequestLine {
    fn parse(line: &[u8]) -> Result<Self, Flaw> {
        let method_len = token_end(line);
        let (rest, version) = line.split_last_chunk::<8>().ok_or(Flaw::RequestLine)?;
        let target = rest
            .get(method_len..)
            .and_then(|rest| rest.strip_prefix(b" ")?.strip_suffix(b" "))
            .ok_or(Flaw::RequestLine)?;
        let is_target = |byte: &u8| byte.is_ascii_graphic();
        if method_len == 0 || target.is_empty() || !target.iter().all(is_target) {
            return Err(Flaw::RequestLine);
        }
        Ok(Self {
            method_len: u16::try_from(method_len).map_err(|_| Flaw::RequestLine)?,
            // Fits: a head is at most 64 KiB.
            target_len: target.len() as u32,
            is_http_10: is_http_10(version).ok_or(Flaw::Version)?,
        })
    }
}

/// A whole answer with Content-Length. `fields` stand behind it; `body` is left out of the bytes for HEAD.
#[must_use]
pub fn answer(
    status: u16,
    reason: &str,
    fields: &[(&str, &str)],
    body: &[u8],
    is_head: bool,
) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if !is_head {
        bytes.extend_from_slice(body);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::{Method, Path, RequestSpec, Template};

    /// What a stream says, in lines; body bytes are joined.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Option<Flaw>) {
        let mut reader = RequestReader::new();
        let (mut seen, mut body) = (Vec::new(), Vec::new());
        for piece in pieces {
            let result = reader.received(piece, |event| match event {
                RequestEvent::Head(head) => seen.push(format!(
                    "{} {} {:?} {} {}",
                    String::from_utf8_lossy(head.method),
                    String::from_utf8_lossy(head.target),
                    head.framing,
                    if head.closes { "closes" } else { "stays" },
                    if head.expects_continue {
                        "waits"
                    } else {
                        "goes"
                    },
                )),
                RequestEvent::Body(bytes) => body.extend_from_slice(bytes),
                RequestEvent::End => {
                    seen.push(String::from_utf8_lossy(&std::mem::take(&mut body)).into_owned());
                }
            });
            if let Err(flaw) = result {
                return (seen, Some(flaw));
            }
        }
        (seen, None)
    }

    fn both_ways(bytes: &[u8]) -> (Vec<String>, Option<Flaw>) {
        let whole = read([bytes]);
        assert_eq!(read(bytes.chunks(1)), whole, "byte by byte");
        whole
    }

    #[test]
    fn it_reads_what_templates_write() {
        let spec = RequestSpec {
            method: Method::Post,
            path: Path::Numbered("/sum?k="),
            host: "a",
            fields: &[("X-A", "1")],
            body_bytes: Some(20),
            close: true,
        };
        let template = Template::new(&spec).unwrap();
        let mut bytes = Vec::new();
        template.append(5, &mut bytes);
        bytes.extend_from_slice(template.shared_body());
        let expected = [
            "POST /sum?k=5 Length(20) closes goes",
            "00000000000000050123",
        ];
        assert_eq!(
            both_ways(&bytes),
            (expected.map(str::to_owned).to_vec(), None)
        );
    }

    #[test]
    fn pipelined_and_chunked_requests_are_told_apart() {
        let bytes = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n\
            2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\nGET /c HTTP/1.0\r\n\r\n";
        let expected = [
            "GET /a Empty stays goes",
            "",
            "POST /b Chunked stays waits",
            "abc",
            "GET /c Empty closes goes",
            "",
        ];
        assert_eq!(
            both_ways(bytes),
            (expected.map(str::to_owned).to_vec(), None)
        );
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (bytes, flaw) in [
            ("GET  / HTTP/1.1\r\n", Flaw::RequestLine),
            ("GET / x HTTP/1.1\r\n", Flaw::RequestLine),
            (" / HTTP/1.1\r\n", Flaw::RequestLine),
            ("GET\r\n", Flaw::RequestLine),
            ("GET / HTTP/3.7\r\n", Flaw::Version),
            ("GET / HTTP/1.1\r\n\r\n", Flaw::Host),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", Flaw::Host),
            ("GET / HTTP/1.1\nHost: a\n\n", Flaw::BareLineFeed),
        ] {
            assert_eq!(
                both_ways(bytes.as_bytes()),
                (vec![], Some(flaw)),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn an_answer_is_framed_by_its_length() {
        assert_eq!(
            answer(200, "OK", &[("Content-Type", "text/plain")], b"ok", false),
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"
        );
        assert!(answer(200, "OK", &[], b"ok", true).ends_with(b"2\r\n\r\n"));
    }
}
