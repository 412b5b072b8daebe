//! A line of text, in pieces that each writer escapes.

/// Good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Neither: nothing is known.
    Open,
}

/// A piece of a line of text. Each writer escapes it; nothing in it is markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Text as it is.
    Plain(String),
    /// Text that stands out.
    Strong(String),
    /// A name that a program reads: a file, a flag, a gate.
    Code(String),
    /// News.
    Toned(String, Tone),
    /// A link to the pages of a result folder below this one: its path and its name.
    Folder(String, String),
}

impl Span {
    /// The text of the piece, as it is.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Plain(text)
            | Self::Strong(text)
            | Self::Code(text)
            | Self::Toned(text, _)
            | Self::Folder(_, text) => text,
        }
    }
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// Our own sentence in which names stand between backticks.
    #[must_use]
    pub fn with_code(sentence: &str) -> Self {
        let spans = sentence.split('`').enumerate().map(|(index, piece)| {
            let piece = piece.to_owned();
            if index % 2 == 0 {
                Span::Plain(piece)
            } else {
                Span::Code(piece)
            }
        });
        Self(spans.collect())
    }

    /// Text that stands out.
    pub fn strong(text: impl Into<String>) -> Self {
        Self(vec![Span::Strong(text.into())])
    }

    /// A name that a program reads.
    pub fn code(text: impl Into<String>) -> Self {
        Self(vec![Span::Code(text.into())])
    }

    /// News.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self(vec![Span::Toned(text.into(), tone)])
    }

    /// `yes`, or `no` as bad news.
    #[must_use]
    pub fn yes_or_no(yes: bool) -> Self {
        if yes {
            Self::toned("yes", Tone::Good)
        } else {
            Self::toned("no", Tone::Bad)
        }
    }

    /// With this piece at its end.
    #[must_use]
    pub fn then(mut self, span: Span) -> Self {
        self.0.push(span);
        self
    }

    /// With this text at its end.
    #[must_use]
    pub fn then_plain(self, text: impl Into<String>) -> Self {
        self.then(Span::Plain(text.into()))
    }

    /// With another text at its end.
    #[must_use]
    pub fn joined(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Names that a program reads, as a list in a sentence.
    pub fn codes<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = Self::default();
        for name in names {
            if !text.0.is_empty() {
                text = text.then_plain(", ");
            }
            text = text.then(Span::Code(name.to_owned()));
        }
        text
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(vec![Span::Plain(text)])
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}
