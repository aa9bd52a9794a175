//! The endpoint: the rest-json shapes of EventBridge Scheduler.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::schedule::Schedule;
use super::service::{Creation, Name, SCHEDULES_MAX, Scheduler, arn_of};
use crate::clock::wall_clock_ms;
use crate::{Error, endpoint};

/// The largest request read: an input, every byte of which JSON may spell in six, and what is around it.
const REQUEST_MAX_BYTES: usize = 6 * 262_144 + 65_536;

/// Between two looks at what is due.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The most schedules on a page, and how many it has unless the request says so.
const PAGE_MAX: usize = 100;

/// The group of schedules that name none.
const DEFAULT_GROUP: &str = "default";

impl Scheduler {
    /// Serves on `listener`, and sends what is due, until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let due = async {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                self.run_due(wall_clock_ms());
            }
        };
        tokio::select! {
            served = endpoint::serve("scheduler's endpoint", listener, router(self.clone()), shutdown) => served,
            () = due => Ok(()),
        }
    }
}

fn router(scheduler: Scheduler) -> Router {
    Router::new()
        .route("/schedules", axum::routing::get(list))
        .route("/schedules/{name}", post(create).get(get).delete(delete))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(REQUEST_MAX_BYTES))
        .with_state(scheduler)
}

async fn create(
    State(scheduler): State<Scheduler>,
    Path(name): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let request: Value = match body.map(|body| serde_json::from_slice(&body)) {
        Ok(Ok(request)) => request,
        Ok(Err(_)) | Err(_) => return invalid("the request is not JSON, or too long"),
    };
    let group = request["GroupName"].as_str().unwrap_or(DEFAULT_GROUP).to_owned();
    let schedule = match Schedule::read(&name, request, &scheduler.sqs) {
        Ok(schedule) => schedule,
        Err(why) => return invalid(&why),
    };
    let name = (group, name);
    let arn = arn_of(&name);
    match scheduler.create(name, schedule) {
        Creation::Created => Json(json!({ "ScheduleArn": arn })).into_response(),
        Creation::Taken => refusal(StatusCode::CONFLICT, "ConflictException", "a schedule of this name exists"),
        Creation::Full => refusal(
            StatusCode::PAYMENT_REQUIRED,
            "ServiceQuotaExceededException",
            &format!("the local scheduler keeps {SCHEDULES_MAX} schedules at most"),
        ),
    }
}

async fn get(State(scheduler): State<Scheduler>, Path(name): Path<String>, uri: Uri) -> Response {
    let name = in_group(name, &uri);
    let Some((mut shown, created_ms)) = scheduler.get(&name) else { return not_found() };
    if let Value::Object(shown) = &mut shown {
        shown.remove("ClientToken");
        for (field, value) in [
            ("Name", name.1.as_str()),
            ("GroupName", &name.0),
            ("Arn", &arn_of(&name)),
            ("ScheduleExpressionTimezone", "UTC"),
        ] {
            shown.insert(field.to_owned(), json!(value));
        }
        // Nothing changes one here.
        for field in ["CreationDate", "LastModificationDate"] {
            shown.insert(field.to_owned(), json!(created_ms / 1_000));
        }
        shown.entry("State").or_insert_with(|| json!("ENABLED"));
    }
    Json(shown).into_response()
}

async fn list(State(scheduler): State<Scheduler>, uri: Uri) -> Response {
    let query = endpoint::query(&uri);
    let is = |field: &str, value: &str| query.get(field).is_none_or(|wanted| wanted == value);
    let state = |enabled| if enabled { "ENABLED" } else { "DISABLED" };
    let asked = |(group, name): &Name, enabled| {
        is("ScheduleGroup", group)
            && is("State", state(enabled))
            && query.get("NamePrefix").is_none_or(|prefix| name.starts_with(prefix))
    };
    let max = query.get("MaxResults").map_or(Some(PAGE_MAX), |max| max.parse().ok());
    let Some(max) = max.filter(|max| (1..=PAGE_MAX).contains(max)) else {
        return invalid("MaxResults is a number from 1 to 100");
    };
    // A token is the name before the page, in its group.
    let token = query.get("NextToken").map(|token| token.rsplit_once('/'));
    if token == Some(None) {
        return invalid("NextToken is not one that ListSchedules returned");
    }
    let after = token.flatten().map(|(group, name)| (group.to_owned(), name.to_owned()));
    let (names, more) = scheduler.names(after, max, asked);
    let next = names.last().filter(|_| more).map(|((group, name), _)| format!("{group}/{name}"));
    let named = |(name, enabled): &(Name, bool)| json!({ "Name": name.1, "GroupName": name.0, "Arn": arn_of(name), "State": state(*enabled) });
    Json(json!({ "Schedules": names.iter().map(named).collect::<Vec<_>>(), "NextToken": next })).into_response()
}

async fn delete(State(scheduler): State<Scheduler>, Path(name): Path<String>, uri: Uri) -> Response {
    if scheduler.delete(&in_group(name, &uri)) { Json(json!({})).into_response() } else { not_found() }
}

/// The name in the group that the query has.
fn in_group(name: String, uri: &Uri) -> Name {
    let group = endpoint::query(uri).remove("groupName");
    (group.unwrap_or_else(|| DEFAULT_GROUP.to_owned()), name)
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let path: String = uri.path().chars().take(100).collect();
    let why = format!(
        "the local scheduler does not support {method} {path}: it has CreateSchedule, GetSchedule, ListSchedules and DeleteSchedule"
    );
    refusal(StatusCode::NOT_FOUND, "UnknownOperationException", &why)
}

fn not_found() -> Response {
    refusal(StatusCode::NOT_FOUND, "ResourceNotFoundException", "there is no schedule of this name")
}

fn invalid(why: &str) -> Response {
    refusal(StatusCode::BAD_REQUEST, "ValidationException", why)
}

/// The SDKs take the error's name from the header and its text from `Message`.
fn refusal(status: StatusCode, kind: &'static str, message: &str) -> Response {
    (status, [("x-amzn-errortype", kind)], Json(json!({ "Message": message }))).into_response()
}
