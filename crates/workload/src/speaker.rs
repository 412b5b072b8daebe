//! A target that has no HTTP port, asked in its own protocol.

use std::net::TcpStream;
use std::sync::Arc;

use plimsoll_core::session::Endpoint;
use plimsoll_host::process::Ask;

use crate::drive::Findings;
use crate::plan::Plan;

/// Talks to a target that has no HTTP port, over a connection of its own. Each connection ends after some seconds at the
/// latest, and reads and writes on it then fail.
pub trait Speaker: Send + Sync {
    /// Whether the target is ready; asked only of a target that Plimsoll starts.
    ///
    /// # Errors
    /// One line that says why it is not (yet). It is shown if the target never is.
    fn is_ready(&self, stream: &mut TcpStream) -> Result<(), String>;

    /// What the target says of itself after the last session, as JSON that only its workload reads; null if nothing. `to`
    /// is where the sessions went, as [`Plan::let_in`] returned it.
    fn account(&self, stream: &mut TcpStream, to: &Endpoint) -> Findings;
}

impl dyn Plan + '_ {
    /// How a target without HTTP is asked whether it is ready; `None` for one that has HTTP.
    #[must_use]
    pub fn ask(&self) -> Option<Ask> {
        let speaker: Arc<dyn Speaker> = self.speaker()?;
        Some(Ask::new(move |stream| speaker.is_ready(stream)))
    }
}
