//! What a client asks of a broker besides carrying messages.

use super::config::{AmqpConfig, Declare, Offset, QueueKind};
use super::table::{append_inner, append_number, append_table, append_text, append_true};
use super::wire::{CHANNEL, append_long_text, append_method, append_short_text, method};

/// Login with PLAIN (RFC 4616), and what we understand of RabbitMQ's extensions. Without these entries the broker does
/// not send `connection.blocked` and `basic.nack`, and closes the socket without a word after a wrong password.
pub(super) fn append_start_ok(out: &mut Vec<u8>, config: &AmqpConfig) {
    append_method(out, 0, method::CONNECTION_START_OK, |out| {
        append_table(out, |out| {
            append_text(out, "product", "plimsoll");
            append_text(out, "version", env!("CARGO_PKG_VERSION"));
            append_inner(out, "capabilities", |out| {
                for name in [
                    "authentication_failure_close",
                    "basic.nack",
                    "connection.blocked",
                    "consumer_cancel_notify",
                    "publisher_confirms",
                ] {
                    append_true(out, name);
                }
            });
        });
        append_short_text(out, "PLAIN");
        let login = format!("\0{}\0{}", config.user, config.password);
        append_long_text(out, login.as_bytes());
        append_short_text(out, "en_US");
    });
}

/// Agrees on limits, and opens the virtual host.
pub(super) fn append_tune_ok_and_open(
    out: &mut Vec<u8>,
    frame_max: u32,
    heartbeat_s: u16,
    vhost: &str,
) {
    append_method(out, 0, method::CONNECTION_TUNE_OK, |out| {
        out.extend_from_slice(&CHANNEL.to_be_bytes());
        out.extend_from_slice(&frame_max.to_be_bytes());
        out.extend_from_slice(&heartbeat_s.to_be_bytes());
    });
    append_method(out, 0, method::CONNECTION_OPEN, |out| {
        append_short_text(out, vhost);
        append_short_text(out, ""); // reserved
        out.push(0); // reserved
    });
}

/// Opens the channel.
pub(super) fn append_channel_open(out: &mut Vec<u8>) {
    append_method(out, CHANNEL, method::CHANNEL_OPEN, |out| {
        append_short_text(out, ""); // reserved
    });
}

/// Makes the queue, or asks for it.
///
/// Bits of `queue.declare` from the lowest: passive, durable, exclusive, auto-delete, no-wait.
pub(super) fn append_declare(out: &mut Vec<u8>, config: &AmqpConfig, how: Declare) {
    let is_passive = how == Declare::Check;
    append_method(out, CHANNEL, method::QUEUE_DECLARE, |out| {
        out.extend_from_slice(&[0; 2]); // reserved
        append_short_text(out, &config.queue);
        let is_durable = !is_passive && config.kind.is_durable();
        out.push(u8::from(is_passive) | u8::from(is_durable) << 1);
        append_table(out, |out| {
            if is_passive {
                return;
            }
            // "One member" is what a single broker does anyhow; the arguments keep it so on a cluster.
            match config.kind {
                QueueKind::Classic | QueueKind::Transient => {}
                QueueKind::Quorum => {
                    append_text(out, "x-queue-type", "quorum");
                    append_number(out, "x-quorum-initial-group-size", 1);
                }
                QueueKind::Stream => {
                    append_text(out, "x-queue-type", "stream");
                    append_number(out, "x-initial-cluster-size", 1);
                }
            }
        });
    });
}

/// Asks for confirms.
pub(super) fn append_confirm_select(out: &mut Vec<u8>) {
    append_method(out, CHANNEL, method::CONFIRM_SELECT, |out| out.push(0));
}

/// Limits the unsettled messages of the consumer to come. RabbitMQ reads "not global" as "each consumer", and streams
/// demand it.
pub(super) fn append_qos(out: &mut Vec<u8>, prefetch: u16) {
    append_method(out, CHANNEL, method::BASIC_QOS, |out| {
        out.extend_from_slice(&[0; 4]); // no limit in bytes: RabbitMQ has none
        out.extend_from_slice(&prefetch.to_be_bytes());
        out.push(0);
    });
}

/// Asks for the queue's messages, to be settled one by one. The broker chooses the consumer's name.
pub(super) fn append_consume(out: &mut Vec<u8>, config: &AmqpConfig) {
    append_method(out, CHANNEL, method::BASIC_CONSUME, |out| {
        out.extend_from_slice(&[0; 2]); // reserved
        append_short_text(out, &config.queue);
        append_short_text(out, "");
        out.push(0); // no bit: not no-local, not no-ack, not exclusive, not no-wait
        append_table(out, |out| {
            if config.kind != QueueKind::Stream {
                return;
            }
            let name = "x-stream-offset";
            match config.offset {
                Offset::First => append_text(out, name, "first"),
                Offset::Last => append_text(out, name, "last"),
                Offset::Next => append_text(out, name, "next"),
                Offset::At(at) => {
                    append_number(out, name, i64::try_from(at).unwrap_or(i64::MAX));
                }
            }
        });
    });
}

/// Ends the connection: code 200 is success (constant `reply-success`).
pub(super) fn append_connection_close(out: &mut Vec<u8>) {
    append_method(out, 0, method::CONNECTION_CLOSE, |out| {
        out.extend_from_slice(&200_u16.to_be_bytes());
        append_short_text(out, "");
        out.extend_from_slice(&[0; 4]); // no method is the cause
    });
}
