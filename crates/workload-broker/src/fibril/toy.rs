//! A small server side for tests: it greets, keeps one queue in memory and hands it to one reader. Written apart from the
//! client's code, so that both must agree on the bytes.

use std::collections::VecDeque;

/// What a client has asked, and what it is answered.
#[derive(Debug, Default)]
pub(super) struct Toy {
    input: Vec<u8>,
    pub(super) messages: VecDeque<Vec<u8>>,
    pub(super) acked: Vec<u64>,
    pub(super) out: Vec<u8>,
    is_subscribed: bool,
    next: u64,
    /// Messages are refused.
    pub(super) is_full: bool,
}

pub(super) fn frame(op: u16, flags: u32, request: u64, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small");
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend([0, 1]);
    bytes.extend(op.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes.extend(request.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(super) fn text(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("small");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

pub(super) fn error(request: u64, code: u16, why: &str) -> Vec<u8> {
    let payload = [&b"FER1"[..], &code.to_be_bytes(), &text(why)].concat();
    frame(255, 0, request, &payload)
}

fn number(bytes: &[u8], at: usize) -> usize {
    let number = u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
    usize::try_from(number).expect("64 bits")
}

impl Toy {
    /// Takes bytes of the client.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while self.input.len() >= 20 && self.input.len() >= 20 + number(&self.input, 0) {
            let rest = self.input.split_off(20 + number(&self.input, 0));
            let frame = std::mem::replace(&mut self.input, rest);
            let op = u16::from_be_bytes([frame[6], frame[7]]);
            let request = u64::from_be_bytes(frame[12..20].try_into().expect("eight"));
            self.answer(op, request, &frame[20..]);
        }
        self.deliver();
    }

    fn answer(&mut self, op: u16, request: u64, payload: &[u8]) {
        let (op, payload) = match op {
            1 => {
                let ids = [0; 49];
                (
                    2,
                    [&b"FHO1\0\x01"[..], &ids, &text("toy"), &text("")].concat(),
                )
            }
            10 => (11, Vec::new()),
            60 => (61, [&b"FDK1"[..], &text("created"), &[0, 0, 0, 4]].concat()),
            62 => (63, [&b"FPK1"[..], &text("exists"), &[0, 0, 0, 4]].concat()),
            30 | 64 => {
                self.is_subscribed = true;
                (
                    31,
                    [&b"FSO1"[..], &9_u64.to_be_bytes(), &text("t"), &[0; 16]].concat(),
                )
            }
            20 if self.is_full => return self.out.extend(error(request, 507, "full")),
            20 => {
                // Topic "t", no group, partition; then 23 bytes until the message.
                let at = 4 + 5 + 1 + 4 + 23;
                let length = number(payload, at);
                self.messages
                    .push_back(payload[at + 4..at + 4 + length].to_vec());
                if payload[14] == 0 {
                    return;
                }
                (25, [&b"FPO1"[..], &request.to_be_bytes()].concat())
            }
            41 => {
                let tags = payload[18..].chunks(8);
                let tags = tags.map(|tag| u64::from_be_bytes(tag.try_into().expect("eight")));
                return self.acked.extend(tags);
            }
            51 => return,
            other => panic!("opcode {other}"),
        };
        self.out.extend(frame(op, 0, request, &payload));
    }

    fn deliver(&mut self) {
        while self.is_subscribed
            && let Some(message) = self.messages.pop_front()
        {
            self.out.extend(delivery(self.next, &message));
            self.next += 1;
        }
    }
}

/// A DELIVER of subscription 9, which every third time may have come before.
pub(super) fn delivery(tag: u64, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("small");
    let payload = [
        &b"FDL1"[..],
        &9_u64.to_be_bytes(),
        &text("t"),
        &[0; 5],
        &tag.to_be_bytes(),
        &tag.to_be_bytes(),
        &[0; 16],
        &[0; 5],
        &length.to_be_bytes(),
        message,
    ]
    .concat();
    frame(40, u32::from(tag % 3 == 2), 0, &payload)
}
