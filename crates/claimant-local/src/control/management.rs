//! The part of Lambda's own API that operators need: functions and event source mappings listed and read, a mapping paused and resumed.
//!
//! What AWS has and this has not is refused by name. Pages are as large as asked for, and hold everything otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::arn::{self, ACCOUNT_ID, REGION};
use crate::endpoint::query;
use crate::mapping::MappingSwitch;
use crate::stack::{FunctionSpec, MappingSpec};

const MAPPINGS_PATH: &str = "/2015-03-31/event-source-mappings";
const FUNCTIONS_PATH: &str = "/2015-03-31/functions";
const TAGS_PATH: &str = "/2017-03-31/tags";

/// The stack that the functions are of: the whole template.
pub(super) const STACK: &str = "local";

/// What a mapping's answer names so that failed messages stay.
const REPORTS: &str = "ReportBatchItemFailures";

/// A function that runs, and what pauses and resumes each of its mappings.
#[derive(Debug, Clone)]
pub struct Managed {
    /// What the template says of it.
    pub spec: FunctionSpec,
    /// Its variables, as they are shown.
    pub variables: BTreeMap<String, String>,
    /// A switch for each mapping of `spec`, in its order.
    pub switches: Vec<MappingSwitch>,
}

impl Managed {
    fn mappings(&self) -> impl Iterator<Item = (&Self, &MappingSpec, &MappingSwitch)> {
        self.spec.mappings.iter().zip(&self.switches).map(move |(spec, switch)| (self, spec, switch))
    }

    fn json(&self) -> Value {
        json!({
            "FunctionName": self.spec.name,
            "FunctionArn": arn::of_function(&self.spec.name),
            "Runtime": "provided.al2023",
            "Timeout": self.spec.timeout.as_secs(),
            "MemorySize": self.spec.memory_mb,
            "State": "Active",
            "Version": "$LATEST",
            "Environment": { "Variables": self.variables },
        })
    }

    /// The tags that CloudFormation gives what it makes.
    fn tags(&self) -> Value {
        json!({ "aws:cloudformation:stack-name": STACK, "aws:cloudformation:logical-id": self.spec.logical_id })
    }
}

/// The functions, once they run.
pub(super) type Functions = Arc<OnceLock<Vec<Managed>>>;

/// Returns the routes of this part of Lambda's API.
pub(super) fn router<S: Clone + Send + Sync + 'static>(functions: Functions) -> Router<S> {
    let mut router = Router::new();
    // The SDKs differ in the slash at the end.
    for slash in ["", "/"] {
        router = router
            .route(&format!("{MAPPINGS_PATH}{slash}"), get(list_mappings))
            .route(&format!("{FUNCTIONS_PATH}{slash}"), get(list_functions));
    }
    router
        .route(&format!("{MAPPINGS_PATH}/{{id}}"), get(get_mapping).put(update_mapping))
        .route(&format!("{FUNCTIONS_PATH}/{{name}}"), get(get_function))
        .route(&format!("{FUNCTIONS_PATH}/{{name}}/configuration"), get(get_configuration))
        .route(&format!("{TAGS_PATH}/{{arn}}"), get(list_tags))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .with_state(functions)
}

pub(super) fn all(functions: &Functions) -> &[Managed] {
    functions.get().map_or(&[], Vec::as_slice)
}

async fn list_mappings(State(functions): State<Functions>, uri: Uri) -> Response {
    let query = query(&uri);
    let is = |name: &str, value: &str| query.get(name).is_none_or(|wanted| wanted == value);
    let function = query.get("FunctionName").map(|name| arn::function_name(name));
    let mappings = all(&functions).iter().flat_map(Managed::mappings).filter(|(managed, spec, _)| {
        function.is_none_or(|name| name == managed.spec.name) && is("EventSourceArn", &arn::of_queue(&spec.queue))
    });
    page("EventSourceMappings", mappings.map(mapping_json).collect(), &query)
}

async fn list_functions(State(functions): State<Functions>, uri: Uri) -> Response {
    page("Functions", all(&functions).iter().map(Managed::json).collect(), &query(&uri))
}

async fn get_function(State(functions): State<Functions>, Path(name): Path<String>) -> Response {
    of_function(&functions, &name, |managed| json!({ "Configuration": managed.json(), "Tags": managed.tags() }))
}

async fn get_configuration(State(functions): State<Functions>, Path(name): Path<String>) -> Response {
    of_function(&functions, &name, Managed::json)
}

async fn list_tags(State(functions): State<Functions>, Path(arn): Path<String>) -> Response {
    of_function(&functions, &arn, |managed| json!({ "Tags": managed.tags() }))
}

/// What there is to say of the function of this name or ARN.
fn of_function(functions: &Functions, called: &str, say: impl FnOnce(&Managed) -> Value) -> Response {
    let name = arn::function_name(called);
    match all(functions).iter().find(|managed| managed.spec.name == name) {
        Some(managed) => Json(say(managed)).into_response(),
        None => not_found(&format!("Function not found: {}", arn::of_function(name))),
    }
}

async fn get_mapping(State(functions): State<Functions>, Path(id): Path<String>) -> Response {
    match find(&functions, &id) {
        Some(found) => Json(mapping_json(found)).into_response(),
        None => not_found("The resource you requested does not exist."),
    }
}

async fn update_mapping(State(functions): State<Functions>, Path(id): Path<String>, body: Bytes) -> Response {
    let Some((managed, spec, switch)) = find(&functions, &id) else {
        return not_found("The resource you requested does not exist.");
    };
    let update: Value = match serde_json::from_slice(&body) {
        Ok(update @ Value::Object(_)) => update,
        _ => return invalid("the request is not a JSON object"),
    };
    let asked = update.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    // What is carried out, the mapping's name, and the function that it has already.
    let is_known = |(name, value): &(&String, &Value)| match name.as_str() {
        "Enabled" | "FunctionResponseTypes" | "UUID" => true,
        "FunctionName" => value.as_str().is_some_and(|called| arn::function_name(called) == managed.spec.name),
        _ => false,
    };
    if let Some((name, _)) = asked.clone().find(|field| !is_known(field)) {
        return invalid(&format!("the local cloud cannot change {name}: change the template, and start it again"));
    }
    match (&update["Enabled"], &update["FunctionResponseTypes"]) {
        (Value::Null | Value::Bool(_), Value::Null | Value::Array(_)) => {}
        _ => return invalid("Enabled is true or false, and FunctionResponseTypes a list"),
    }
    if let Some(types) = update["FunctionResponseTypes"].as_array() {
        if types.iter().any(|kind| kind != REPORTS) {
            return invalid(&format!("FunctionResponseTypes holds {REPORTS} or nothing"));
        }
        switch.set_reports_failures(!types.is_empty());
    }
    if let Some(enabled) = update["Enabled"].as_bool() {
        switch.enable(enabled);
    }
    (StatusCode::ACCEPTED, Json(mapping_json((managed, spec, switch)))).into_response()
}

type Found<'f> = (&'f Managed, &'f MappingSpec, &'f MappingSwitch);

fn find<'f>(functions: &'f Functions, id: &str) -> Option<Found<'f>> {
    all(functions).iter().flat_map(Managed::mappings).find(|(_, _, switch)| switch.id() == id)
}

fn mapping_json((managed, spec, switch): Found<'_>) -> Value {
    let types: &[&str] = if switch.reports_failures() { &[REPORTS] } else { &[] };
    let concurrency = spec.maximum_concurrency.map(|n| json!({ "MaximumConcurrency": n }));
    json!({
        "UUID": switch.id(),
        "EventSourceMappingArn": format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:event-source-mapping:{}", switch.id()),
        "EventSourceArn": arn::of_queue(&spec.queue),
        "FunctionArn": arn::of_function(&managed.spec.name),
        "BatchSize": spec.batch_size,
        "MaximumBatchingWindowInSeconds": spec.window.as_secs(),
        "FunctionResponseTypes": types,
        "ScalingConfig": concurrency,
        "State": switch.state().as_str(),
        "StateTransitionReason": "USER_INITIATED",
        // Seconds, as the SDKs read them.
        "LastModified": switch.modified_ms() / 1_000,
    })
}

/// The items that the query asks for, beginning at its marker.
fn page(name: &str, items: Vec<Value>, query: &BTreeMap<String, String>) -> Response {
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
    let (start, size) = (number("Marker").unwrap_or(0), number("MaxItems").unwrap_or(usize::MAX).max(1));
    let end = start.saturating_add(size);
    let next = (end < items.len()).then(|| end.to_string());
    let items: Vec<_> = items.into_iter().skip(start).take(size).collect();
    Json(json!({ name: items, "NextMarker": next })).into_response()
}

async fn unknown(method: Method, uri: Uri) -> Response {
    let path: String = uri.path().chars().take(100).collect();
    let why = format!(
        "the local cloud does not support {method} {path}: of Lambda's API it has ListFunctions, GetFunction, GetFunctionConfiguration, \
         ListTags, ListEventSourceMappings, GetEventSourceMapping and UpdateEventSourceMapping"
    );
    refusal(StatusCode::NOT_FOUND, "UnknownOperationException", &why)
}

fn not_found(why: &str) -> Response {
    refusal(StatusCode::NOT_FOUND, "ResourceNotFoundException", why)
}

fn invalid(why: &str) -> Response {
    refusal(StatusCode::BAD_REQUEST, "InvalidParameterValueException", why)
}

/// The SDKs take the error's name from the header and its text from `message`.
fn refusal(status: StatusCode, kind: &'static str, message: &str) -> Response {
    (status, [("x-amzn-errortype", kind)], Json(json!({ "Type": "User", "message": message }))).into_response()
}
