//! AMQP 0-9-1 without I/O, with the extensions of RabbitMQ 3.10: publisher confirms, `basic.nack`,
//! `connection.blocked`, `consumer_cancel_notify`, queue types by argument.
//!
//! - [`Amqp`] is one connection with one channel: a writer's or a reader's [`Dialect`](crate::dialect::Dialect).
//! - [`AmqpConfig`] says which queue it uses and how.
//!
//! Sources: the specification AMQP 0-9-1 (sections 2.3 and 4.2 for frames, the class reference for methods) and, where
//! RabbitMQ differs or adds, its errata page (types of table fields) and its machine-readable specification
//! (`amqp-rabbitmq-0.9.1.json`, `amqp0-9-1.extended.xml`).

mod config;
mod confirms;
mod connection;
mod content;
mod frames;
mod opening;
mod publishing;
mod requests;
mod settlements;
mod table;
mod wire;

pub use config::{AmqpConfig, Declare, Offset, QueueKind};
pub use connection::{Amqp, BODY_MAX_BYTES, Depth};

#[cfg(test)]
mod amqp_tests;
#[cfg(test)]
pub(crate) mod live;
#[cfg(test)]
mod server;
