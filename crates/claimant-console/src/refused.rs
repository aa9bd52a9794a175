//! An error where there is no page around it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use claimant_core::ErrorKind;
use serde_json::json;

/// An error where there is no page around it.
pub(crate) struct Refused {
    status: StatusCode,
    text: String,
    json: bool,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>, json: bool) -> Self {
        Self { status, text: text.into(), json }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        if self.json {
            return (self.status, Json(json!({ "error": self.text }))).into_response();
        }
        (self.status, self.text).into_response()
    }
}

/// Returns the status that says what can be done about an error.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Refused => StatusCode::CONFLICT,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
