//! Streaming speech-to-text: what every gateway in `targets/stt/` speaks (`docs/stt/contract.md`).

pub mod audio;
mod batches;
mod calibrate;
pub mod check;
mod companion;
pub mod messages;
pub mod plan;
pub mod reference;
pub mod session;
pub mod simulator;
pub mod synthetic;
mod tell;
mod transport;

pub use audio::{Audio, AudioError};
pub use plan::Stt;
pub use session::Sessions;
pub use transport::InferenceTransport;
