//! A request: what it asks with, and what it wants for an answer.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::fields::Fields;

/// Whom an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A program: JSON.
    Program,
    /// A browser that opens a page: the whole of it.
    Browser,
    /// A page that is open already: its live part alone.
    OpenPage,
}

/// What a request asks with.
pub(crate) struct Ask {
    /// The path and the query, as they came.
    pub(crate) uri: String,
    /// The fields of the query.
    pub(crate) query: Fields,
    /// Whom the answer is for.
    pub(crate) reader: Reader,
}

impl<S: Send + Sync> FromRequestParts<S> for Ask {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

impl Ask {
    /// Returns what a request asks with.
    pub(crate) fn of(parts: &Parts) -> Self {
        let reader = if wants_json(&parts.headers) {
            Reader::Program
        } else if parts.headers.contains_key("hx-request") {
            Reader::OpenPage
        } else {
            Reader::Browser
        };
        let uri = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Self { uri, query: Fields::of_form(parts.uri.query().unwrap_or_default()), reader }
    }
}

/// Whether JSON is wanted and HTML is not.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds =
        accepted.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let mut kinds = kinds.filter(|kind| matches!(*kind, "application/json" | "text/html"));
    kinds.next() == Some("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_json() {
        for (accept, json) in [
            ("application/json", true),
            ("application/json;q=1, text/html;q=0.5", true),
            ("text/html,application/xhtml+xml,application/json", false),
            ("*/*", false),
            ("text/html, text/event-stream", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_json(&headers), json, "{accept}");
        }
    }
}
