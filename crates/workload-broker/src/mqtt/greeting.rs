//! CONNECT and SUBSCRIBE, and what the broker answers.

use super::config::MqttConfig;
use super::packets::PACKET_MAX_BYTES;
use super::properties::{Value, next, property, reason_string};
use super::reasons::{FAILURE, words};
use super::wire::{Fields, append_text, append_varint, malformed, packet, readable};
use crate::dialect::{Fault, Role};

/// The packet identifier of our only SUBSCRIBE. A reader publishes nothing, so no other is in use.
const SUBSCRIPTION_ID: u16 = 1;

/// What the broker allows, as its CONNACK says it (section 3.2.2.3). What it leaves out has the standard's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many messages of QoS 1 and 2 may be open.
    pub receive_max: u16,
    /// The highest QoS.
    pub qos_max: u8,
    /// The longest packet, if there is a limit.
    pub packet_max: Option<u32>,
    /// The highest topic alias; 0: none.
    pub topic_alias_max: u16,
    /// Whether subscriptions can be shared.
    pub shared: bool,
    /// The keep alive that holds in place of ours, in seconds.
    pub keep_alive_s: Option<u16>,
    /// The name that the broker gave the session.
    pub client_id: Option<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            receive_max: u16::MAX,
            qos_max: 2,
            packet_max: None,
            topic_alias_max: 0,
            shared: true,
            keep_alive_s: None,
            client_id: None,
        }
    }
}

/// Appends a packet whose fields `fields` appends. For packets that are not part of the load: it makes a buffer.
fn append_packet(out: &mut Vec<u8>, first: u8, fields: impl FnOnce(&mut Vec<u8>)) {
    let mut packet = Vec::new();
    fields(&mut packet);
    out.push(first);
    append_varint(out, packet.len());
    out.extend_from_slice(&packet);
}

/// Appends CONNECT (section 3.1). There is no keep alive, because the machine has no clock, and no will.
pub(super) fn append_connect(out: &mut Vec<u8>, config: &MqttConfig) {
    append_packet(out, packet::CONNECT, |out| {
        append_text(out, "MQTT");
        out.push(5);
        out.push(
            u8::from(config.user.is_some()) << 7
                | u8::from(config.password.is_some()) << 6
                | u8::from(config.clean_start) << 1,
        );
        out.extend_from_slice(&[0; 2]);
        let mut properties = Vec::new();
        if config.session_expiry_s > 0 {
            properties.push(property::SESSION_EXPIRY);
            properties.extend_from_slice(&config.session_expiry_s.to_be_bytes());
        }
        if config.role == Role::Reader {
            properties.push(property::RECEIVE_MAX);
            properties.extend_from_slice(&config.prefetch.to_be_bytes());
        }
        properties.push(property::PACKET_MAX);
        properties.extend_from_slice(&PACKET_MAX_BYTES.to_be_bytes());
        append_varint(out, properties.len());
        out.extend_from_slice(&properties);
        append_text(out, &config.client_id);
        for text in [&config.user, &config.password].into_iter().flatten() {
            append_text(out, text);
        }
    });
}

/// Appends SUBSCRIBE (section 3.8): one filter. "No local" and "retain as published" stay off.
pub(super) fn append_subscribe(out: &mut Vec<u8>, config: &MqttConfig) {
    /// Retain handling 2: do not send what the topic retains.
    const WITHOUT_RETAINED: u8 = 2 << 4;
    append_packet(out, packet::SUBSCRIBE, |out| {
        out.extend_from_slice(&SUBSCRIPTION_ID.to_be_bytes());
        out.push(0); // no properties
        append_text(out, &config.filter());
        let retain = if config.retained { 0 } else { WITHOUT_RETAINED };
        out.push(config.qos.number() | retain);
    });
}

/// Reads CONNACK (section 3.2), and checks that the broker allows what we want.
pub(super) fn connack(mut fields: Fields<'_>, config: &MqttConfig) -> Result<Limits, Fault> {
    let mut parse = || {
        let flags = fields.u8().filter(|flags| *flags < 2)?;
        let reason = fields.u8()?;
        let properties = fields.properties()?;
        fields.end()?;
        Some((flags, reason, properties))
    };
    let (flags, reason, properties) = parse().ok_or_else(|| malformed("CONNACK"))?;
    if reason >= FAILURE {
        return Err(said("refused the connection", reason, properties));
    }
    if flags == 1 && config.clean_start {
        return Err(Fault(
            "the broker resumed a session though a new one was asked for [MQTT-3.2.2-2]".to_owned(),
        ));
    }
    let limits = limits(properties).ok_or_else(|| malformed("CONNACK"))?;
    check(&limits, config).map_err(Fault)?;
    Ok(limits)
}

fn limits(properties: &[u8]) -> Option<Limits> {
    let mut limits = Limits::default();
    let mut fields = Fields::new(properties);
    while !fields.is_empty() {
        match next(&mut fields)? {
            (property::RECEIVE_MAX, value) => {
                limits.receive_max = value.number::<u16>().filter(|max| *max > 0)?;
            }
            (property::QOS_MAX, value) => limits.qos_max = value.number()?,
            (property::PACKET_MAX, value) => limits.packet_max = value.number(),
            (property::TOPIC_ALIAS_MAX, value) => limits.topic_alias_max = value.number()?,
            (property::SHARED_AVAILABLE, value) => limits.shared = value.number::<u8>()? == 1,
            (property::SERVER_KEEP_ALIVE, value) => limits.keep_alive_s = value.number(),
            (property::ASSIGNED_CLIENT_ID, Value::Text(id)) => {
                limits.client_id = Some(readable(id));
            }
            _ => {}
        }
    }
    Some(limits)
}

fn check(limits: &Limits, config: &MqttConfig) -> Result<(), String> {
    let qos = config.qos.number();
    if config.role == Role::Reader {
        if config.share.is_some() && !limits.shared {
            return Err("the broker has no shared subscriptions".to_owned());
        }
        return Ok(());
    }
    if qos > limits.qos_max {
        return Err(format!(
            "the broker allows QoS {} at most, not {qos}",
            limits.qos_max
        ));
    }
    if qos > 0 && config.window > limits.receive_max {
        return Err(format!(
            "the broker allows {} unconfirmed messages, not a window of {}",
            limits.receive_max, config.window
        ));
    }
    // Fixed header 5, topic 2 + n, packet id 2, properties at most 4.
    let packet = config.body_bytes_max + config.topic.len() + 13;
    let allowed = limits
        .packet_max
        .and_then(|max| usize::try_from(max).ok())
        .unwrap_or(usize::MAX);
    if packet > allowed {
        return Err(format!(
            "the broker allows packets of {allowed} bytes: messages of {} bytes need {packet}",
            config.body_bytes_max
        ));
    }
    Ok(())
}

/// Reads SUBACK (section 3.9). A lower QoS than the one asked for would be another guarantee, so it is a fault.
pub(super) fn suback(mut fields: Fields<'_>, config: &MqttConfig) -> Result<(), Fault> {
    let mut parse = || {
        let id = fields.u16()?;
        let properties = fields.properties()?;
        let reason = fields.u8()?;
        fields.end()?;
        Some((id, properties, reason))
    };
    let (id, properties, reason) = parse().ok_or_else(|| malformed("SUBACK"))?;
    if id != SUBSCRIPTION_ID {
        return Err(Fault(format!(
            "the broker answers subscription {id}, which was not asked for"
        )));
    }
    if reason >= FAILURE {
        return Err(said("refused the subscription", reason, properties));
    }
    if reason != config.qos.number() {
        return Err(Fault(format!(
            "the broker grants QoS {reason} and not {}",
            config.qos.number()
        )));
    }
    Ok(())
}

/// Reads DISCONNECT (section 3.14): both reason and properties may be missing.
pub(super) fn disconnect(mut fields: Fields<'_>) -> Fault {
    let reason = fields.u8().unwrap_or(0);
    let properties = fields.properties().unwrap_or_default();
    said("ended the connection", reason, properties)
}

#[cold]
fn said(what: &str, reason: u8, properties: &[u8]) -> Fault {
    let own_words = reason_string(properties).flatten();
    let own_words = own_words
        .map(|text| format!(": {}", readable(text)))
        .unwrap_or_default();
    Fault(format!("the broker {what}: {}{own_words}", words(reason)))
}
