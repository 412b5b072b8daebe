//! Requests as fields, made once for each kind.

use super::hpack::Part;
use crate::h1::{InvalidRequest, Method, NumberedBody, Path, RequestSpec};

/// The fields and the body of a kind of request.
#[derive(Debug, Clone)]
pub struct Template {
    pub(super) parts: Vec<Part>,
    pub(super) body: Option<NumberedBody>,
    pub(super) is_head: bool,
}

/// A field that is always the same.
pub(super) fn field(name: &str, value: &str) -> Part {
    Part::Field(
        name.to_ascii_lowercase().into_bytes().into(),
        value.as_bytes().into(),
    )
}

impl Template {
    /// Requests of this kind. Their host becomes `:authority`; HTTP/2 has nothing for [`RequestSpec::close`].
    ///
    /// # Errors
    /// There can be no such request.
    pub fn new(spec: &RequestSpec<'_>) -> Result<Self, InvalidRequest> {
        spec.check()?;
        let body = spec.body_bytes.map(NumberedBody::new);
        let mut parts = vec![
            field(":method", spec.method.name()),
            field(":scheme", "http"),
            field(":authority", spec.host),
            match spec.path {
                Path::Fixed(path) => field(":path", path),
                Path::Numbered(start) => Part::NumberedPath(start.as_bytes().into()),
            },
        ];
        parts.extend(spec.fields.iter().map(|(name, value)| field(name, value)));
        if let Some(body) = &body {
            parts.push(field("content-length", &body.len().to_string()));
        }
        Ok(Self {
            parts,
            body,
            is_head: spec.method == Method::Head,
        })
    }

    /// The body, if requests have one.
    #[must_use]
    pub fn body(&self) -> Option<&NumberedBody> {
        self.body.as_ref()
    }

    /// How many bytes of body each request has.
    pub(super) fn body_len(&self) -> usize {
        self.body.as_ref().map_or(0, NumberedBody::len)
    }

    /// Appends `len` bytes of the body of request `number`, from `offset`.
    pub(super) fn append_body(&self, number: u64, offset: usize, len: usize, out: &mut Vec<u8>) {
        let Some(body) = &self.body else {
            return;
        };
        let (digits, digits_len) = body.number(number);
        let end = offset + len;
        let of_digits = offset.min(digits_len)..end.min(digits_len);
        out.extend_from_slice(&digits[of_digits]);
        let of_rest = offset.saturating_sub(digits_len)..end.saturating_sub(digits_len);
        out.extend_from_slice(&body.rest()[of_rest]);
    }
}
