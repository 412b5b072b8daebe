//! Streaming speech-to-text: what every gateway in `targets/stt/` speaks (`docs/stt/contract.md`).

pub mod audio;
mod calibrate;
pub mod messages;
pub mod plan;
pub mod reference;
pub mod session;
pub mod synthetic;

pub use audio::{Audio, AudioError};
pub use plan::Stt;
pub use session::Sessions;
