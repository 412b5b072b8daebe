//! Frames, as a server reads them, with the defects under test.

use plimsoll_protocol::websocket::mask_in_place;

use super::Defect;

/// A client frame.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) fin: bool,
    pub(super) opcode: u8,
    pub(super) payload: Vec<u8>,
}

/// Takes the first frame off `buffer`: `Ok(None)` when it is not complete, the close code when it breaks a rule.
pub(super) fn take_frame(
    buffer: &mut Vec<u8>,
    max: u64,
    defect: Defect,
) -> Result<Option<Frame>, u16> {
    let [first, second, ..] = buffer[..] else {
        return Ok(None);
    };
    let (fin, opcode, masked, short) = (
        first & 0x80 != 0,
        first & 0x0F,
        second & 0x80 != 0,
        second & 0x7F,
    );
    let control = opcode & 0x8 != 0;
    let broken = [
        (first & 0x70 != 0, Defect::TakesReservedBits),
        (
            !matches!(opcode, 0 | 1 | 2 | 8 | 9 | 10),
            Defect::TakesBadOpcodes,
        ),
        (!masked, Defect::TakesUnmasked),
        (control && !fin, Defect::TakesFragmentedControl),
        (control && short > 125, Defect::TakesLongControl),
    ];
    if broken
        .iter()
        .any(|(broken, taken)| *broken && *taken != defect)
    {
        return Err(1002);
    }
    let extended = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let head = 2 + extended + if masked { 4 } else { 0 };
    if buffer.len() < head {
        return Ok(None);
    }
    let field = &buffer[2..2 + extended];
    let long = field
        .iter()
        .fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
    let len = if extended == 0 {
        u64::from(short)
    } else {
        long
    };
    let too_long = len > max;
    if too_long && !matches!(defect, Defect::AnySize | Defect::WaitsForPayload) {
        return Err(1009);
    }
    let end = u64::try_from(head).unwrap_or(0).saturating_add(len);
    if (buffer.len() as u64) < end {
        return Ok(None);
    }
    if too_long && defect == Defect::WaitsForPayload {
        return Err(1009);
    }
    let end = usize::try_from(end).map_err(|_| 1009_u16)?;
    let mut payload = buffer[head..end].to_vec();
    if masked {
        let mask: [u8; 4] = buffer[head - 4..head].try_into().map_err(|_| 1002_u16)?;
        mask_in_place(&mut payload, mask, 0);
    }
    buffer.drain(..end);
    Ok(Some(Frame {
        fin,
        opcode,
        payload,
    }))
}
