//! The gateway over HTTP.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;

use super::charge::{Charge, KEY_MAX_BYTES, Order, REFERENCE_MAX_BYTES};
use super::ledger::Verdict;
use super::service::Gateway;
use crate::faults::{Act, Target};
use crate::journal::{Text, What};
use crate::{Error, endpoint};

/// Charges that `GET /_claimant/charges` lists: the latest ones.
pub const LISTED_MAX: usize = 1_000;

/// Bytes of one request.
const REQUEST_MAX_BYTES: usize = 16 * 1024;

const KEY_HEADER: &str = "idempotency-key";

impl Gateway {
    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        endpoint::serve("payment gateway", listener, router(self), shutdown).await
    }
}

fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/charges", post(charge))
        .route("/legacy/charges", post(charge_each_time))
        .route("/_claimant/charges", get(list))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(REQUEST_MAX_BYTES))
        .with_state(gateway)
}

async fn charge(State(gateway): State<Gateway>, headers: HeaderMap, body: Result<Bytes, BytesRejection>) -> Response {
    let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
    match key.filter(|key| (1..=KEY_MAX_BYTES).contains(&key.len())) {
        Some(key) => answer(&gateway, body, Some(key.to_owned())).await,
        None => refusal(
            StatusCode::BAD_REQUEST,
            "no_key",
            &format!("give an Idempotency-Key of 1 to {KEY_MAX_BYTES} printable ASCII characters"),
        ),
    }
}

async fn charge_each_time(State(gateway): State<Gateway>, body: Result<Bytes, BytesRejection>) -> Response {
    answer(&gateway, body, None).await
}

async fn answer(gateway: &Gateway, body: Result<Bytes, BytesRejection>, key: Option<String>) -> Response {
    let order = match body.map_err(|e| e.to_string()).and_then(|body| parse(&body)) {
        Ok(order) => order,
        Err(why) => return refusal(StatusCode::BAD_REQUEST, "bad_request", &why),
    };
    let noted = key.as_deref().map(Text::from);
    let note = |answer| gateway.journal.note(|| What::Charge { key: noted.clone(), answer }, |event| event);
    if gateway.faults.acts(Target::Gateway, Act::Refuse) {
        note("refused");
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "a fault has the local gateway refuse this");
    }
    let verdict = gateway.ledger().decide(order, key);
    let loses = verdict.is_receipt() && gateway.faults.acts(Target::Gateway, Act::Lose);
    note(if loses { "answer_lost" } else { verdict.word() });
    if loses {
        return endpoint::no_answer();
    }
    match verdict {
        Verdict::Receipt(charge) => receipt(&charge),
        Verdict::Late(charge) => {
            tokio::time::sleep(gateway.slow_delay).await;
            receipt(&charge)
        }
        Verdict::AnswerLost => endpoint::no_answer(),
        Verdict::Declined => refusal(StatusCode::PAYMENT_REQUIRED, "declined", "the payment was declined"),
        Verdict::Unavailable => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "the local gateway refuses the first request for each unavailable… reference; the next is accepted",
        ),
        Verdict::OtherCharge => refusal(
            StatusCode::UNPROCESSABLE_ENTITY,
            "key_reused",
            "this Idempotency-Key belongs to another charge: use a new key",
        ),
        Verdict::Full => {
            refusal(StatusCode::SERVICE_UNAVAILABLE, "full", "the local gateway is full: restart the local cloud")
        }
    }
}

/// A charge that can be made. The error is what the sender gets, and quotes nothing.
fn parse(body: &[u8]) -> Result<Order, String> {
    let order: Order = serde_json::from_slice(body).map_err(|e| {
        let (line, column) = (e.line(), e.column());
        format!("the body is not a charge (line {line}, column {column}): give amount_cents, currency and reference")
    })?;
    if order.amount_cents == 0 {
        return Err("amount_cents is 0: give 1 or more".to_owned());
    }
    if order.currency.len() != 3 || !order.currency.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err("currency is not three capital letters, such as EUR".to_owned());
    }
    if !(1..=REFERENCE_MAX_BYTES).contains(&order.reference.len()) {
        return Err(format!("reference must have 1 to {REFERENCE_MAX_BYTES} bytes"));
    }
    Ok(order)
}

fn receipt(charge: &Charge) -> Response {
    let Charge { charge_id, order: Order { amount_cents, currency, reference }, .. } = charge;
    Json(json!({
        "charge_id": charge_id,
        "amount_cents": amount_cents,
        "currency": currency,
        "reference": reference,
    }))
    .into_response()
}

async fn list(State(gateway): State<Gateway>) -> Response {
    let ledger = gateway.ledger();
    let older = ledger.charges().len().saturating_sub(LISTED_MAX);
    let list = json!({
        "requests": ledger.requests(),
        "charged": ledger.charges().len(),
        "charges": &ledger.charges()[older..],
    });
    Json(list).into_response()
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let path: String = uri.path().chars().take(100).collect();
    refusal(
        StatusCode::NOT_FOUND,
        "not_found",
        &format!(
            "the local gateway does not support {method} {path}: it has POST /charges, POST /legacy/charges and GET /_claimant/charges"
        ),
    )
}

fn refusal(status: StatusCode, error: &str, message: &str) -> Response {
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
