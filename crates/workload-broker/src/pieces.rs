//! What arrives, in any pieces, into the units of a protocol: lines, with a payload behind some, or frames with a length in
//! front. A unit that arrives whole is not copied; a split one is gathered.

use memchr::memchr;
use thiserror::Error;

/// The longest line.
pub const LINE_MAX_BYTES: usize = 64 * 1024;

/// What is wrong with a line of any protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LineFlaw {
    /// No line ends within [`LINE_MAX_BYTES`].
    #[error("a line is longer than 65,536 bytes")]
    TooLong,
    /// A line ends with LF alone.
    #[error("a line does not end with CR LF")]
    End,
}

/// A protocol of lines that end with CR LF. Some lines announce a payload behind them.
pub trait Lines {
    /// A line with its payload, or a part of it.
    type Unit<'a>;
    /// A rule that the server broke.
    type Flaw: From<LineFlaw>;

    /// What stands at the beginning of some bytes.
    ///
    /// # Errors
    /// The server broke the protocol.
    fn cut(bytes: &[u8]) -> Result<Cut<Self::Unit<'_>>, Self::Flaw>;

    /// The mark of a part, whose rest has not come.
    fn part<'a>() -> Self::Unit<'a>;
}

/// What stands at the beginning of some bytes.
#[derive(Debug)]
pub enum Cut<U> {
    /// A unit of this length.
    Whole(usize, U),
    /// The beginning of a unit of this length.
    Needs(usize),
    /// The beginning of a line.
    Line,
}

/// The line at the beginning of some bytes without its end, and how long it is with it. `None` if its end has not come.
///
/// # Errors
/// The line is too long, or ends with LF alone.
#[inline]
pub fn line(bytes: &[u8]) -> Result<Option<(usize, &[u8])>, LineFlaw> {
    let window = &bytes[..bytes.len().min(LINE_MAX_BYTES)];
    match memchr(b'\n', window) {
        Some(end) => {
            let line = bytes[..end].strip_suffix(b"\r").ok_or(LineFlaw::End)?;
            Ok(Some((end + 1, line)))
        }
        None if bytes.len() >= LINE_MAX_BYTES => Err(LineFlaw::TooLong),
        None => Ok(None),
    }
}

/// Cuts the stream of bytes into the units of a protocol of lines.
///
/// It allocates only when a unit is split between two reads, and keeps that buffer.
#[derive(Debug, Clone)]
pub struct LineReader<P> {
    /// The bytes so far of a split unit.
    held: Vec<u8>,
    /// Its whole length, once its line says so.
    whole_bytes: Option<usize>,
    /// What was held has been handed on.
    is_handed: bool,
    protocol: std::marker::PhantomData<P>,
}

impl<P: Lines> LineReader<P> {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            held: Vec::new(),
            whole_bytes: None,
            is_handed: false,
            protocol: std::marker::PhantomData,
        }
    }

    /// Its memory: at most a line and a payload.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Reads the next unit: how many bytes of `input` it used, and the unit. `None` if no input is left.
    ///
    /// # Errors
    /// The server broke the protocol.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Option<(usize, P::Unit<'a>)>, P::Flaw> {
        if self.is_handed {
            self.is_handed = false;
            self.whole_bytes = None;
            self.held.clear();
        }
        if input.is_empty() {
            return Ok(None);
        }
        if self.held.is_empty() {
            match P::cut(input)? {
                Cut::Whole(used, unit) => return Ok(Some((used, unit))),
                Cut::Needs(whole) => self.whole_bytes = Some(whole),
                Cut::Line => {}
            }
        }
        self.next_split(input)
    }

    /// Gathers a unit that is split between reads.
    #[cold]
    fn next_split<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<Option<(usize, P::Unit<'a>)>, P::Flaw> {
        let take = match self.whole_bytes {
            Some(whole) => input.len().min(whole - self.held.len()),
            None => memchr(b'\n', input).map_or(input.len(), |at| at + 1),
        };
        if self.whole_bytes.is_none() && self.held.len() + take > LINE_MAX_BYTES {
            return Err(LineFlaw::TooLong.into());
        }
        self.held.extend_from_slice(&input[..take]);
        let is_enough = match self.whole_bytes {
            Some(whole) => self.held.len() == whole,
            None => self.held.ends_with(b"\n"),
        };
        if !is_enough {
            return Ok(Some((take, P::part())));
        }
        match P::cut(&self.held)? {
            Cut::Whole(_, unit) => {
                self.is_handed = true;
                Ok(Some((take, unit)))
            }
            Cut::Needs(whole) => {
                self.whole_bytes = Some(whole);
                Ok(Some((take, P::part())))
            }
            Cut::Line => Ok(Some((take, P::part()))),
        }
    }
}

impl<P: Lines> Default for LineReader<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A protocol of frames that begin with their length.
pub trait Frames {
    /// A whole frame.
    type Unit<'a>;
    /// The bytes are not frames of the protocol.
    type Flaw;
    /// How many bytes say how long a frame is.
    const HEAD_BYTES: usize;
    /// Memory for a frame that came in pieces is kept for the next one up to this many bytes.
    const KEPT_BYTES: usize;

    /// The length of the frame that begins here, if that is known yet. What is wrong with it is told as soon as it is there.
    ///
    /// # Errors
    /// The bytes are not frames of this protocol.
    fn whole_length(bytes: &[u8]) -> Result<Option<usize>, Self::Flaw>;

    /// Reads a frame that is whole.
    fn parse(whole: &[u8]) -> Self::Unit<'_>;
}

/// Cuts the stream of bytes into frames.
#[derive(Debug)]
pub struct FrameReader<P> {
    /// The beginning of a frame.
    kept: Vec<u8>,
    /// `kept` is a whole frame, which was lent.
    is_lent: bool,
    protocol: std::marker::PhantomData<P>,
}

/// A frame, and how many of the given bytes it used.
type Next<'a, P> = Result<Option<(usize, <P as Frames>::Unit<'a>)>, <P as Frames>::Flaw>;

impl<P: Frames> FrameReader<P> {
    /// A reader at the beginning of a frame.
    #[must_use]
    pub fn new() -> Self {
        Self {
            kept: Vec::new(),
            is_lent: false,
            protocol: std::marker::PhantomData,
        }
    }

    /// Its memory: at most a frame.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// The next frame, and how many of these bytes it used. Without a frame all of them are used, and kept.
    ///
    /// # Errors
    /// The bytes are not frames of this protocol.
    #[inline]
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Next<'a, P> {
        if std::mem::take(&mut self.is_lent) {
            self.kept.clear();
            self.kept.shrink_to(P::KEPT_BYTES);
        }
        if !self.kept.is_empty() {
            return self.complete(bytes);
        }
        if let Some(length) = P::whole_length(bytes)?
            && let Some(whole) = bytes.get(..length)
        {
            return Ok(Some((length, P::parse(whole))));
        }
        self.kept.extend_from_slice(bytes);
        Ok(None)
    }

    /// Takes as many bytes as the frame that has begun still needs.
    fn complete<'a>(&'a mut self, bytes: &[u8]) -> Next<'a, P> {
        let mut used = 0;
        loop {
            let wanted = P::whole_length(&self.kept)?.unwrap_or(P::HEAD_BYTES);
            let missing = wanted - self.kept.len();
            if missing == 0 {
                self.is_lent = true;
                return Ok(Some((used, P::parse(&self.kept))));
            }
            let taken = missing.min(bytes.len() - used);
            if taken == 0 {
                return Ok(None);
            }
            self.kept.extend_from_slice(&bytes[used..used + taken]);
            used += taken;
        }
    }
}

impl<P: Frames> Default for FrameReader<P> {
    fn default() -> Self {
        Self::new()
    }
}
