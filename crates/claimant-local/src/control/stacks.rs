//! The part of CloudFormation's own API that finds the functions of a stack: `ListStackResources` of the one stack, which is the template.
//!
//! Only functions are listed.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;

use super::management::{Functions, Managed, STACK, all};
use crate::endpoint::fields;

/// Returns the route of this part of CloudFormation's API.
pub(super) fn router<S: Clone + Send + Sync + 'static>(functions: Functions) -> Router<S> {
    Router::new().route("/", post(answer)).with_state(functions)
}

async fn answer(State(functions): State<Functions>, form: String) -> Response {
    let asked = fields(&form);
    let field = |name: &str| asked.get(name).map(String::as_str);
    match (field("Action"), field("StackName")) {
        (Some("ListStackResources"), Some(STACK)) => resources(all(&functions)),
        (Some("ListStackResources"), _) => {
            refusal("ValidationError", &format!("This stack does not exist: the local cloud has one, {STACK}"))
        }
        _ => refusal("InvalidAction", "of CloudFormation the local cloud has ListStackResources"),
    }
}

fn resources(functions: &[Managed]) -> Response {
    // Names of functions and resources need no escapes: those of a template are checked.
    let member = |managed: &Managed| {
        format!(
            "<member><LogicalResourceId>{}</LogicalResourceId><PhysicalResourceId>{}</PhysicalResourceId>\
             <ResourceType>AWS::Lambda::Function</ResourceType><ResourceStatus>CREATE_COMPLETE</ResourceStatus></member>",
            managed.spec.logical_id, managed.spec.name
        )
    };
    let members: String = functions.iter().map(member).collect();
    let result = format!("<StackResourceSummaries>{members}</StackResourceSummaries>");
    let result = format!("<ListStackResourcesResult>{result}</ListStackResourcesResult>");
    xml(StatusCode::OK, &format!("<ListStackResourcesResponse>{result}</ListStackResourcesResponse>"))
}

/// A refusal. Nothing in it comes from the request, so nothing is escaped.
fn refusal(code: &str, message: &str) -> Response {
    let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
    xml(StatusCode::BAD_REQUEST, &format!("<ErrorResponse>{error}</ErrorResponse>"))
}

fn xml(status: StatusCode, root: &str) -> Response {
    let text = format!("<?xml version=\"1.0\"?>{root}");
    (status, [(header::CONTENT_TYPE, "text/xml")], text).into_response()
}
