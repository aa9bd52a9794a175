//! The style sheet, htmx and the icon: parts of the program.

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, http::HeaderName};

use crate::console::Console;

/// The style of all pages, and of the timeline.
const CSS: &str = concat!(include_str!("assets/console.css"), include_str!("assets/timeline.css"));

/// htmx and its extension for streams, as one: htmx looks at a page as soon as it can, and what it does not know by then it leaves alone.
const HTMX: &str = concat!(include_str!("assets/htmx.min.js"), "\n", include_str!("assets/hx-sse.min.js"));

/// Each asset: its name, its kind, and what it is.
const ASSETS: [(&str, &str, &[u8]); 3] = [
    ("console.css", "text/css; charset=utf-8", CSS.as_bytes()),
    ("htmx.js", "text/javascript; charset=utf-8", HTMX.as_bytes()),
    ("icon.svg", "image/svg+xml", include_bytes!("assets/icon.svg")),
];

/// Another build has other assets under the same names and perhaps the same port, so a browser asks again after this.
const KEPT: &str = "max-age=60";

/// Returns the routes of the assets: `/assets/NAME`.
pub(crate) fn routes() -> Router<Console> {
    ASSETS.into_iter().fold(Router::new(), |router, (name, kind, bytes)| {
        let headers: [(HeaderName, &str); 2] = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, KEPT)];
        router.route(&format!("/assets/{name}"), get(move || async move { (headers, bytes).into_response() }))
    })
}
