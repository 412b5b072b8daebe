//! The server's side of HTTP and WebSocket, as small as the tests need it.

use std::collections::HashMap;
use std::io::Read;
use std::net::TcpStream;

use plimsoll_protocol::websocket::mask_in_place;

/// A request's head.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: HashMap<String, String>,
    /// Bytes that came behind the head.
    pub(super) rest: Vec<u8>,
}

impl Request {
    /// Reads a head; `None` when the peer went away.
    pub(super) fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            bytes.extend_from_slice(&buffer[..n]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self {
            path,
            headers,
            rest: bytes.split_off(end + 4),
        })
    }
}

/// A client frame.
#[derive(Debug)]
pub(super) struct ClientFrame {
    pub(super) fin: bool,
    pub(super) opcode: u8,
    pub(super) payload: Vec<u8>,
}

/// What a frame may be, by the defect under test.
#[derive(Clone, Copy)]
pub(super) struct Strictness {
    pub(super) unmasked: bool,
    pub(super) length_max: u64,
}

/// Takes the first frame off `buffer`: `Ok(None)` when it is not complete, the close code when it breaks a rule.
pub(super) fn take_frame(
    buffer: &mut Vec<u8>,
    allowed: Strictness,
) -> Result<Option<ClientFrame>, u16> {
    let [first, second, ..] = buffer[..] else {
        return Ok(None);
    };
    let (fin, opcode, masked, short_len) = (
        first & 0x80 != 0,
        first & 0x0F,
        second & 0x80 != 0,
        second & 0x7F,
    );
    let control = opcode & 0x8 != 0;
    let known = matches!(opcode, 0 | 1 | 2 | 8 | 9 | 10);
    if first & 0x70 != 0
        || !known
        || (!masked && !allowed.unmasked)
        || (control && (!fin || short_len > 125))
    {
        return Err(1002);
    }
    let extended = match short_len {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask_len = if masked { 4 } else { 0 };
    let head_len = 2 + extended + mask_len;
    if buffer.len() < head_len {
        return Ok(None);
    }
    let field = &buffer[2..2 + extended];
    let long_len = field
        .iter()
        .fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
    let len = if extended == 0 {
        u64::from(short_len)
    } else {
        long_len
    };
    if len > allowed.length_max {
        return Err(1009);
    }
    let end = head_len + usize::try_from(len).map_err(|_| 1009_u16)?;
    if buffer.len() < end {
        return Ok(None);
    }
    let mask: [u8; 4] = buffer[head_len - 4..head_len]
        .try_into()
        .map_err(|_| 1002_u16)?;
    let mut payload = buffer[head_len..end].to_vec();
    if masked {
        mask_in_place(&mut payload, mask, 0);
    }
    buffer.drain(..end);
    Ok(Some(ClientFrame {
        fin,
        opcode,
        payload,
    }))
}
