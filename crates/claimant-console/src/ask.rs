//! A request: what it asks with, and what it wants for an answer.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use claimant_core::Error;

use crate::fields::{FIELDS_MAX, Fields, too_many};
use crate::refused::Refused;

/// The most bytes of a form: a message is 1 MiB at most, and every byte of it may be escaped.
const FORM_BYTES_MAX: usize = 4 * 1024 * 1024;

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
    fn of(parts: &Parts) -> Self {
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

/// A request to do something: a form, or a JSON object with the same fields.
pub(crate) struct Act {
    /// What was asked for.
    pub(crate) fields: Fields,
    /// The request that it came with.
    pub(crate) ask: Ask,
}

impl<S: Send + Sync> FromRequest<S> for Act {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let ask = Ask::of(&parts);
        let json = ask.reader == Reader::Program;
        let body = axum::body::to_bytes(body, FORM_BYTES_MAX).await.map_err(|_| {
            Refused::of(&Error::invalid(format!("the form is larger than {FORM_BYTES_MAX} bytes")), json)
        })?;
        match fields(&parts.headers, &body) {
            Ok(fields) => Ok(Self { fields, ask }),
            Err(error) => Err(Refused::of(&error, json)),
        }
    }
}

fn fields(headers: &HeaderMap, body: &Bytes) -> Result<Fields, Error> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind {
        "application/json" => Fields::of_json(body),
        "application/x-www-form-urlencoded" | "" => {
            let form = String::from_utf8_lossy(body);
            if form.split('&').count() > FIELDS_MAX { Err(too_many()) } else { Ok(Fields::of_form(&form)) }
        }
        other => Err(Error::invalid(format!(
            "the content type is {other}: send application/x-www-form-urlencoded or application/json"
        ))),
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
