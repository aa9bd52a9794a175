//! What requests and answers look like on the wire: JSON for most services, forms and XML for two.

use std::time::Duration;

use claimant_aws::mapping::PATH;
use claimant_aws::said;
use claimant_aws::signed::{self, Answer, encoded};
use serde_json::{Map, Value};

use super::answers::{Request, Service, text};

/// How long a request may take.
const TIMEOUT_MS: u64 = 20_000;

/// Elements within elements of an answer at most.
const DEPTH_MAX: usize = 40;

/// The longest message of a service that is shown.
const MESSAGE_MAX: usize = 300;

/// How a service is talked to.
enum Protocol {
    /// Paths and parameters.
    Rest,
    /// JSON, with the version of the protocol and what its operations begin with.
    Json(&'static str, &'static str),
    /// Forms, with the version of the API; answers are XML.
    Form(&'static str),
}

fn service(service: Service) -> (&'static str, &'static str, Protocol) {
    match service {
        Service::CloudFormation => ("CloudFormation", "cloudformation", Protocol::Form("2010-05-15")),
        Service::CloudWatch => ("CloudWatch", "monitoring", Protocol::Json("1.0", "GraniteServiceVersion20100801")),
        Service::DynamoDb => ("DynamoDB", "dynamodb", Protocol::Json("1.0", "DynamoDB_20120810")),
        Service::Iam => ("IAM", "iam", Protocol::Form("2010-05-08")),
        Service::Lambda => ("Lambda", "lambda", Protocol::Rest),
        Service::Logs => ("CloudWatch Logs", "logs", Protocol::Json("1.1", "Logs_20140328")),
        Service::Sqs => ("SQS", "sqs", Protocol::Json("1.0", "AmazonSQS")),
    }
}

pub(super) fn sent(request: &Request) -> signed::Request<'static> {
    let (id, host, protocol) = service(request.service);
    let (method, path, headers, body) = match protocol {
        Protocol::Rest => ("GET", path(request), Vec::new(), String::new()),
        Protocol::Json(version, target) => {
            let headers = vec![
                ("content-type", format!("application/x-amz-json-{version}")),
                ("x-amz-target", format!("{target}.{}", request.operation)),
            ];
            ("POST", "/".to_owned(), headers, request.input.to_string())
        }
        Protocol::Form(version) => {
            let headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
            ("POST", "/".to_owned(), headers, form(request, version))
        }
    };
    let (service, within) = (signed::Service { id, host }, Duration::from_millis(TIMEOUT_MS));
    signed::Request { service, near: "", method, path, headers, body, within }
}

/// The path of a request to Lambda.
fn path(request: &Request) -> String {
    let function = encoded(text(&request.input, "FunctionName").unwrap_or_default());
    match request.operation {
        "ListEventSourceMappings" => {
            let marker = text(&request.input, "Marker").map(|marker| format!("?Marker={}", encoded(marker)));
            format!("{PATH}{}", marker.unwrap_or_default())
        }
        _ => format!("/2015-03-31/functions/{function}"),
    }
}

/// Lists are numbered: `ActionNames.member.1`.
fn form(request: &Request, version: &str) -> String {
    let mut form = format!("Action={}&Version={version}", request.operation);
    for (name, value) in request.input.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().filter_map(Value::as_str).enumerate() {
                    form.push_str(&format!("&{name}.member.{}={}", index + 1, encoded(item)));
                }
            }
            value => form.push_str(&format!("&{name}={}", encoded(value.as_str().unwrap_or_default()))),
        }
    }
    form
}

/// The answer as JSON, or the service's code and message.
pub(super) fn received(from: Service, answer: &Answer) -> Result<Value, String> {
    let status = answer.status;
    let is_xml = matches!(service(from).2, Protocol::Form(_));
    let value = match is_xml {
        true => xml(&String::from_utf8_lossy(&answer.body)),
        false => serde_json::from_slice(&answer.body).unwrap_or(Value::Null),
    };
    if answer.is_good() {
        return match value {
            Value::Null => Err(format!("its answer cannot be read (status {status})")),
            value => Ok(value),
        };
    }
    let value = value.get("Error").unwrap_or(&value);
    let code = text(value, "Code").unwrap_or(&answer.code);
    let code = if code.is_empty() { "no code" } else { code };
    let message = ["message", "Message"].iter().find_map(|key| text(value, key)).unwrap_or_default();
    let message: String = said(message).chars().filter(|c| !c.is_control()).take(MESSAGE_MAX).collect();
    Err(format!("{code} (status {status}) {message}").trim_end().to_owned())
}

/// The content of `…Result` in an answer, or of the answer itself, as JSON: elements called `member` are a list's.
fn xml(text: &str) -> Value {
    let mut rest = text;
    let Some((_, root)) = element(&mut rest, 0) else { return Value::Null };
    let result = root.as_object().and_then(|root| root.iter().find(|(name, _)| name.ends_with("Result")));
    result.map(|(_, value)| value.clone()).unwrap_or(root)
}

/// The next element, its name and its content.
fn element(rest: &mut &str, depth: usize) -> Option<(String, Value)> {
    loop {
        *rest = &rest[rest.find('<')?..];
        if rest.starts_with("<?") || rest.starts_with("<!") {
            *rest = &rest[rest.find('>')? + 1..];
        } else {
            break;
        }
    }
    if depth > DEPTH_MAX || rest.starts_with("</") {
        return None;
    }
    let end = rest.find('>')?;
    let tag = &rest[1..end];
    *rest = &rest[end + 1..];
    let name = tag.trim_end_matches('/').split_whitespace().next()?.to_owned();
    if tag.ends_with('/') {
        return Some((name, Value::String(String::new())));
    }
    let (mut list, mut map) = (Vec::new(), Map::new());
    let before = *rest;
    while let Some(next) = rest.find('<') {
        if rest[next..].starts_with("</") {
            let content = &before[..before.len() - rest.len() + next];
            *rest = &rest[next..];
            *rest = &rest[rest.find('>')? + 1..];
            return Some((
                name,
                match (list.is_empty(), map.is_empty()) {
                    (false, _) => Value::Array(list),
                    (true, false) => Value::Object(map),
                    (true, true) => Value::String(unescaped(content.trim())),
                },
            ));
        }
        let (child, value) = element(rest, depth + 1)?;
        if child == "member" {
            list.push(value);
        } else {
            map.insert(child, value);
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let table = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#xD;", "\r"), ("&amp;", "&")];
    table.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_have_the_form_of_their_service() {
        let of = |service, operation, input| sent(&Request { service, operation, input });
        let form = of(
            Service::Iam,
            "SimulatePrincipalPolicy",
            json!({"PolicySourceArn": "arn:aws:iam::1:role/a b", "ActionNames": ["sqs:A", "sqs:B"]}),
        );
        assert!(form.body.starts_with("Action=SimulatePrincipalPolicy&Version=2010-05-08&"));
        assert!(form.body.contains("ActionNames.member.2=sqs%3AB") && form.body.contains("role%2Fa%20b"), "{form:?}");
        let json = of(Service::Sqs, "GetQueueUrl", json!({"QueueName": "q"}));
        assert_eq!(json.body, "{\"QueueName\":\"q\"}");
        assert_eq!(json.headers[1], ("x-amz-target", "AmazonSQS.GetQueueUrl".to_owned()));
        let page = of(Service::Lambda, "ListEventSourceMappings", json!({"Marker": "a/b"}));
        assert_eq!((page.method, page.path.as_str()), ("GET", "/2015-03-31/event-source-mappings?Marker=a%2Fb"));
    }

    #[test]
    fn answers_and_refusals_are_read() {
        let received = |from, status, error_type: &str, body: &str| {
            let error_type = Some(error_type).filter(|name| !name.is_empty());
            received(from, &Answer::new(status, error_type, body.as_bytes().to_vec()))
        };
        let simulated = "<?xml version=\"1.0\"?><R xmlns=\"x\"><SimulatePrincipalPolicyResult><IsTruncated>false</IsTruncated>
            <EvaluationResults><member><MatchedStatements><member><SourcePolicyId>p</SourcePolicyId></member></MatchedStatements>
            <MissingContextValues/><EvalActionName>sqs:A</EvalActionName><EvalDecision>allowed</EvalDecision></member></EvaluationResults>
            </SimulatePrincipalPolicyResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></R>";
        let answer = received(Service::Iam, 200, "", simulated).unwrap();
        assert_eq!(answer["EvaluationResults"][0]["EvalDecision"], "allowed");
        let resources = "<A><ListStackResourcesResult><StackResourceSummaries><member><PhysicalResourceId>a&amp;b</PhysicalResourceId>
            </member></StackResourceSummaries></ListStackResourcesResult></A>";
        let answer = received(Service::CloudFormation, 200, "", resources).unwrap();
        assert_eq!(answer["StackResourceSummaries"][0]["PhysicalResourceId"], "a&b");
        let table: [(Service, u16, &str, &str, &str); 7] = [
            (
                Service::CloudFormation,
                400,
                "",
                "<E><Error><Code>ValidationError</Code><Message>no stack x</Message></Error></E>",
                "ValidationError (status 400) no stack x",
            ),
            (
                Service::CloudFormation,
                403,
                "",
                "<E><Error><Code>ExpiredToken</Code><Message>it is expired</Message></Error></E>",
                "ExpiredToken (status 403) it is expired",
            ),
            (
                Service::Sqs,
                400,
                "",
                "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\"}",
                "QueueDoesNotExist (status 400)",
            ),
            (Service::Lambda, 403, "", "{\"Message\":\"not you\"}", "no code (status 403) not you"),
            (
                Service::Lambda,
                403,
                "AccessDeniedException:http://x/",
                "{\"Type\":\"User\",\"Message\":\"not you\"}",
                "AccessDeniedException (status 403) not you",
            ),
            (Service::Lambda, 200, "", "<html>", "its answer cannot be read (status 200)"),
            (Service::Iam, 200, "", "<a><b>", "its answer cannot be read (status 200)"),
        ];
        for (service, status, error_type, body, expected) in table {
            assert_eq!(received(service, status, error_type, body).unwrap_err(), expected);
        }
        let deep = "<a>".repeat(10_000);
        assert!(received(Service::Iam, 200, "", &deep).is_err());
    }
}
