//! One connection with one channel.

use super::config::{AmqpConfig, Declare};
use super::confirms::Confirms;
use super::content::{Content, Message, What};
use super::frames::{FrameReader, Piece};
use super::opening::depth;
use super::publishing::Publishing;
use super::requests::{
    append_channel_open, append_connection_close, append_consume, append_declare,
};
use super::settlements::Settlements;
use super::wire::{
    CHANNEL, FRAME_MAX_BYTES, Fields, PROTOCOL_HEADER, append_heartbeat, append_method, malformed,
    method, readable,
};
use crate::dialect::{Dialect, Fault, Heard, Role};

/// The longest message that a reader takes. It bounds what a hostile broker can make us hold.
pub const BODY_MAX_BYTES: usize = 8 << 20;

/// What a broker says of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Messages that wait for a reader: neither delivered nor settled. Not those that readers hold.
    pub ready: u32,
    /// Its consumers.
    pub consumers: u32,
}

/// A writer's or a reader's connection to an AMQP 0-9-1 broker.
///
/// - Tags must rise from publish to publish: `Confirmed { up_to }` speaks of their order. A tag that was refused stays
///   refused when a newer one is confirmed with `up_to`.
/// - A message that reaches no queue is `Refused` without a tag. RabbitMQ confirms it afterwards all the same.
/// - Handles are the channel's delivery numbers. Settle each once; runs without gaps cost one frame.
pub struct Amqp {
    frames: FrameReader,
    core: Core,
}

/// All but the frame reader, so that frames can borrow from that.
pub(super) struct Core {
    pub(super) config: AmqpConfig,
    pub(super) stage: Stage,
    pub(super) publishing: Publishing,
    confirms: Confirms,
    settlements: Settlements,
    content: Content,
    /// The channel's number of the newest delivery.
    delivered: u64,
    pub(super) frame_max: usize,
    pub(super) depth: Option<Depth>,
    pub(super) version: Option<String>,
    fault: Option<Fault>,
}

/// What we wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is sent yet.
    Fresh,
    Start,
    Tune,
    OpenOk,
    ChannelOpenOk,
    DeclareOk,
    SelectOk,
    QosOk,
    ConsumeOk,
    /// Messages.
    Open,
    /// The answer to our close.
    CloseOk,
    Closed,
}

impl Amqp {
    /// A new connection.
    ///
    /// # Errors
    /// What of the config AMQP cannot say, in words.
    pub fn new(config: AmqpConfig) -> Result<Self, String> {
        config.check()?;
        Ok(Self {
            frames: FrameReader::new(),
            core: Core {
                publishing: Publishing::new(&config.queue, config.kind.is_durable()),
                config,
                stage: Stage::Fresh,
                confirms: Confirms::new(),
                settlements: Settlements::default(),
                content: Content::default(),
                delivered: 0,
                frame_max: FRAME_MAX_BYTES,
                depth: None,
                version: None,
                fault: None,
            },
        })
    }

    /// Appends a question for the queue's depth. Only after [`Heard::Ready`], and one at a time.
    pub fn ask_depth(&mut self, out: &mut Vec<u8>) {
        self.core.depth = None;
        append_declare(out, &self.core.config, Declare::Check);
    }

    /// What the broker last said of the queue: after [`Amqp::ask_depth`], and after any [`Declare`] but `Trust`.
    #[must_use]
    pub fn depth(&self) -> Option<Depth> {
        self.core.depth
    }

    /// The broker's version, as its greeting says it.
    #[must_use]
    pub fn broker_version(&self) -> Option<&str> {
        self.core.version.as_deref()
    }

    /// Whether the broker has answered our close, or we its own.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.stage == Stage::Closed
    }
}

impl Dialect for Amqp {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PROTOCOL_HEADER);
        self.core.stage = Stage::Start;
    }

    #[inline]
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        self.core.publishing.append(out, body);
        if self.core.config.confirms {
            self.core.confirms.published(tag);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        self.core.settlements.settle(out, handles);
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        if let Some(fault) = &self.core.fault {
            return Err(fault.clone());
        }
        let mut input = bytes;
        loop {
            let taken = match self.frames.next(&mut input) {
                Ok(None) => return Ok(()),
                Ok(Some(piece)) => self.core.take(piece, out, heard),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = taken {
                self.core.fault = Some(fault.clone());
                return Err(fault);
            }
            if self.core.stage == Stage::OpenOk {
                self.frames.set_frame_max(self.core.frame_max);
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        append_connection_close(out);
        self.core.stage = Stage::CloseOk;
    }

    /// The memory that it holds for torn messages and for open ones.
    fn held_bytes(&self) -> usize {
        self.frames.held_bytes()
            + self.core.content.held_bytes()
            + self.core.confirms.held_bytes()
            + self.core.settlements.held_bytes()
    }
}

impl Core {
    #[inline]
    fn take(
        &mut self,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        if matches!(self.stage, Stage::CloseOk | Stage::Closed) {
            self.take_while_closing(&piece, out);
            return Ok(());
        }
        match piece {
            Piece::Method { channel, payload } => self.method(channel, payload, out, heard),
            Piece::Header { payload } => {
                if let Some(message) = self.content.header(payload)? {
                    hand_on(&message, heard);
                }
                Ok(())
            }
            Piece::Body { bytes, ends_frame } => {
                if let Some(message) = self.content.body(bytes, ends_frame)? {
                    hand_on(&message, heard);
                }
                Ok(())
            }
            // A broker that hears nothing for two intervals ends the connection, and it sends as often as it listens.
            Piece::Heartbeat => {
                append_heartbeat(out);
                Ok(())
            }
        }
    }

    /// Section 1.4.2.8 (`connection.close`): all but the answer, and a close of the other side, is discarded.
    #[cold]
    fn take_while_closing(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        let Piece::Method {
            channel: 0,
            payload,
        } = *piece
        else {
            return;
        };
        match Fields::new(payload).u32() {
            Some(method::CONNECTION_CLOSE) => {
                append_method(out, 0, method::CONNECTION_CLOSE_OK, |_| {});
                self.stage = Stage::Closed;
            }
            Some(method::CONNECTION_CLOSE_OK) => self.stage = Stage::Closed,
            _ => {}
        }
    }

    #[inline]
    fn method(
        &mut self,
        channel: u16,
        payload: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let mut fields = Fields::new(payload);
        let id = fields.u32().ok_or_else(|| malformed("method"))?;
        if channel == CHANNEL && self.content.is_open() {
            return Err(Fault(
                "a method of the broker interrupts a message".to_owned(),
            ));
        }
        match id {
            method::BASIC_DELIVER if channel == CHANNEL => self.deliver(fields),
            method::BASIC_ACK if channel == CHANNEL => {
                let (number, up_to) = number_and_bits(fields, "basic.ack")?;
                self.confirms.confirmed(number, up_to & 1 == 1, heard)
            }
            method::BASIC_NACK if channel == CHANNEL => {
                let (number, up_to) = number_and_bits(fields, "basic.nack")?;
                let why = "the broker refused it (basic.nack)";
                self.confirms.refused(number, up_to & 1 == 1, why, heard)
            }
            _ if channel != channel_of(id) => Err(unexpected(id)),
            _ => self.control(id, fields, out, heard),
        }
    }

    #[inline]
    fn deliver(&mut self, mut fields: Fields<'_>) -> Result<(), Fault> {
        if !matches!(self.stage, Stage::Open | Stage::ConsumeOk) || self.is_writer() {
            return Err(unexpected(method::BASIC_DELIVER));
        }
        let mut parse = || {
            fields.short_text()?; // the consumer: we have one
            let number = fields.u64()?;
            let bits = fields.u8()?;
            fields.short_text()?; // exchange
            fields.short_text()?; // routing key
            fields.end()?;
            Some((number, bits & 1 == 1))
        };
        let (number, redelivered) = parse().ok_or_else(|| malformed("basic.deliver"))?;
        if number != self.delivered + 1 {
            return Err(Fault(format!(
                "the broker numbers a delivery {number} after {}",
                self.delivered
            )));
        }
        self.delivered = number;
        self.content.begin(What::Delivery {
            number,
            redelivered,
        });
        Ok(())
    }

    /// All methods but those that come with each message.
    #[cold]
    fn control(
        &mut self,
        id: u32,
        fields: Fields<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match (id, self.stage) {
            (method::CONNECTION_START, Stage::Start) => self.start(fields, out),
            (method::CONNECTION_TUNE, Stage::Tune) => self.tune(fields, out),
            (method::CONNECTION_OPEN_OK, Stage::OpenOk) => {
                append_channel_open(out);
                self.stage = Stage::ChannelOpenOk;
                Ok(())
            }
            (method::CHANNEL_OPEN_OK, Stage::ChannelOpenOk) => {
                self.declare(out, heard);
                Ok(())
            }
            (method::QUEUE_DECLARE_OK, Stage::DeclareOk | Stage::Open) => {
                self.depth = Some(depth(fields)?);
                if self.stage == Stage::DeclareOk {
                    self.prepare(out, heard);
                }
                Ok(())
            }
            (method::BASIC_QOS_OK, Stage::QosOk) => {
                append_consume(out, &self.config);
                self.stage = Stage::ConsumeOk;
                Ok(())
            }
            (method::CONFIRM_SELECT_OK, Stage::SelectOk)
            | (method::BASIC_CONSUME_OK, Stage::ConsumeOk) => {
                self.ready(heard);
                Ok(())
            }
            _ => self.announcement(id, fields, out, heard),
        }
    }

    /// What the broker says unasked.
    fn announcement(
        &mut self,
        id: u32,
        mut fields: Fields<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match id {
            method::CONNECTION_BLOCKED => heard(Heard::Blocked(true)),
            method::CONNECTION_UNBLOCKED => heard(Heard::Blocked(false)),
            method::CHANNEL_FLOW => {
                let active = fields.u8().ok_or_else(|| malformed("channel.flow"))? & 1;
                append_method(out, CHANNEL, method::CHANNEL_FLOW_OK, |out| {
                    out.push(active);
                });
                heard(Heard::Blocked(active == 0));
            }
            method::BASIC_RETURN if self.is_writer() => {
                let why = reason(fields).ok_or_else(|| malformed("basic.return"))?;
                self.content.begin(What::Return { why });
            }
            method::BASIC_CANCEL => {
                return Err(Fault(
                    "the broker cancelled the reader, as when its queue is removed".to_owned(),
                ));
            }
            method::CHANNEL_CLOSE => {
                append_method(out, CHANNEL, method::CHANNEL_CLOSE_OK, |_| {});
                return Err(ended("channel", fields));
            }
            method::CONNECTION_CLOSE => {
                append_method(out, 0, method::CONNECTION_CLOSE_OK, |_| {});
                return Err(ended("connection", fields));
            }
            method::CONNECTION_SECURE => {
                return Err(Fault(
                    "the broker asks for a second step of the login, which PLAIN has not"
                        .to_owned(),
                ));
            }
            _ => return Err(unexpected(id)),
        }
        Ok(())
    }

    pub(super) fn is_writer(&self) -> bool {
        self.config.role == Role::Writer
    }
}

#[inline]
fn hand_on(message: &Message<'_>, heard: &mut dyn FnMut(Heard<'_>)) {
    match &message.what {
        What::Delivery {
            number,
            redelivered,
        } => heard(Heard::Delivered {
            payload: message.body,
            handle: *number,
            redelivered: *redelivered,
        }),
        What::Return { why } => heard(Heard::Refused { tag: None, why }),
    }
}

/// The arguments of `basic.ack` and `basic.nack`; the lowest bit is `multiple`.
#[inline]
fn number_and_bits(mut fields: Fields<'_>, what: &str) -> Result<(u64, u8), Fault> {
    let mut parse = || {
        let arguments = (fields.u64()?, fields.u8()?);
        fields.end()?;
        Some(arguments)
    };
    parse().ok_or_else(|| malformed(what))
}

/// Code and text at the beginning of `basic.return` and of both kinds of close.
fn reason(mut fields: Fields<'_>) -> Option<String> {
    let code = fields.u16()?;
    let text = fields.short_text()?;
    Some(format!("{code} {}", readable(text)))
}

#[cold]
fn ended(what: &str, fields: Fields<'_>) -> Fault {
    match reason(fields) {
        Some(why) => Fault(format!("the broker closed the {what}: {why}")),
        None => malformed("close"),
    }
}

/// Methods of the connection come on channel 0.
fn channel_of(id: u32) -> u16 {
    if id >> 16 == 10 { 0 } else { CHANNEL }
}

#[cold]
fn unexpected(id: u32) -> Fault {
    Fault(format!(
        "the broker sent method {}.{}, which has no place here",
        id >> 16,
        id & 0xFFFF
    ))
}
