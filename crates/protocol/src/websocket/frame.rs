//! Client frames (RFC 6455, section 5.2): headers, masks, and a builder that can break every rule.
//!
//! The load engine uses [`append_client_frame`], or [`client_header`] and [`mask_in_place`] where it keeps its own
//! buffers. Conformance checks use [`RawFrame`], which writes exactly what it is told, legal or not.

/// The longest header that a client frame can have: 2 + 8 bytes of length + 4 bytes of mask.
pub const CLIENT_HEADER_MAX_BYTES: usize = 14;

/// The opcodes that RFC 6455 defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further fragment of the message begun before.
    Continuation = 0x0,
    /// A UTF-8 message.
    Text = 0x1,
    /// A message of bytes.
    Binary = 0x2,
    /// The end of the session.
    Close = 0x8,
    /// A question that a [`Opcode::Pong`] with the same payload answers.
    Ping = 0x9,
    /// The answer to a ping.
    Pong = 0xA,
}

impl Opcode {
    /// The opcode of the low four bits of a frame's first byte, `None` when they are reserved.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits & 0x0F {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    /// Whether frames of this opcode are control frames: unfragmented, at most 125 bytes.
    #[must_use]
    pub fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

/// The header of a masked client frame, and how many bytes of the array it takes.
///
/// The length is declared in the shortest form that holds it, as the RFC demands.
#[must_use]
pub fn client_header(
    fin: bool,
    opcode: Opcode,
    payload_len: u64,
    mask: [u8; 4],
) -> ([u8; CLIENT_HEADER_MAX_BYTES], usize) {
    let mut header = [0; CLIENT_HEADER_MAX_BYTES];
    header[0] = u8::from(fin) << 7 | opcode as u8;
    let length_end = write_length(&mut header, payload_len, LengthForm::shortest(payload_len));
    header[1] |= MASKED;
    header[length_end..length_end + 4].copy_from_slice(&mask);
    (header, length_end + 4)
}

/// Appends one whole, masked client frame.
pub fn append_client_frame(
    out: &mut Vec<u8>,
    fin: bool,
    opcode: Opcode,
    payload: &[u8],
    mask: [u8; 4],
) {
    let (header, header_len) = client_header(fin, opcode, payload.len() as u64, mask);
    out.reserve(header_len + payload.len());
    out.extend_from_slice(&header[..header_len]);
    let start = out.len();
    out.extend_from_slice(payload);
    mask_in_place(&mut out[start..], mask, 0);
}

/// Masks (or unmasks: the operation is its own inverse) a part of a payload.
///
/// `offset` is the place of `buf[0]` in the whole payload, so that a payload can be masked piece by piece.
pub fn mask_in_place(buf: &mut [u8], mask: [u8; 4], offset: usize) {
    let key: [u8; 8] = std::array::from_fn(|i| mask[(offset + i) % 4]);
    let wide = u64::from_ne_bytes(key);
    let (chunks, tail) = buf.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip(key) {
        *byte ^= key;
    }
}

/// The mask bit of a frame's second byte.
const MASKED: u8 = 0x80;

/// How a frame declares its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LengthForm {
    /// The shortest that holds the length: the only legal one.
    #[default]
    Shortest,
    /// 7 bits; a longer length is cut off.
    Bits7,
    /// 16 bits; a longer length is cut off.
    Bits16,
    /// 64 bits.
    Bits64,
}

impl LengthForm {
    fn shortest(len: u64) -> Self {
        match len {
            0..=125 => Self::Bits7,
            126..=0xFFFF => Self::Bits16,
            _ => Self::Bits64,
        }
    }
}

/// Writes the length field and returns where it ends.
fn write_length(header: &mut [u8; CLIENT_HEADER_MAX_BYTES], len: u64, form: LengthForm) -> usize {
    let bytes = len.to_be_bytes();
    match form {
        LengthForm::Shortest => write_length(header, len, LengthForm::shortest(len)),
        LengthForm::Bits7 => {
            header[1] = bytes[7] & 0x7F;
            2
        }
        LengthForm::Bits16 => {
            header[1] = 126;
            header[2..4].copy_from_slice(&bytes[6..]);
            4
        }
        LengthForm::Bits64 => {
            header[1] = 127;
            header[2..10].copy_from_slice(&bytes);
            10
        }
    }
}

/// A frame that is written exactly as described, so that it can be illegal in any way.
///
/// ```
/// use plimsoll_protocol::websocket::{Opcode, RawFrame};
/// // A client frame without a mask: a gateway must close with 1002.
/// let unmasked = RawFrame { mask: None, ..RawFrame::new(Opcode::Binary, &[0; 640]) };
/// assert_eq!(unmasked.to_vec().len(), 4 + 640);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RawFrame<'a> {
    /// The FIN bit.
    pub fin: bool,
    /// The three reserved bits, RSV1 being 4; not 0 is illegal.
    pub reserved_bits: u8,
    /// Four bits of opcode; 3 to 7 and 11 to 15 are illegal.
    pub opcode_bits: u8,
    /// The mask; a client frame must have one, a server frame must not.
    pub mask: Option<[u8; 4]>,
    /// The length declared, where it is not the payload's.
    pub declared_len: Option<u64>,
    /// How the length is declared.
    pub length_form: LengthForm,
    /// The payload, before masking.
    pub payload: &'a [u8],
}

impl<'a> RawFrame<'a> {
    /// A legal client frame: final and masked. Change its fields to make it illegal.
    #[must_use]
    pub fn new(opcode: Opcode, payload: &'a [u8]) -> Self {
        Self {
            fin: true,
            reserved_bits: 0,
            opcode_bits: opcode as u8,
            mask: Some([0x37, 0xFA, 0x21, 0x3D]),
            declared_len: None,
            length_form: LengthForm::Shortest,
            payload,
        }
    }

    /// A legal server frame: final, without a mask.
    #[must_use]
    pub fn server(opcode: Opcode, payload: &'a [u8]) -> Self {
        Self {
            mask: None,
            ..Self::new(opcode, payload)
        }
    }

    /// Appends the frame's bytes.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let mut header = [0; CLIENT_HEADER_MAX_BYTES];
        header[0] =
            u8::from(self.fin) << 7 | (self.reserved_bits & 0x7) << 4 | (self.opcode_bits & 0x0F);
        let len = self.declared_len.unwrap_or(self.payload.len() as u64);
        let mut end = write_length(&mut header, len, self.length_form);
        if let Some(mask) = self.mask {
            header[1] |= MASKED;
            header[end..end + 4].copy_from_slice(&mask);
            end += 4;
        }
        out.extend_from_slice(&header[..end]);
        let start = out.len();
        out.extend_from_slice(self.payload);
        if let Some(mask) = self.mask {
            mask_in_place(&mut out[start..], mask, 0);
        }
    }

    /// The frame's bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CLIENT_HEADER_MAX_BYTES + self.payload.len());
        self.append_to(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc_example_of_a_masked_hello() {
        // RFC 6455, section 5.7.
        let expected = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        let mut bytes = Vec::new();
        append_client_frame(
            &mut bytes,
            true,
            Opcode::Text,
            b"Hello",
            [0x37, 0xfa, 0x21, 0x3d],
        );
        assert_eq!(bytes, expected);
        assert_eq!(RawFrame::new(Opcode::Text, b"Hello").to_vec(), expected);
    }

    #[test]
    fn length_takes_the_shortest_form() {
        for (len, header_len) in [
            (0, 6),
            (125, 6),
            (126, 8),
            (640, 8),
            (65_535, 8),
            (65_536, 14),
            (u64::MAX, 14),
        ] {
            let (header, end) = client_header(true, Opcode::Binary, len, [1, 2, 3, 4]);
            assert_eq!(end, header_len, "{len}");
            assert_eq!(header[end - 4..end], [1, 2, 3, 4]);
            assert_eq!(header[1] & MASKED, MASKED);
        }
    }

    #[test]
    fn illegal_frames_are_written_as_told() {
        let bytes = RawFrame {
            reserved_bits: 0b100,
            opcode_bits: 0xB,
            mask: None,
            declared_len: Some(70_000),
            fin: false,
            ..RawFrame::new(Opcode::Binary, b"x")
        }
        .to_vec();
        assert_eq!(
            bytes,
            [0x4B, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70, b'x'],
            "RSV1, opcode 11, no mask, 70000 declared, one byte sent"
        );
        let long_form = RawFrame {
            length_form: LengthForm::Bits16,
            mask: None,
            ..RawFrame::new(Opcode::Binary, b"x")
        };
        assert_eq!(long_form.to_vec(), [0x82, 126, 0, 1, b'x']);
    }

    #[test]
    fn opcodes_by_bits() {
        let known: Vec<u8> = (0..16)
            .filter(|b| Opcode::from_bits(*b).is_some())
            .collect();
        assert_eq!(known, [0, 1, 2, 8, 9, 10]);
        assert!(Opcode::Close.is_control() && Opcode::Ping.is_control());
        assert!(!Opcode::Binary.is_control() && !Opcode::Continuation.is_control());
    }

    proptest! {
        #[test]
        fn masking_is_the_definition_of_the_rfc(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            mask in any::<[u8; 4]>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let plain: Vec<u8> = payload.iter().enumerate().map(|(i, b)| b ^ mask[i % 4]).collect();
            let mut fast = payload.clone();
            let cut = cut.index(payload.len() + 1);
            let (head, tail) = fast.split_at_mut(cut);
            mask_in_place(head, mask, 0);
            mask_in_place(tail, mask, cut);
            prop_assert_eq!(&fast, &plain);
            mask_in_place(&mut fast, mask, 0);
            prop_assert_eq!(fast, payload);
        }

        #[test]
        fn both_writers_agree(payload in prop::collection::vec(any::<u8>(), 0..300), mask in any::<[u8; 4]>(), fin: bool) {
            let mut bytes = Vec::new();
            append_client_frame(&mut bytes, fin, Opcode::Binary, &payload, mask);
            let raw = RawFrame { fin, mask: Some(mask), ..RawFrame::new(Opcode::Binary, &payload) };
            prop_assert_eq!(bytes, raw.to_vec());
        }
    }
}
