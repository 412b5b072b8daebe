//! Sans-IO session machines, one module per workload, and what they share.
//!
//! | module | what it is |
//! |---|---|
//! | [`stt`] | streaming speech-to-text, with its audio, messages and reference computation |
//! | [`ws`] | general WebSocket servers: eight tests, in the dialects `echo` and `wse` |
//! | [`echo`] | any RFC 6455 server that sends every message back |
//! | [`paced`] | a session that sends frames at a fixed pace and accounts for each |
//! | [`connection`] | a WebSocket client connection without I/O |
//! | [`websocket`] | the codec |

pub mod connection;
pub mod echo;
pub mod paced;
pub mod stt;
pub mod websocket;
pub mod ws;
