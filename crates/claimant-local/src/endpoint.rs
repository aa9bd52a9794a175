//! How every local endpoint is served: only to clients that call this machine by one of its own names.
//!
//! The endpoints check no credentials, so a web page must not reach them through the browser that shows it. A page can have its
//! own name resolve to 127.0.0.1 (DNS rebinding): its requests name that host. Or it sends requests to 127.0.0.1 from another
//! origin: its requests name that origin, or else the site that they come from.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::net::TcpListener;

use crate::Error;

/// How a browser says whether the page that asks is of the same site as the endpoint; no page can change it.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A page of this machine, or no page: the address was typed in, say.
const OWN_SITES: [&str; 3] = ["same-origin", "same-site", "none"];

/// How much of a refused name is shown, in characters.
const SHOWN_MAX: usize = 100;

/// Serves a router until `shutdown` resolves and the requests under way are answered. Only requests to a name of this
/// machine, and from pages of this machine, are answered.
///
/// # Errors
/// When the listener fails: with the endpoint's name, such as `payment gateway`.
pub(crate) async fn serve(
    name: &str,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    // Without it a small answer may wait 40 ms for an acknowledgement; only speed depends on it.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let served = axum::serve(listener, router.layer(middleware::from_fn(check))).with_graceful_shutdown(shutdown).await;
    served.map_err(|e| Error::new(format!("the {name} stopped: its listener failed")).caused_by(e))
}

/// A response whose body fails before its first byte: the connection is closed without one. The test in
/// `tests/local/gateway.rs` sees to it that not even a status line gets out.
pub(crate) fn no_answer() -> Response {
    let lost = std::io::Error::other("the answer is lost on purpose");
    Body::from_stream(futures_util::stream::iter([Err::<Bytes, _>(lost)])).into_response()
}

async fn check(request: Request, next: Next) -> Response {
    match refusal(request.headers()) {
        None => next.run(request).await,
        Some(why) => refused(&why),
    }
}

/// Lets programs and the endpoint's own pages change things, and no page of another port of this machine: a form reaches an endpoint
/// that answers no one but it.
pub(crate) async fn own_pages_change(request: Request, next: Next) -> Response {
    match other_origin(request.method(), request.headers()) {
        None => next.run(request).await,
        Some(origin) => refused(&format!(
            "the request is from a page of {origin}: only programs, and pages of this very address, may change things here"
        )),
    }
}

fn refused(why: &str) -> Response {
    // The shape that the AWS SDKs read: the error's name from the header, its text from `message`.
    let body = json!({ "__type": "AccessDeniedException", "message": why });
    (StatusCode::FORBIDDEN, [("x-amzn-errortype", "AccessDeniedException")], axum::Json(body)).into_response()
}

/// Returns the origin of a request that changes something, unless it is the address that was asked. Browsers name it on each of those.
fn other_origin(method: &Method, headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let is_own = |origin: &str| origin.strip_prefix("http://").map(str::as_bytes) == host;
    foreign(headers, &header::ORIGIN, is_own).filter(|_| !method.is_safe())
}

/// Why the request is refused. A request without a Host comes from no browser, and is answered.
fn refusal(headers: &HeaderMap) -> Option<String> {
    let host = foreign(headers, &header::HOST, is_loopback);
    if let Some(host) = host {
        return Some(format!(
            "{host} is not a name of this machine: the local cloud answers only requests to 127.0.0.1, [::1] and localhost, so that \
             no web page reaches it under a name of its own (DNS rebinding)"
        ));
    }
    let loopback = |origin: &str| origin.split_once("://").is_some_and(|(_, host)| is_loopback(host));
    let from = match foreign(headers, &header::ORIGIN, loopback) {
        Some(origin) => format!("of {origin}"),
        None if headers.contains_key(header::ORIGIN) => return None,
        // Without an origin a browser asks for images and follows links, and each GET of a runtime API takes an event.
        None => format!("of another site ({})", foreign(headers, &SITE, |site| OWN_SITES.contains(&site))?),
    };
    Some(format!(
        "the request is from a page {from}: the local cloud answers only pages from 127.0.0.1, [::1] and localhost"
    ))
}

/// Returns the fields of a query, decoded; of two with one name the last.
pub(crate) fn query(uri: &Uri) -> BTreeMap<String, String> {
    fields(uri.query().unwrap_or_default())
}

/// Returns the fields of a query or a form, likewise.
pub(crate) fn fields(text: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let fields = text.split('&').filter_map(|field| field.split_once('='));
    fields.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// Returns the first value of this header for which `is` is false.
fn foreign(headers: &HeaderMap, name: &HeaderName, is: impl Fn(&str) -> bool) -> Option<String> {
    let values = headers.get_all(name).iter();
    let foreign = values.map(|value| String::from_utf8_lossy(value.as_bytes())).find(|value| !is(value));
    foreign.map(|value| value.chars().take(SHOWN_MAX).collect())
}

/// Whether a host, with or without a port, is this machine whatever a name server says.
fn is_loopback(host: &str) -> bool {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback());
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9324",
            "127.1.2.3:1",
            "localhost:80",
            "LocalHost.",
            "sqs.localhost:1",
            "[::1]:8000",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "evil",
            "evil:80",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "notlocalhost",
            "10.0.0.1",
            "[::2]:1",
            "[::1",
            "",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn origins() {
        let asked = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:1".parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            refusal(&headers)
        };
        assert_eq!(asked("http://localhost:3000"), None);
        for origin in ["null", "https://evil.example", "file://", "localhost"] {
            assert!(asked(origin).is_some_and(|why| why.contains(origin)), "{origin}");
        }
        assert_eq!(refusal(&HeaderMap::new()), None);
    }

    #[test]
    fn origins_that_change_things() {
        let asked = |method: Method, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:1".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            other_origin(&method, &headers)
        };
        for own in [None, Some("http://127.0.0.1:1")] {
            assert_eq!(asked(Method::POST, own), None);
        }
        for other in ["http://localhost:1", "http://127.0.0.1:3000", "https://127.0.0.1:1", "null"] {
            assert_eq!(asked(Method::POST, Some(other)).as_deref(), Some(other));
            assert_eq!(asked(Method::GET, Some(other)), None);
        }
    }

    /// A page of another site can ask without an origin: by an image, a link, a form that is a GET.
    #[test]
    fn sites() {
        let asked = |site: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:1".parse().unwrap());
            headers.insert("sec-fetch-site", site.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            refusal(&headers)
        };
        let own = Some("http://localhost:3000");
        for (site, origin) in [("same-origin", None), ("none", None), ("same-site", None), ("cross-site", own)] {
            assert_eq!(asked(site, origin), None, "{site}");
        }
        for (site, origin) in [("cross-site", None), ("cross-site", Some("https://evil.example")), ("", None)] {
            assert!(asked(site, origin).is_some(), "{site}");
        }
    }
}
