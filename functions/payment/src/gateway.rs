//! The payment gateway over HTTP, and what each of its answers means for the payment.

use std::time::Duration;

use claimant::{Error, HandlerError, Terminal};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

/// What the gateway is called where it is away: the breaker's name.
pub(crate) const NAME: &str = "gateway";

const KEY_HEADER: &str = "idempotency-key";
/// Bytes that gateways take for a key.
const KEY_MAX_BYTES: usize = 255;
/// How long a connection may take to be made. Longer, and nothing was sent: a plain retry.
const CONNECT_TIMEOUT_MS: u64 = 3_000;
/// How long a charge may take, its connection included. Longer, and it is not known whether it was made.
const ANSWER_TIMEOUT_MS: u64 = 15_000;
/// Bytes of a receipt at most.
const RECEIPT_MAX_BYTES: usize = 64 * 1024;

/// What the gateway is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Charge<'a> {
    pub(crate) amount_cents: u64,
    pub(crate) currency: &'a str,
    pub(crate) reference: &'a str,
}

/// What the gateway answers. Kept on the order's record, where duplicates find it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) charge_id: String,
    pub(crate) amount_cents: u64,
    pub(crate) currency: String,
}

/// A payment gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    charges: Uri,
}

impl Gateway {
    /// The gateway with this address, `/charges` under it.
    pub(crate) fn at(url: &str) -> Result<Self, Error> {
        let no_url = || Error::new("GATEWAY_URL is not a URL: give one such as https://gateway.example");
        let charges: Uri = format!("{}/charges", url.trim_end_matches('/')).parse().map_err(|_| no_url())?;
        charges.scheme().zip(charges.host()).ok_or_else(no_url)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(Duration::from_millis(CONNECT_TIMEOUT_MS)));
        let tls = HttpsConnectorBuilder::new().with_native_roots();
        let tls = tls.map_err(|e| Error::new("the system has no certificates to know the gateway by").caused_by(e))?;
        // A connection that slept with its sandbox may be dead: it is not known whether what is sent on it arrived.
        // So each charge has its own.
        let http = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(tls.https_or_http().enable_http1().wrap_connector(connector));
        Ok(Self { http, charges })
    }

    /// Asks for a charge. Retry and terminal errors say that it was not made, uncertain ones that it may have been.
    pub(crate) async fn charge(&self, charge: &Charge<'_>, key: &str) -> Result<Receipt, HandlerError> {
        let request = self.request(charge, key)?;
        let answered = timeout(Duration::from_millis(ANSWER_TIMEOUT_MS), async {
            let response = self.http.request(request).await.map_err(|e| no_answer(&e))?;
            receipt(response).await
        });
        answered
            .await
            .unwrap_or_else(|_| Err(HandlerError::uncertain("the gateway gave no answer in time").downstream(NAME)))
    }

    fn request(&self, charge: &Charge<'_>, key: &str) -> Result<Request<Full<Bytes>>, HandlerError> {
        if key.len() > KEY_MAX_BYTES || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(HandlerError::terminal(
                "the order id is no Idempotency-Key: 1 to 255 printable ASCII characters",
            ));
        }
        let body = serde_json::to_vec(charge).terminal()?;
        Request::post(self.charges.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(KEY_HEADER, key)
            .body(Full::from(body))
            .terminal()
    }
}

/// A request that got no answer. Only where there was no connection is it certain that it did not arrive.
fn no_answer(error: &hyper_util::client::legacy::Error) -> HandlerError {
    if error.is_connect() {
        HandlerError::retry("the gateway cannot be reached").downstream(NAME)
    } else {
        HandlerError::uncertain("the gateway was asked, and its answer was lost")
    }
}

async fn receipt(response: Response<Incoming>) -> Result<Receipt, HandlerError> {
    let status = response.status();
    if !status.is_success() {
        return Err(refusal(status));
    }
    let unread = || HandlerError::uncertain("the gateway has charged the order, and its receipt cannot be read");
    let body = Limited::new(response.into_body(), RECEIPT_MAX_BYTES).collect().await.map_err(|_| unread())?;
    serde_json::from_slice(&body.to_bytes()).map_err(|_| unread())
}

/// An answer that is no receipt. Its text is not shown: it may quote the order.
fn refusal(status: StatusCode) -> HandlerError {
    match status {
        StatusCode::PAYMENT_REQUIRED => HandlerError::terminal("the payment was declined"),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            HandlerError::terminal(format!("the gateway refuses this charge: {status}"))
        }
        // Refused before anything was done, and nothing that this order could help: our account, its path, our pace.
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::MISDIRECTED_REQUEST
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => HandlerError::retry(format!("the gateway did not charge: {status}")),
        // It is away, or what stands before it. It may have charged all the same.
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            HandlerError::uncertain(format!("the gateway is away, and may have charged: {status}")).downstream(NAME)
        }
        // Whoever gave up on the way, a proxy too, may have handed the request on before: 408, 499, the 5xx. A conflict
        // (409) can be with a charge under this very key. What the others mean to a gateway is not known.
        status => HandlerError::uncertain(format!("the gateway failed, and may have charged: {status}")),
    }
}

#[cfg(test)]
mod tests {
    use claimant::FailureKind;

    use super::*;

    #[test]
    fn answers_say_whether_the_charge_may_have_been_made() {
        let table = [
            (FailureKind::Terminal, &[402, 400, 422][..]),
            (FailureKind::Retry, &[401, 403, 404, 421, 425, 429]),
            (FailureKind::Uncertain, &[408, 409, 418, 460, 499, 302, 500, 503, 504]),
        ];
        for (expected, statuses) in table {
            for status in statuses {
                assert_eq!(refusal(StatusCode::from_u16(*status).unwrap()).kind(), expected, "{status}");
            }
        }
    }

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        for (url, fits) in [
            ("https://gateway.example", true),
            ("http://127.0.0.1:80/legacy/", true),
            ("gateway", false),
            ("/charges", false),
            ("https://a b", false),
        ] {
            assert_eq!(Gateway::at(url).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn a_key_is_a_header() {
        let gateway = Gateway::at("https://gateway.example").unwrap();
        let charge = Charge { amount_cents: 1, currency: "EUR", reference: "ord-1" };
        let long = "k".repeat(KEY_MAX_BYTES + 1);
        for (key, fits) in [("ord-1", true), ("ord\n1", false), ("ord 1", false), ("örd", false), (&long, false)] {
            let request = gateway.request(&charge, key);
            assert_eq!(
                request.as_ref().map_err(HandlerError::kind).err(),
                (!fits).then_some(FailureKind::Terminal),
                "{key}"
            );
            if let Ok(request) = request {
                assert!(request.uri().path() == "/charges" && request.headers()[KEY_HEADER] == *key);
            }
        }
    }
}
