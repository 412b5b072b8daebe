//! What requests ask for, whatever the protocol.

use http_target::routes;

/// A method, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 9110")]
pub enum Method {
    Get,
    Head,
    Post,
    Other,
}

impl Method {
    /// Reads its name.
    pub fn read(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            _ => Self::Other,
        }
    }
}

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the contract")]
pub enum Resource {
    Root,
    Health,
    Metrics,
    Bytes(usize),
    Item(u64),
    Sum,
    Unknown,
}

impl Resource {
    /// Reads a request's target: a path with or without a query, or a whole URL.
    pub fn read(target: &[u8]) -> Self {
        let target = match target.strip_prefix(b"http://") {
            Some(rest) => rest.iter().position(|byte| *byte == b'/').map_or(&b"/"[..], |at| &rest[at..]),
            None => target,
        };
        let path = target.iter().position(|byte| *byte == b'?').map_or(target, |at| &target[..at]);
        if let Some(digits) = path.strip_prefix(b"/bytes/") {
            return routes::byte_count(digits).map_or(Self::Unknown, Self::Bytes);
        }
        if let Some(digits) = path.strip_prefix(b"/json/") {
            return routes::item(digits).map_or(Self::Unknown, Self::Item);
        }
        match path {
            b"/" => Self::Root,
            b"/healthz" => Self::Health,
            b"/sum" => Self::Sum,
            b"/metrics" => Self::Metrics,
            _ => Self::Unknown,
        }
    }
}

/// A request, read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// GET, or HEAD, of something other than a sum.
    Get(Resource),
    /// `POST /sum`: of the body, the CRC-32 and the length.
    Sum(u32, usize),
    /// A method that the path does not have, which has these.
    NotAllowed(&'static str),
}

impl Call {
    /// What a method and a path are. A sum is filled in when the body has been read.
    pub fn new(method: Method, resource: Resource) -> Self {
        match (method, resource) {
            (Method::Post, Resource::Sum) => Self::Sum(0, 0),
            (_, Resource::Sum) => Self::NotAllowed("POST"),
            (Method::Get | Method::Head, _) => Self::Get(resource),
            _ => Self::NotAllowed("GET, HEAD"),
        }
    }
}

/// A body, as it comes: what is wanted of it, and nothing kept.
#[derive(Debug, Clone)]
pub struct Summing {
    call: Call,
    hasher: crc32fast::Hasher,
    length: usize,
    most: usize,
}

/// A body is longer than is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Summing {
    /// The body of a request, of at most `most` bytes.
    pub fn new(call: Call, most: usize) -> Self {
        Self { call, hasher: crc32fast::Hasher::new(), length: 0, most }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// When it is too much.
    pub fn update(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        self.length += piece.len();
        if self.length > self.most {
            return Err(TooLong);
        }
        if matches!(self.call, Call::Sum(..)) {
            self.hasher.update(piece);
        }
        Ok(())
    }

    /// How much has come.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The request, now that its body has been read.
    pub fn finish(self) -> Call {
        match self.call {
            Call::Sum(..) => Call::Sum(self.hasher.finalize(), self.length),
            call => call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_every_form() {
        for (target, resource) in [
            ("/", Resource::Root),
            ("/?/bytes/1", Resource::Root),
            ("/bytes/17?x", Resource::Bytes(17)),
            ("/json/0", Resource::Item(0)),
            ("/sum", Resource::Sum),
            ("/healthz", Resource::Health),
            ("/sum/", Resource::Unknown),
            ("/json/", Resource::Unknown),
            ("", Resource::Unknown),
            ("*", Resource::Unknown),
            ("http://host:80/bytes/3", Resource::Bytes(3)),
            ("http://host", Resource::Root),
        ] {
            assert_eq!(Resource::read(target.as_bytes()), resource, "{target}");
        }
    }

    #[test]
    fn bodies_are_summed_piece_by_piece() {
        let mut body = Summing::new(Call::Sum(0, 0), 9);
        for piece in ["1234", "", "56789"] {
            assert_eq!(body.update(piece.as_bytes()), Ok(()));
        }
        // The check value of CRC-32.
        assert_eq!(body.clone().finish(), Call::Sum(0xCBF4_3926, 9));
        assert_eq!(body.update(b"0"), Err(TooLong));
    }
}
