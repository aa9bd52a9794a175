//! The AWS JSON 1.0 protocol over HTTP: every request is a POST that names its action in `X-Amz-Target`.

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use super::actions::{self, Call};
use super::fault::{Code, Fault};
use super::service::Sqs;
use super::settings::MESSAGE_BYTES_MAX;
use super::wire::{ErrorAnswer, to_json};
use crate::Error;
use crate::endpoint;

/// The largest request read: 1 MiB of content, every byte of which JSON may spell in six (`\u000a`), and 2 MiB for
/// the ten entries around it. A larger one could only hold a message that SQS refuses.
const REQUEST_BYTES_MAX: usize = 6 * MESSAGE_BYTES_MAX + 2 * 1_048_576;

/// The most messages of one look.
const LOOK_MAX: usize = 1_000;

const TARGET_HEADER: &str = "x-amz-target";
const TARGET_PREFIX: &str = "AmazonSQS.";
const TRACE_HEADER: &str = "x-amzn-trace-id";

/// What every request needs: the queues, and a flag that turns true when the server stops, so that long polls end.
type Shared = (Sqs, watch::Receiver<bool>);

impl Sqs {
    /// Answers the AWS JSON 1.0 protocol on `listener` until `shutdown` is ready and open requests are answered. Long
    /// polls end at once.
    ///
    /// # Errors
    ///
    /// If the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let address = listener.local_addr();
        let address = address.map_err(|e| Error::new("the SQS endpoint has no address").caused_by(e))?;
        self.default_endpoint(format!("http://{address}"));
        let (close, closing) = watch::channel(false);
        let router = Router::new()
            .route("/_claimant/messages", get(look))
            .fallback(answer)
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state::<()>((self, closing));
        let stopping = async move {
            shutdown.await;
            close.send_replace(true);
        };
        endpoint::serve("SQS endpoint", listener, router, stopping).await
    }
}

/// Shows messages without receiving them: for people, and for the commands and the console.
async fn look(State((sqs, _)): State<Shared>, uri: Uri) -> Response {
    let asked = endpoint::query(&uri);
    let field = |name: &str| asked.get(name).map(String::as_str);
    let after = field("after").and_then(|text| text.parse().ok());
    let limit = field("limit").and_then(|text| text.parse().ok()).unwrap_or(LOOK_MAX).clamp(1, LOOK_MAX);
    let body_max = field("body").and_then(|text| text.parse().ok());
    match actions::look(&sqs, field("queue").unwrap_or_default(), after, (limit, body_max)) {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], to_json(&answer)).into_response(),
        Err(fault) => refusal(&fault),
    }
}

async fn answer(
    State((sqs, closing)): State<Shared>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if !headers.contains_key(TARGET_HEADER) {
        return query_protocol();
    }
    let trace = headers.get(TRACE_HEADER).and_then(|trace| trace.to_str().ok()).filter(|trace| !trace.is_empty());
    let answered = match (action(&headers), body) {
        (Ok(action), Ok(body)) => actions::perform(&sqs, closing, Call { action, trace, body: &body }).await,
        (Err(fault), _) => Err(fault),
        (Ok(_), Err(rejection)) => Err(unreadable(&rejection)),
    };
    let mut response = match answered {
        Ok(json) => json.into_response(),
        Err(fault) => refusal(&fault),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    let request_id = HeaderValue::try_from(Uuid::new_v4().to_string());
    headers.insert("x-amzn-requestid", request_id.expect("a UUID is plain ASCII"));
    response
}

fn action(headers: &HeaderMap) -> Result<&str, Fault> {
    let target = headers.get(TARGET_HEADER).and_then(|target| target.to_str().ok());
    target.and_then(|target| target.strip_prefix(TARGET_PREFIX)).ok_or_else(|| {
        Fault::new(
            Code::UnsupportedOperation,
            format!(
                "The header X-Amz-Target must be {TARGET_PREFIX}<Action>: this endpoint speaks AWS JSON 1.0 only, as \
                 the AWS SDKs have done since late 2023. Update the client."
            ),
        )
    })
}

/// Refuses a client of the older protocol, in its own form.
fn query_protocol() -> Response {
    let fault = Fault::not_imitated(
        "the query protocol: take a client that speaks AWS JSON 1.0 (AWS SDKs since late 2023; the AWS CLI and the SDK for Python \
         since mid 2024), or claimant send",
    );
    let (code, message) = (fault.code.query_code(), &fault.message);
    let xml = format!(
        "<?xml version=\"1.0\"?><ErrorResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\"><Error><Type>Sender</Type>\
         <Code>{code}</Code><Message>{message}</Message></Error><RequestId>{}</RequestId></ErrorResponse>",
        Uuid::new_v4()
    );
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "text/xml")], xml).into_response()
}

fn unreadable(rejection: &BytesRejection) -> Fault {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let reason = format!("Request must be shorter than {REQUEST_BYTES_MAX} bytes.");
        return Fault::new(
            Code::InvalidParameterValue,
            format!("One or more parameters are invalid. Reason: {reason}"),
        );
    }
    Fault::new(Code::Serialization, "The request body ended before its end.")
}

fn refusal(fault: &Fault) -> Response {
    let answer = ErrorAnswer { shape: fault.code.shape(), message: &fault.message };
    let status = StatusCode::from_u16(fault.code.status()).expect("every status of a code is one of HTTP");
    let mut response = (status, to_json(&answer)).into_response();
    let query_error = HeaderValue::try_from(format!("{};Sender", fault.code.query_code()));
    let query_error = query_error.expect("every code is plain ASCII");
    response.headers_mut().insert("x-amzn-query-error", query_error);
    response
}
