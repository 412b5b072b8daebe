//! The mock providers over real sockets, asked as a gateway asks them.

mod faults;
mod gateway;
mod http;
mod listen;
mod outages;
mod speak;
mod sums;
