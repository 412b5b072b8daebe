//! Requests, as a server of these tests reads them from a buffer.

use super::Defect;

/// What a server goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) defect: Defect,
    pub(super) max_body_bytes: usize,
}

/// A whole request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Where its body begins.
    pub(super) head_len: usize,
    /// The connection ends behind the answer.
    pub(super) close: bool,
    /// Its client waits for 100, or says so.
    pub(super) expects: bool,
}

/// What the bytes so far are.
pub(super) enum Step {
    /// The beginning of a request; whether its client waits for 100.
    More { expects: bool },
    /// A request, and its length.
    Whole(Request, usize),
    /// No request: the status of the answer.
    Bad(u16),
}

struct Head {
    method: String,
    path: String,
    version: String,
    fields: Vec<(String, String)>,
    exact: bool,
}

/// How the body ends.
enum Body {
    Length(usize),
    Chunks,
}

impl Head {
    fn values(&self, name: &str) -> Vec<&str> {
        let same = |known: &str| known == name || (!self.exact && known.eq_ignore_ascii_case(name));
        let fields = self.fields.iter().filter(|(known, _)| same(known));
        fields.map(|(_, value)| value.as_str()).collect()
    }

    fn has(&self, name: &str, value: &str) -> bool {
        let mut values = self.values(name).into_iter();
        values.any(|known| known.eq_ignore_ascii_case(value))
    }

    fn expects(&self) -> bool {
        self.has("Expect", "100-continue")
    }
}

/// A longer field is refused, and so are more fields.
const FIELD_MAX_BYTES: usize = 32 * 1024;
const FIELDS_MAX: usize = 1000;

/// Whether a head, or its beginning, is too large.
fn too_large(head: &[u8], defect: Defect) -> bool {
    let lines = || head.split(|byte| *byte == b'\n');
    let long = lines().any(|line| line.len() > FIELD_MAX_BYTES);
    let many = lines().count() > FIELDS_MAX;
    (long && defect != Defect::TakesLargeHeads) || (many && defect != Defect::TakesManyFields)
}

/// The first request of these bytes.
pub(super) fn first(bytes: &[u8], rules: Rules) -> Step {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        if too_large(bytes, rules.defect) {
            return Step::Bad(431);
        }
        return if rules.defect == Defect::ReadsHeadAtOnce && !bytes.is_empty() {
            Step::Bad(400)
        } else {
            Step::More { expects: false }
        };
    };
    let rest = &bytes[end + 4..];
    let read = || -> Result<Option<(Request, usize)>, u16> {
        if too_large(&bytes[..end], rules.defect) {
            return Err(431);
        }
        let head = head(&bytes[..end], rules.defect)?;
        let whole = match framing(&head, rules.defect)? {
            Body::Length(length) if length > limit(rules) => return Err(413),
            Body::Length(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
            Body::Chunks => chunks(rest, rules)?,
        };
        let at_once = match whole {
            None if head.has("Transfer-Encoding", "chunked") => Defect::ReadsChunksAtOnce,
            None => Defect::ReadsBodyAtOnce,
            Some(_) => Defect::None,
        };
        if at_once == rules.defect && at_once != Defect::None && !rest.is_empty() {
            return Err(400);
        }
        Ok(whole.map(|(body, len)| (request(head, body, end + 4, rules.defect), end + 4 + len)))
    };
    match read() {
        Err(status) => Step::Bad(status),
        Ok(Some((request, len))) => Step::Whole(request, len),
        Ok(None) => Step::More {
            expects: head(&bytes[..end], rules.defect).is_ok_and(|head| head.expects()),
        },
    }
}

fn limit(rules: Rules) -> usize {
    match rules.defect {
        Defect::NoLimit => usize::MAX,
        Defect::LimitIsFixed => 1024 * 1024,
        Defect::LimitIsShort => rules.max_body_bytes - 1,
        _ => rules.max_body_bytes,
    }
}

fn request(head: Head, body: Vec<u8>, head_len: usize, defect: Defect) -> Request {
    let old = head.version == "HTTP/1.0" && defect != Defect::OldStaysOpen;
    let both = defect == Defect::TakesBothAndCloses
        && !head.values("Content-Length").is_empty()
        && !head.values("Transfer-Encoding").is_empty();
    Request {
        close: old || both || (head.has("Connection", "close") && defect != Defect::IgnoresClose),
        expects: head.expects(),
        method: head.method,
        path: head.path,
        body,
        head_len,
    }
}

fn head(bytes: &[u8], defect: Defect) -> Result<Head, u16> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, path, version] = words[..] else {
        return Err(400);
    };
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) && defect != Defect::TakesAnyVersion {
        return Err(505);
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(400_u16)?;
        if name.trim() != name && defect != Defect::TakesSpaceBeforeColon {
            return Err(400);
        }
        fields.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let head = Head {
        method: method.to_owned(),
        path: path.to_owned(),
        version: version.to_owned(),
        fields,
        exact: defect == Defect::ExactFieldNames,
    };
    let hosts = head.values("Host").len();
    if version == "HTTP/1.1" && hosts != 1 && defect != Defect::TakesNoHost {
        return Err(400);
    }
    Ok(head)
}

fn framing(head: &Head, defect: Defect) -> Result<Body, u16> {
    let (lengths, codings) = (
        head.values("Content-Length"),
        head.values("Transfer-Encoding"),
    );
    let both_taken = [Defect::TakesBoth, Defect::TakesBothAndCloses].contains(&defect);
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Body::Length(0)),
        (_, [_]) if defect == Defect::NoChunks => Ok(Body::Length(0)),
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Body::Chunks),
        ([], [_]) if defect == Defect::TakesUnknownCoding => Ok(Body::Length(0)),
        ([], _) => Err(501),
        (_, [_, ..]) if both_taken => Ok(Body::Chunks),
        (_, [_, ..]) => Err(400),
        ([_, _, ..], []) if defect != Defect::TakesFirstLength => Err(400),
        ([length, ..], []) => self::length(length, defect).map(Body::Length),
    }
}

fn length(text: &str, defect: Defect) -> Result<usize, u16> {
    let text = match (defect, text.as_bytes().first()) {
        (Defect::TakesPlus, Some(b'+')) => &text[1..],
        (Defect::TakesMinus, Some(b'-')) => "0",
        _ => text,
    };
    if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(400);
    }
    text.parse().map_err(|_| 413)
}

/// The body that these chunks are, and how many bytes they took.
fn chunks(bytes: &[u8], rules: Rules) -> Result<Option<(Vec<u8>, usize)>, u16> {
    let defect = rules.defect;
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(end) = line_end(&bytes[at..]) else {
            return Ok(None);
        };
        let size = size(&bytes[at..at + end], defect)?;
        at += end + 2;
        if size == 0 || (defect == Defect::OneChunkOnly && !body.is_empty()) {
            break;
        }
        let Some(data) = bytes.get(at..at.saturating_add(size).saturating_add(2)) else {
            return Ok(None);
        };
        let (data, line_end) = data.split_at(size);
        if line_end != b"\r\n" && defect != Defect::SkipsLineEnd {
            return Err(400);
        }
        body.extend_from_slice(data);
        at += size + 2;
        if body.len() > limit(rules) && defect != Defect::ChunksUnlimited {
            return Err(413);
        }
    }
    while let Some(end) = line_end(&bytes[at..]) {
        at += end + 2;
        if end == 0 || defect == Defect::NoTrailers {
            return Ok(Some((body, at)));
        }
    }
    Ok(None)
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == b"\r\n")
}

fn size(line: &[u8], defect: Defect) -> Result<usize, u16> {
    let text = String::from_utf8_lossy(line).into_owned();
    let digits = text.split(';').next().unwrap_or_default();
    match defect {
        Defect::NoExtensions if digits != text => return Err(400),
        Defect::DecimalSizes => return digits.parse().map_err(|_| 400),
        Defect::WrapsSize => {
            let value = u128::from_str_radix(digits, 16);
            return value.map(|value| value as u64 as usize).map_err(|_| 400);
        }
        // Digits as far as there are some, as `strtol` has it.
        Defect::TakesAnySize => {
            let digits = digits
                .trim_start_matches(['+', '-'])
                .trim_start_matches("0x");
            let end = digits.find(|letter: char| !letter.is_ascii_hexdigit());
            let digits = &digits[..end.unwrap_or(digits.len())];
            return Ok(usize::from_str_radix(digits, 16).unwrap_or(5));
        }
        _ => {}
    }
    if digits.is_empty() || !digits.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return Err(400);
    }
    usize::from_str_radix(digits, 16).map_err(|_| 413)
}
