//! Workload `broker`: how many messages a second a broker carries from writers to readers inside its gates.
//!
//! - [`dialect`]: a broker's protocol as a writer or a reader sees it;
//! - [`amqp`]: AMQP 0-9-1 with the extensions of RabbitMQ;
//! - [`mqtt`]: MQTT 5.

pub mod amqp;
#[allow(missing_docs)] // its variants say it by their names
pub mod dialect;
pub mod mqtt;
