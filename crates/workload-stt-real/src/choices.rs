//! The user's choices, as a dialect takes them.

use std::path::PathBuf;

use plimsoll_speech::plan::FrameLength;
use plimsoll_workload::{Refusal, Values};

use crate::dialect::template::Template;
use crate::dialect::{Dialect, Field, Key, KeyPlace, OptionError, Options, Turns, by_name};

/// The dialect of these values, for a server whose URL has this path and query.
pub(crate) fn dialect(values: &Values, target: &str) -> Result<Box<dyn Dialect>, Refusal> {
    let made = Spoken::of(values).with(&options(values, target));
    made.map_err(|error| Refusal::new(error.to_string()))
}

/// What a server speaks: a dialect that is built in, or one that a file describes.
#[derive(Debug, Clone)]
pub(crate) enum Spoken {
    Name(String),
    File(PathBuf),
}

impl Spoken {
    pub(crate) fn of(values: &Values) -> Self {
        match values.file("dialect") {
            Some(file) => Self::File(file.to_owned()),
            None => Self::Name(values.word("dialect").unwrap_or("deepgram").to_owned()),
        }
    }

    /// The dialect with these options.
    pub(crate) fn with(&self, options: &Options) -> Result<Box<dyn Dialect>, OptionError> {
        let file = match self {
            Self::Name(name) => return by_name(name, options),
            Self::File(file) => file,
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| OptionError::Template(format!("{}: {error}", file.display())))?;
        Ok(Box::new(Template::parse(&text, options)?))
    }
}

/// The user's options, for a server whose URL has this path and query.
pub(crate) fn options(values: &Values, target: &str) -> Options {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let fields = query.split('&').filter(|field| !field.is_empty());
    let query = fields.map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        Field::new(decoded(name), decoded(value))
    });
    let params = values.fields("param").into_iter();
    let params = params.flat_map(plimsoll_workload::Fields::iter);
    Options {
        path: Some(path.to_owned()),
        query: query.collect(),
        params: params
            .map(|(name, value)| Field::new(name, value))
            .collect(),
        model: values.word("model").map(str::to_owned),
        language: values.word("language").unwrap_or("en").to_owned(),
        turns: match values.word("turns") {
            Some("client") => Turns::Client,
            _ => Turns::Server,
        },
        key: values.secret("key").map(|value| Key {
            value: value.clone(),
            place: KeyPlace::Header,
        }),
        frame_ms: values.word("frame_ms").and_then(|ms| ms.parse().ok()),
    }
}

/// The length of the dialect's frames.
pub(crate) fn frame(dialect: &dyn Dialect) -> Result<FrameLength, Refusal> {
    let ms = dialect.audio().frame_ns / 1_000_000;
    let frame = u32::try_from(ms).ok().and_then(FrameLength::of_ms);
    frame.ok_or_else(|| {
        Refusal(format!(
            "messages of {ms} ms are not made here; give --frame-ms 20, 40, 80 or 100, or frame_ms in the dialect's file"
        ))
    })
}

/// A part of a query without its percent-encoding (RFC 3986, section 2.1). What is not encoded rightly stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (first, _) => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::Value;

    #[test]
    fn a_query_is_read_as_it_will_be_written() {
        assert_eq!(decoded("a%20b%26c%3Dd%C3%A9"), "a b&c=dé");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%ff"), "%zz%ff");
        let values = Values::default().with("dialect", Value::Word("deepgram".to_owned()));
        let once = dialect(&values, "/v1/listen?keyterm=a%20b&model=nova-2").unwrap();
        let target_once = once.connect().target().expose().to_owned();
        assert!(target_once.contains("keyterm=a%20b") && target_once.contains("model=nova-2"));
        let twice = dialect(&values, &target_once).unwrap();
        assert_eq!(twice.connect().target().expose(), target_once);
    }

    #[test]
    fn a_path_of_the_user_takes_the_place_of_the_dialects() {
        let values = Values::default().with("dialect", Value::Word("deepgram".to_owned()));
        let own = dialect(&values, "/").unwrap();
        assert!(own.connect().target().expose().starts_with("/v1/listen?"));
        let users = dialect(&values, "/asr").unwrap();
        assert!(users.connect().target().expose().starts_with("/asr?"));
    }
}
