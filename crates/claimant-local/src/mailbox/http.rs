//! The mailbox over HTTP: the rest-json shapes of SES v2, and the list for people.

use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, body::Bytes};
use serde_json::json;
use tokio::net::TcpListener;

use super::request;
use super::service::{Mailbox, Verdict};
use crate::faults::{Act, Target};
use crate::{Error, endpoint};

/// Mails that `GET /_claimant/mails` lists: the latest ones.
pub const LISTED_MAX: usize = 1_000;

/// Bytes of one request: what SES takes for a simple mail, in base64 where raw.
const REQUEST_MAX_BYTES: usize = 14 * 1024 * 1024;

impl Mailbox {
    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        endpoint::serve("SES endpoint", listener, router(self), shutdown).await
    }
}

fn router(mailbox: Mailbox) -> Router {
    Router::new()
        .route("/v2/email/outbound-emails", post(send_email))
        .route("/_claimant/mails", get(list))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(REQUEST_MAX_BYTES))
        .with_state(mailbox)
}

async fn send_email(State(mailbox): State<Mailbox>, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return bad_request(&format!("the request could not be read: {rejection}")),
    };
    let mail = match request::parse(&body, uuid::Uuid::new_v4().to_string()) {
        Ok(mail) => mail,
        Err(message) => return bad_request(&message),
    };
    // Dropped with the answer, or with the connection of a sender that is gone.
    let _under_way = mailbox.begin(&mail);
    let verdict = mailbox.attempt(&mail);
    let is_accepted = matches!(verdict, Verdict::Accept | Verdict::AcceptLate);
    if is_accepted && mailbox.faults.acts(Target::Mail, Act::Refuse) {
        mailbox.note(&mail, "refused");
        return refusal(
            StatusCode::BAD_REQUEST,
            "SendingPausedException",
            "a fault has the local mailbox refuse this mail",
        );
    }
    let delay = match verdict {
        Verdict::Accept => None,
        Verdict::AcceptLate => Some(mailbox.slow_delay),
        Verdict::SendingPaused => {
            mailbox.note(&mail, "refused");
            return refusal(
                StatusCode::BAD_REQUEST,
                "SendingPausedException",
                "the local mailbox refuses the first mail to each flaky… address; the next is accepted",
            );
        }
        Verdict::Rejected => {
            mailbox.note(&mail, "rejected");
            return refusal(
                StatusCode::BAD_REQUEST,
                "MessageRejected",
                "the local mailbox rejects every mail to a reject… address",
            );
        }
    };
    let answer = json!({ "MessageId": mail.message_id });
    let loses = mailbox.faults.acts(Target::Mail, Act::Lose);
    mailbox.note(&mail, if loses { "answer_lost" } else { "accepted" });
    // Before the delay: a sender that is killed while it waits has sent its mail.
    mailbox.keep(mail);
    if let Some(delay) = delay {
        tokio::time::sleep(delay).await;
    }
    if loses { endpoint::no_answer() } else { Json(answer).into_response() }
}

async fn list(State(mailbox): State<Mailbox>) -> Response {
    let kept = mailbox.kept();
    let older = kept.mails.len().saturating_sub(LISTED_MAX);
    let latest: Vec<_> = kept.mails.iter().skip(older).collect();
    let list = json!({ "received": kept.received, "attempts": kept.attempts, "mails": latest });
    Json(list).into_response()
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let operation = operation_name(&method, uri.path());
    refusal(
        StatusCode::NOT_FOUND,
        "UnknownOperationException",
        &format!(
            "the local mailbox does not support {operation}: it has SendEmail (POST /v2/email/outbound-emails) and GET /_claimant/mails"
        ),
    )
}

/// The SES operation where it is a common one, with the request line in any case.
fn operation_name(method: &Method, path: &str) -> String {
    let shown: String = path.chars().take(100).collect();
    let mut parts = path.trim_start_matches("/v2/email").trim_matches('/').split('/');
    let resource = parts.next().unwrap_or_default();
    let of_one = parts.next().is_some();
    let name = match (method.as_str(), resource, of_one) {
        ("GET", "account", false) => "GetAccount",
        ("POST", "outbound-bulk-emails", false) => "SendBulkEmail",
        ("POST", "outbound-custom-verification-emails", false) => "SendCustomVerificationEmail",
        ("POST", "identities", false) => "CreateEmailIdentity",
        ("GET", "identities", false) => "ListEmailIdentities",
        ("GET", "identities", true) => "GetEmailIdentity",
        ("POST", "templates", false) => "CreateEmailTemplate",
        ("GET", "templates", false) => "ListEmailTemplates",
        ("POST", "configuration-sets", false) => "CreateConfigurationSet",
        ("GET", "configuration-sets", false) => "ListConfigurationSets",
        _ => return format!("{method} {shown}"),
    };
    format!("{name} ({method} {shown})")
}

fn bad_request(message: &str) -> Response {
    refusal(StatusCode::BAD_REQUEST, "BadRequestException", message)
}

/// The SDKs take the error's name from the header and its text from `message`.
fn refusal(status: StatusCode, kind: &'static str, message: &str) -> Response {
    let body = Json(json!({ "message": message }));
    (status, [("x-amzn-errortype", kind)], body).into_response()
}
