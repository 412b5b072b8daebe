//! The page for a request that cannot be answered.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use plimsoll_report::ReportError;

use super::pages::frame;
use crate::failure::Failure;

/// Why a request cannot be answered: one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// The request asks for something that is not possible.
    pub(super) fn asked(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// A fault of Plimsoll itself.
    pub(super) fn ours() -> Self {
        let text = "this page could not be created; please report this as a bug";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, failure.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let name = self.status.canonical_reason().unwrap_or("Problem");
        let html = frame::page(name, |html| {
            html.element("h1", &[], name);
            html.element("p", &[("data-test", "problem")], &self.text);
        });
        (self.status, super::page(html)).into_response()
    }
}
