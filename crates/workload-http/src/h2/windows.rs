//! Flow control (RFC 9113, section 5.2), the same on both sides.

use super::frame::{
    DEFAULT_WINDOW, FRAME_MAX_BYTES, WINDOW_MAX, append_header, append_window_update, flag, kind,
};
use super::violation::Violation;

/// The window that we give each stream. A body of 1 MiB never waits, and needs no WINDOW_UPDATE.
pub const STREAM_WINDOW: u32 = 4 << 20;

/// The window that we give the connection: a hundred streams with bodies of 1 MiB use a tenth.
pub const CONNECTION_WINDOW: u32 = 1 << 30;

/// What the peer may send, of a stream or the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceiveWindow {
    full: u32,
    /// Received since the window was last full.
    used: u32,
}

impl ReceiveWindow {
    pub(super) fn new(full: u32) -> Self {
        Self { full, used: 0 }
    }

    #[inline]
    pub(super) fn take(&mut self, bytes: u32) -> Result<(), Violation> {
        self.used += bytes;
        if self.used > self.full {
            Err(Violation::WindowOverrun)
        } else {
            Ok(())
        }
    }

    /// Opens the window again when half is used: few, large steps.
    #[inline]
    pub(super) fn open(&mut self, stream: u32, out: &mut Vec<u8>) {
        if self.used >= self.full / 2 {
            append_window_update(out, stream, self.used);
            self.used = 0;
        }
    }
}

/// What we may send.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendWindows {
    pub(super) connection: i64,
    /// The window of a new stream.
    pub(super) initial: i64,
}

impl Default for SendWindows {
    fn default() -> Self {
        Self {
            connection: i64::from(DEFAULT_WINDOW),
            initial: i64::from(DEFAULT_WINDOW),
        }
    }
}

/// Enlarges a window that we send into.
pub(super) fn enlarge(window: &mut i64, increment: u32) -> Result<(), Violation> {
    if increment == 0 {
        return Err(Violation::WindowIncrement);
    }
    *window += i64::from(increment);
    if *window > i64::from(WINDOW_MAX) {
        Err(Violation::WindowOverflow)
    } else {
        Ok(())
    }
}

/// A body on its way to the peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing {
    /// What is not in the output yet.
    pub(super) left: usize,
    /// The stream's window.
    pub(super) window: i64,
}

impl Outgoing {
    /// Puts as much into the output as both windows and `out_max_bytes` allow. `append` is told how much was left, and
    /// appends so many bytes.
    pub(super) fn send(
        &mut self,
        stream: u32,
        connection_window: &mut i64,
        out_max_bytes: usize,
        out: &mut Vec<u8>,
        append: impl Fn(usize, usize, &mut Vec<u8>),
    ) {
        while self.left > 0 && out.len() < out_max_bytes {
            let window = self.window.min(*connection_window).max(0) as usize;
            let len = self.left.min(window).min(FRAME_MAX_BYTES);
            if len == 0 {
                break;
            }
            let flags = if len == self.left {
                flag::END_STREAM
            } else {
                0
            };
            append_header(out, len, kind::DATA, flags, stream);
            append(self.left, len, out);
            self.left -= len;
            // Fits: a frame is at most 16 KiB.
            self.window -= i64::from(len as u32);
            *connection_window -= i64::from(len as u32);
        }
    }
}
