//! What the contract asks of a gateway, without I/O and without lies.

pub mod messages;
pub mod reference;
pub mod session;
