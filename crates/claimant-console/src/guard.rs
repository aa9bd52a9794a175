//! Who may ask: programs and pages of this machine that mean this console.
//!
//! The console checks no password, so no other web page may reach it through the browser that shows it: neither under a name of its
//! own that resolves to 127.0.0.1 (DNS rebinding), nor by a form that it sends here (cross-site request forgery), nor by showing the
//! console in a frame. And if a message's text were ever taken for markup, the policy below would let none of it run.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::ask::wants_json;
use crate::refused::Refused;

/// What a page may load and do: what this console serves, and nothing else; no script in the page itself.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What every answer says to the browser.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// The port that a browser does not name.
const HTTP_PORT: u16 = 80;

/// How much of a refused name is shown, in characters.
const SHOWN_MAX: usize = 100;

/// The names under which the console answers: `127.0.0.1:PORT` and `localhost:PORT`, and without the port where browsers leave it out.
#[derive(Clone)]
pub(crate) struct Guard(Arc<[String]>);

impl Guard {
    pub(crate) fn new(port: u16) -> Self {
        let hosts = ["127.0.0.1", "localhost"];
        let with_port = hosts.map(|host| format!("{host}:{port}"));
        let without = hosts.map(str::to_owned).into_iter().filter(|_| port == HTTP_PORT);
        Self(with_port.into_iter().chain(without).collect())
    }

    fn is_own(&self, host: &str) -> bool {
        self.0.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    /// Returns why the request is refused.
    fn refusal(&self, method: &Method, headers: &HeaderMap) -> Option<String> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned()).unwrap_or_default();
        if hosts.next().is_some() {
            return Some("Host came several times: send it once".to_owned());
        }
        if !self.is_own(&host) {
            return Some(format!(
                "{:?} is not the name of this console, which is {}: no web page may reach it under a name of its own (DNS rebinding)",
                shown(&host),
                self.0.join(" or ")
            ));
        }
        if method.is_safe() {
            return None;
        }
        let text =
            |name: HeaderName| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let other = match (text(HeaderName::from_static("sec-fetch-site")), text(header::ORIGIN)) {
            (Some(site), _) if !matches!(site.as_str(), "same-origin" | "none") => site,
            // With `no-referrer` browsers say `null` of our own forms, too; no page can change what they say of its site.
            (Some(site), Some(origin)) if site == "same-origin" && origin == "null" => return None,
            (_, Some(origin)) if origin.strip_prefix("http://") != Some(host.as_str()) => origin,
            _ => return None,
        };
        Some(format!(
            "the request comes from another page ({}): only pages of this console may change things",
            shown(&other)
        ))
    }
}

/// Returns whether a browser sends this for the page of another site.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

/// Returns why a path is refused that names nothing here: each name is text.
fn not_text(path: &str) -> Option<String> {
    let is_text = percent_encoding::percent_decode_str(path).decode_utf8().is_ok();
    (!is_text).then(|| "the address has bytes that are no UTF-8: keys and ids are text".to_owned())
}

/// Lets a request pass, or refuses it; adds the headers that every answer has.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let refused = match guard.refusal(request.method(), request.headers()) {
        Some(why) => Some((StatusCode::FORBIDDEN, why)),
        None => not_text(request.uri().path()).map(|why| (StatusCode::BAD_REQUEST, why)),
    };
    let mut response = match refused {
        None => next.run(request).await,
        Some((status, why)) => Refused::new(status, why, wants_json(request.headers())).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &Method, headers: &[(&'static str, &str)]) -> bool {
        refused_at(8080, method, headers)
    }

    fn refused_at(port: u16, method: &Method, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        Guard::new(port).refusal(method, &headers.collect()).is_some()
    }

    #[test]
    fn only_this_console_by_its_own_names() {
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080"] {
            assert!(!refused(&Method::GET, &[("host", host)]), "{host}");
        }
        for host in ["127.0.0.1", "127.0.0.1:80", "evil.example:8080", "localhost.evil.example:8080", "[::1]:8080", ""]
        {
            assert!(refused(&Method::GET, &[("host", host)]), "{host}");
        }
        assert!(refused(&Method::GET, &[]));
        let mut twice = HeaderMap::new();
        for host in ["127.0.0.1:8080", "localhost:8080"] {
            twice.append(header::HOST, HeaderValue::from_static(host));
        }
        assert!(Guard::new(8080).refusal(&Method::GET, &twice).unwrap().starts_with("Host came several times"));
        for host in ["127.0.0.1", "localhost", "127.0.0.1:80"] {
            let origin = format!("http://{host}");
            assert!(!refused_at(80, &Method::POST, &[("host", host), ("origin", &origin)]), "{host}");
        }
        assert!(refused_at(80, &Method::GET, &[("host", "evil.example")]));
    }

    #[test]
    fn only_pages_of_this_console_and_programs_change_things() {
        let post = |more: &[(&'static str, &str)]| {
            let mut headers = vec![("host", "localhost:8080")];
            headers.extend_from_slice(more);
            refused(&Method::POST, &headers)
        };
        assert!(!post(&[]));
        assert!(!post(&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8080")]));
        assert!(!post(&[("sec-fetch-site", "none")]));
        assert!(!post(&[("sec-fetch-site", "same-origin"), ("origin", "null")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(post(&[("sec-fetch-site", site), ("origin", "null")]), "{site}");
        }
        assert!(!post(&[("origin", "http://localhost:8080")]));
        for other in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", ""),
            ("origin", "null"),
            ("origin", "http://localhost:8081"),
            ("origin", "https://localhost:8080"),
            ("origin", "http://127.0.0.1:8080"),
        ] {
            assert!(post(&[other]), "{other:?}");
        }
    }
}
