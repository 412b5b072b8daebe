//! Streaming speech-to-text: what every gateway in `targets/stt/` speaks (`docs/stt/contract.md`).

pub mod audio;
pub mod check;
pub mod messages;
pub mod reference;
pub mod session;
pub mod simulator;
pub mod synthetic;
mod transport;

pub use audio::{Audio, AudioError};
pub use session::Stt;
pub use transport::InferenceTransport;
