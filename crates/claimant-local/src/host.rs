//! Who may ask the local endpoints: those who call this machine by a name of its own.
//!
//! The endpoints check no credentials, so a web page must not reach them through the browser that shows it. A page can have its
//! own name resolve to 127.0.0.1 (DNS rebinding): its requests name that host. Or it asks 127.0.0.1 as it is, from another
//! origin: its requests name that origin.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// What of a refused name is shown, in characters.
const SHOWN_MAX: usize = 100;

/// Returns the router, which from now on answers only requests to a name of this machine, and from pages of this machine.
pub(crate) fn loopback_only(router: Router) -> Router {
    router.layer(middleware::from_fn(check))
}

async fn check(request: Request, next: Next) -> Response {
    match refusal(request.headers()) {
        None => next.run(request).await,
        Some(why) => {
            // The shape that the AWS SDKs read: the error's name from the header, its text from `message`.
            let body = json!({ "__type": "AccessDeniedException", "message": why });
            (StatusCode::FORBIDDEN, [("x-amzn-errortype", "AccessDeniedException")], axum::Json(body)).into_response()
        }
    }
}

/// Why the request is refused. A request without a Host comes from no browser, and is answered.
fn refusal(headers: &HeaderMap) -> Option<String> {
    let host = foreign(headers, &header::HOST, is_loopback);
    if let Some(host) = host {
        return Some(format!(
            "{host} is no name of this machine: the local cloud answers requests to 127.0.0.1, [::1] and localhost only, so that no \
             web page reaches it by a name of its own (DNS rebinding)"
        ));
    }
    let loopback = |origin: &str| origin.split_once("://").is_some_and(|(_, host)| is_loopback(host));
    let origin = foreign(headers, &header::ORIGIN, loopback)?;
    Some(format!("a page from {origin} asks: the local cloud answers pages from 127.0.0.1, [::1] and localhost only"))
}

/// The first value of this header that is not so.
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
}
