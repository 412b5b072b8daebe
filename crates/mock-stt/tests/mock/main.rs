//! The mock over real sockets, in all dialects, asked through the client's side of each.

mod client;
mod faults;
mod golden;
mod honest;
mod http;
mod refused;
mod rig;
mod tls;
