//! What a trial asks the mocks themselves, and lists that providers have.

use std::sync::Arc;

use serde_json::json;

use super::Shared;
use crate::faults::Faults;
use plimsoll_mock_server::http::Answer;
use plimsoll_mock_server::request::Request;

/// Answers what is no speech.
pub(super) fn answer(shared: &Arc<Shared>, request: &Request) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/health") => Answer::line("200 OK", "ok\n"),
        ("GET", "/stats") => {
            let clocks = shared.clocks();
            Answer::json(&shared.book().stats.report(clocks))
        }
        ("POST", "/stats/reset") => {
            let clocks = shared.clocks();
            shared.book().stats.reset_window(clocks);
            Answer::line("200 OK", "a new window has begun\n")
        }
        ("GET", "/faults") => Answer::json(&shared.book().faults),
        ("PUT", "/faults") => match Faults::from_json(&request.body) {
            Ok(faults) => {
                let told = Answer::json(&faults);
                shared.set_faults(faults);
                told
            }
            Err(error) => Answer::line("400 Bad Request", format!("{error}\n")),
        },
        // As ElevenLabs lists them.
        ("GET", "/v1/voices") => Answer::json(&json!({"voices": [
            {"voice_id": "mock", "name": "Mock", "labels": {"language": "en", "gender": "female", "accent": "none"}, "preview_url": ""},
        ]})),
        _ => Answer::line("404 Not Found", "no such path\n"),
    }
}
