//! Whole frames in, echoes out, within the same buffer and without I/O.
//!
//! A server's frame is four bytes shorter than the client's that it echoes. So the echoes of all frames of a read are put
//! one behind the other at the front of the buffer that they were read into, always behind the frame that is being
//! decoded: a payload is moved once, while it is unmasked, and the whole read is answered by one piece of memory.

use crate::frame::{self, CloseReason, Header, Opcode, SERVER_HEADER_BYTES_MAX, Stop};
use crate::mask::unmask;

/// A fragmented message's memory is kept for the next one up to this many bytes.
const ASSEMBLY_BYTES_KEPT: usize = 64 * 1024;

/// Whole messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many.
    pub messages: u64,
    /// Their payload.
    pub payload_bytes: u64,
}

impl Counts {
    fn add(&mut self, payload_bytes: usize) {
        self.messages += 1;
        self.payload_bytes += payload_bytes as u64;
    }
}

/// Why the decoder came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// What is left is the beginning of a frame; of that frame the length, if its header has come.
    Starved(Option<usize>),
    /// A fragmented message is complete and its echo is to be sent ([`Decoder::assembled`]), behind what is ready and before
    /// what follows.
    Assembled,
    /// There is nothing more to be read.
    Stopped(Stop),
}

/// What became of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// So many bytes at its front are frames to be sent.
    pub ready: usize,
    /// So many bytes of it were taken in; the rest is as it was.
    pub taken: usize,
    /// Why it stopped there.
    pub pause: Pause,
}

/// What is known from one frame to the next: a message whose fragments are coming.
#[derive(Debug, Default)]
pub struct Decoder {
    open: Option<Opcode>,
    /// Room for the longest header, and the payload so far.
    assembly: Vec<u8>,
    /// Where in `assembly` a complete message's frame begins.
    assembled_at: Option<usize>,
}

/// Where things are in the buffer.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The payload that is being decoded.
    payload: usize,
    /// Where the next echo goes.
    ready: usize,
}

impl Decoder {
    /// Takes in the whole frames at the front of `bytes`. Pongs are written to `pongs` if there is such a thing; otherwise
    /// they are put among the echoes, where their pings were.
    pub fn decode(
        &mut self,
        bytes: &mut [u8],
        message_bytes_max: usize,
        mut pongs: Option<&mut Vec<u8>>,
        counts: &mut Counts,
    ) -> Decoded {
        let (mut taken, mut ready) = (0, 0);
        let pause = loop {
            let header = match frame::parse_header(&bytes[taken..], message_bytes_max) {
                Ok(Some(header)) => header,
                Ok(None) => break Pause::Starved(None),
                Err(reason) => break Pause::Stopped(Stop::Violation(reason)),
            };
            if let Err(reason) = self.admit(&header, message_bytes_max) {
                break Pause::Stopped(Stop::Violation(reason));
            }
            let frame_bytes = header.header_bytes + header.payload_bytes;
            if bytes.len() - taken < frame_bytes {
                break Pause::Starved(Some(frame_bytes));
            }
            let place = Place { payload: taken + header.header_bytes, ready };
            match self.take(bytes, place, &header, pongs.as_deref_mut(), counts) {
                Ok(now_ready) => ready = now_ready,
                Err(stop) => break Pause::Stopped(stop),
            }
            taken += frame_bytes;
            if self.assembled_at.is_some() {
                break Pause::Assembled;
            }
        };
        Decoded { ready, taken, pause }
    }

    /// The echo of a fragmented message that is complete; empty if there is none.
    pub fn assembled(&self) -> &[u8] {
        self.assembled_at.map_or(&[], |at| &self.assembly[at..])
    }

    /// To be called when that has been sent.
    pub fn clear_assembled(&mut self) {
        if self.assembled_at.take().is_some() {
            self.assembly.clear();
            self.assembly.shrink_to(ASSEMBLY_BYTES_KEPT);
        }
    }

    /// Whether a frame may come now, and with its message's length so far.
    fn admit(&self, header: &Header, message_bytes_max: usize) -> Result<(), CloseReason> {
        match (header.opcode, self.open) {
            (Opcode::Continuation, None) | (Opcode::Text | Opcode::Binary, Some(_)) => Err(CloseReason::Protocol),
            (Opcode::Continuation, Some(_)) => {
                let so_far = self.assembly.len() - SERVER_HEADER_BYTES_MAX;
                if header.payload_bytes > message_bytes_max - so_far { Err(CloseReason::TooLarge) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Takes in one frame; where the echo after it goes.
    fn take(
        &mut self,
        bytes: &mut [u8],
        place: Place,
        header: &Header,
        pongs: Option<&mut Vec<u8>>,
        counts: &mut Counts,
    ) -> Result<usize, Stop> {
        let length = header.payload_bytes;
        match header.opcode {
            Opcode::Text | Opcode::Binary if header.is_final => {
                let ready = echo(bytes, place, header, header.opcode);
                if header.opcode == Opcode::Text {
                    check_utf8(&bytes[ready - length..ready])?;
                }
                counts.add(length);
                return Ok(ready);
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                let payload = unmask_in_place(bytes, place, header);
                self.collect(payload, header, counts)?;
            }
            Opcode::Ping => match pongs {
                None => return Ok(echo(bytes, place, header, Opcode::Pong)),
                Some(pongs) => {
                    let mut head = [0; SERVER_HEADER_BYTES_MAX];
                    let head_bytes = frame::write_server_header(&mut head, Opcode::Pong, length);
                    pongs.extend_from_slice(&head[..head_bytes]);
                    pongs.extend_from_slice(unmask_in_place(bytes, place, header));
                }
            },
            Opcode::Pong => {}
            Opcode::Close => return Err(frame::read_close(unmask_in_place(bytes, place, header))),
        }
        Ok(place.ready)
    }

    /// Takes in a fragment.
    fn collect(&mut self, payload: &[u8], header: &Header, counts: &mut Counts) -> Result<(), Stop> {
        if header.opcode != Opcode::Continuation {
            self.open = Some(header.opcode);
            self.assembly.clear();
            self.assembly.resize(SERVER_HEADER_BYTES_MAX, 0);
        }
        self.assembly.extend_from_slice(payload);
        if !header.is_final {
            return Ok(());
        }
        let Some(opcode) = self.open.take() else { return Ok(()) };
        let message = &self.assembly[SERVER_HEADER_BYTES_MAX..];
        if opcode == Opcode::Text {
            check_utf8(message)?;
        }
        let length = message.len();
        counts.add(length);
        let at = SERVER_HEADER_BYTES_MAX - frame::server_header_bytes(length);
        frame::write_server_header(&mut self.assembly[at..], opcode, length);
        self.assembled_at = Some(at);
        Ok(())
    }
}

/// Makes the frame at `place` one to be sent, behind those that are ready; where the next one goes.
fn echo(bytes: &mut [u8], place: Place, header: &Header, opcode: Opcode) -> usize {
    // Four bytes shorter than the client's header, so it ends before the payload that has still to be read.
    let to = place.ready + frame::write_server_header(&mut bytes[place.ready..], opcode, header.payload_bytes);
    unmask(bytes, place.payload, to, header.payload_bytes, header.mask);
    to + header.payload_bytes
}

fn unmask_in_place<'a>(bytes: &'a mut [u8], place: Place, header: &Header) -> &'a [u8] {
    unmask(bytes, place.payload, place.payload, header.payload_bytes, header.mask);
    &bytes[place.payload..place.payload + header.payload_bytes]
}

fn check_utf8(text: &[u8]) -> Result<(), Stop> {
    std::str::from_utf8(text).map(drop).map_err(|_| Stop::Violation(CloseReason::NotUtf8))
}
