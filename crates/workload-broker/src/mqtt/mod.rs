//! MQTT 5 without I/O, as far as a writer and a reader need it.
//!
//! - [`Mqtt`] is one connection: a writer's or a reader's [`Dialect`](crate::dialect::Dialect).
//! - [`MqttConfig`] says which topic it uses and how.
//! - [`STORED_TOPIC`], [`DROPPED_TOPIC`] and [`count`]: what mosquitto says of itself.
//!
//! Source: MQTT Version 5.0, OASIS Standard, 7 March 2019. Sections and rules such as `[MQTT-4.4.0-1]` are its own.

mod config;
mod connection;
mod greeting;
mod packets;
mod properties;
mod reader;
mod reasons;
mod wire;
mod writer;

pub use config::{DROPPED_TOPIC, MqttConfig, Qos, STORED_TOPIC, count};
pub use connection::Mqtt;
pub use greeting::Limits;
pub use packets::BODY_MAX_BYTES;

#[cfg(test)]
mod live;
#[cfg(test)]
mod mqtt_tests;
#[cfg(test)]
mod server;
