//! One answer of HTTP/1.1, read strictly: what RFC 9112 forbids a server to send is an error.

/// What kind of request an answer is to, as far as its length depends on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The answer to HEAD has no body, whatever its fields say.
    Head,
    /// Any other method.
    Other,
}

/// How an answer says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The body lasts until the connection ends.
    UntilEnd,
    /// There is no body: to HEAD, or by its status.
    None,
}

/// One whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// As in `HTTP/1.1`. A refusal may repeat a version that nobody knows.
    pub(super) version: String,
    pub(super) status: u16,
    /// In the order in which they came.
    pub(super) fields: Vec<(String, String)>,
    pub(super) framing: Framing,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The first field of this name.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The content type without its parameters, in lower case.
    pub(super) fn media_type(&self) -> Option<String> {
        let value = self.field("content-type")?;
        let media_type = value.split(';').next().unwrap_or_default();
        Some(media_type.trim().to_ascii_lowercase())
    }

    /// Whether it says that the connection ends behind it.
    pub(super) fn announces_close(&self) -> bool {
        self.list("connection")
            .any(|option| option.eq_ignore_ascii_case("close"))
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        let of_name = move |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        let values = self.fields.iter().filter(of_name);
        values.flat_map(|(_, value)| value.split(',').map(str::trim))
    }

    /// In a few words.
    pub(super) fn describe(&self) -> String {
        format!("status {} with {}", self.status, excerpt(&self.body))
    }
}

/// A body in a few words: the whole of a short one, and the length of a long one.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    if bytes.len() <= SHOWN {
        return format!("{:?}", String::from_utf8_lossy(bytes));
    }
    let start = String::from_utf8_lossy(&bytes[..SHOWN]);
    format!("{} bytes that begin {start:?}", bytes.len())
}

/// The first answer in `bytes` and its length there; `None` while it is not whole.
///
/// `ended`: nothing will follow.
pub(super) fn first(
    bytes: &[u8],
    asked: Asked,
    ended: bool,
) -> Result<Option<(Answer, usize)>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return bad_beginning(bytes).map(|()| None);
    };
    let mut answer = head(&bytes[..end + 2])?;
    let rest = &bytes[end + 4..];
    let body_len = match framing(&answer, asked)? {
        (Framing::None, _) => Some(0),
        (Framing::Length, length) => {
            answer.framing = Framing::Length;
            let whole = rest.get(..length);
            whole
                .map(|body| answer.body = body.to_vec())
                .map(|()| length)
        }
        (Framing::Chunked, _) => {
            answer.framing = Framing::Chunked;
            chunks(rest, &mut answer.body)?
        }
        (Framing::UntilEnd, _) => {
            answer.framing = Framing::UntilEnd;
            answer.body = rest.to_vec();
            ended.then_some(rest.len())
        }
    };
    Ok(body_len.map(|len| (answer, end + 4 + len)))
}

/// What is no answer is known by its first bytes, before an end is waited for.
fn bad_beginning(bytes: &[u8]) -> Result<(), String> {
    const BEGINNING: &[u8] = b"HTTP/";
    let known = bytes.len().min(BEGINNING.len());
    if bytes[..known] == BEGINNING[..known] {
        Ok(())
    } else {
        Err(format!("no answer of HTTP/1.1: {}", excerpt(bytes)))
    }
}

/// The status line and the fields, each with its line end.
fn head(bytes: &[u8]) -> Result<Answer, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| format!("a head that is not text: {}", excerpt(bytes)))?;
    let mut lines = text.split_terminator("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let read = status(status_line);
    let (version, status) = read.ok_or_else(|| format!("a bad status line: {status_line:?}"))?;
    let fields = lines.map(|line| field(line).ok_or_else(|| format!("a bad field: {line:?}")));
    Ok(Answer {
        version: version.to_owned(),
        status,
        fields: fields.collect::<Result<_, _>>()?,
        framing: Framing::None,
        body: Vec::new(),
    })
}

/// The version and the status of `HTTP/1.1 200 OK`. The reason may be empty; the space before it may not be absent.
fn status(line: &str) -> Option<(&str, u16)> {
    let (version, rest) = line.split_once(' ')?;
    let (digits, reason) = rest.split_once(' ')?;
    let (major, minor) = version.strip_prefix("HTTP/")?.split_once('.')?;
    let numbers = [(major, 1), (minor, 1), (digits, 3)];
    let plain = numbers
        .iter()
        .all(|(text, len)| text.len() == *len && is_number(text));
    let status = digits
        .parse()
        .ok()
        .filter(|_| plain && reason.chars().all(is_visible))?;
    (100..600).contains(&status).then_some((version, status))
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    let plain = !name.is_empty() && name.chars().all(token) && value.chars().all(is_visible);
    plain.then(|| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

/// Neither a control character nor a bare line end.
fn is_visible(letter: char) -> bool {
    letter == '\t' || !letter.is_control()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit())
}

/// How the body ends, and the length if that is said.
fn framing(answer: &Answer, asked: Asked) -> Result<(Framing, usize), String> {
    let codings: Vec<&str> = answer.list("transfer-encoding").collect();
    let lengths: Vec<&str> = answer.list("content-length").collect();
    let length = match lengths[..] {
        [] => None,
        [length] if is_number(length) => length.parse::<usize>().ok(),
        _ => return Err(format!("Content-Length {}", lengths.join(", "))),
    };
    let no_body =
        asked == Asked::Head || answer.status < 200 || [204, 304].contains(&answer.status);
    match (&codings[..], length) {
        ([], _) if no_body => Ok((Framing::None, 0)),
        ([], None) if lengths.is_empty() => Ok((Framing::UntilEnd, 0)),
        ([], None) => Err(format!("Content-Length {}", lengths.join(", "))),
        ([], Some(length)) => Ok((Framing::Length, length)),
        (_, Some(_)) => Err("both Content-Length and Transfer-Encoding".to_owned()),
        ([coding], None) if coding.eq_ignore_ascii_case("chunked") => {
            let framing = if no_body {
                Framing::None
            } else {
                Framing::Chunked
            };
            Ok((framing, 0))
        }
        (codings, None) => Err(format!("Transfer-Encoding {}", codings.join(", "))),
    }
}

/// Reads chunks up to the last into `body`; how many bytes they took, or `None` while they are not whole.
fn chunks(bytes: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let Some(line) = line(&bytes[at..]) else {
            return Ok(None);
        };
        at += line.len() + 2;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size).unwrap_or_default();
        let hex = size.bytes().all(|letter| letter.is_ascii_hexdigit());
        let size = usize::from_str_radix(size, 16).ok().filter(|_| hex);
        let size = size.ok_or_else(|| format!("a bad chunk size: {}", excerpt(line)))?;
        if size == 0 {
            break;
        }
        let (Some(data), Some(end)) = (
            bytes.get(at..at + size),
            bytes.get(at + size..at + size + 2),
        ) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err(format!(
                "a chunk that goes on behind its end: {}",
                excerpt(end)
            ));
        }
        body.extend_from_slice(data);
        at += size + 2;
    }
    // The trailer: fields up to an empty line.
    while let Some(line) = line(&bytes[at..]) {
        at += line.len() + 2;
        if line.is_empty() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The first line of `bytes` without its end.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some(&bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(Answer, usize)>, String> {
        first(text.as_bytes(), Asked::Other, false)
    }

    fn whole(text: &str) -> (Answer, usize) {
        read(text).expect("well-formed").expect("whole")
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_not_further() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX:\t a b \r\n\r\nok";
        let (answer, len) = whole(&format!("{text}HTTP/1.1 404"));
        assert_eq!((answer.status, &answer.body[..]), (200, &b"ok"[..]));
        assert_eq!((len, answer.framing), (text.len(), Framing::Length));
        assert_eq!(answer.field("x"), Some("a b"));
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), Ok(None), "{end} bytes");
        }
    }

    #[test]
    fn chunks_are_put_together() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
        let (answer, len) = whole(text);
        assert_eq!(answer.body, b"ok0123456789");
        assert_eq!((len, answer.framing), (text.len(), Framing::Chunked));
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), Ok(None), "{end} bytes");
        }
    }

    #[test]
    fn an_answer_without_a_length_lasts_until_the_end() {
        let text = "HTTP/1.0 400 Bad\r\nConnection: x, Close\r\n\r\nwhy";
        assert_eq!(read(text), Ok(None));
        let ended = first(text.as_bytes(), Asked::Other, true).expect("well-formed");
        let (answer, len) = ended.expect("whole");
        assert_eq!((answer.body.as_slice(), len), (&b"why"[..], text.len()));
        assert!(answer.announces_close());
    }

    #[test]
    fn some_answers_have_no_body() {
        let text =
            "HTTP/1.1 200 \r\nContent-Length: 7\r\nContent-Type: Text/Plain; charset=utf-8\r\n\r\n";
        let head = first(text.as_bytes(), Asked::Head, false).expect("well-formed");
        let (answer, len) = head.expect("whole");
        assert_eq!((len, answer.framing), (text.len(), Framing::None));
        assert_eq!(answer.media_type().as_deref(), Some("text/plain"));
        for text in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        ] {
            assert_eq!(whole(text).1, text.len(), "{text}");
        }
    }

    #[test]
    fn what_a_server_must_not_send_is_an_error() {
        for text in [
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.10 200 OK\r\n\r\n",
            "HTTP/x.1 200 OK\r\n\r\n",
            "HTTQ/1.1 200 OK\r\n\r\n",
            "ok",
            "HTTP/1.1 200\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 +20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\nX: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: y\nZ: \r\n\r\n",
            "HTTP/1.1 200 OK\r\n: y\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}: {:?}", read(text));
        }
    }
}
