//! `claimant pause` on a deployed stack, in an account that a server on loopback plays.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::aws::Server;

const MAPPINGS: &str = "/2015-03-31/event-source-mappings";
const PAGE_2: &str = "page/2=";

fn arn(service: &str, name: &str) -> String {
    format!("arn:aws:{service}:eu-west-1:123456789012:{name}")
}

fn mapping(id: &str, source: &str, state: &str) -> Value {
    let (source, function) = (arn("sqs", source), arn("lambda", "function:worker"));
    json!({
        "UUID": id, "EventSourceArn": source, "FunctionArn": function, "State": state,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
    })
}

/// The answer of CloudFormation with these resources of a stack, each a type and a name; `worker` is `Worker` in the template.
pub(crate) fn resources(members: &[(&str, &str)], next: &str) -> (u16, String) {
    let member = |(kind, name): &(&str, &str)| {
        let logical = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        format!(
            "<member><LogicalResourceId>{logical}</LogicalResourceId><PhysicalResourceId>{name}</PhysicalResourceId>\
             <ResourceType>{kind}</ResourceType></member>"
        )
    };
    let members: String = members.iter().map(member).collect();
    let all = format!("<StackResourceSummaries>{members}</StackResourceSummaries><NextToken>{next}</NextToken>");
    (200, format!("<A><ListStackResourcesResult>{all}</ListStackResourcesResult></A>"))
}

const FUNCTION: &str = "AWS::Lambda::Function";
const ONE_FUNCTION: &str = "GET /2015-03-31/functions/worker";

/// Answers for the stack `shop`: the function `worker`, on the second page of its resources, reads `orders`, and `parcels` of the second
/// page of mappings.
fn shop(request: &str) -> (u16, String) {
    if request.contains("Action=ListStackResources") && request.contains("StackName=shop") {
        return match request.contains("NextToken=page%2F2%3D") {
            true => resources(&[(FUNCTION, "worker")], ""),
            false => resources(&[("AWS::SQS::Queue", "orders")], PAGE_2),
        };
    }
    let line = request.split(" HTTP/1.1").next().unwrap();
    let answer = match line {
        ONE_FUNCTION => json!({"Configuration": {"FunctionName": "worker"}}),
        "GET /2015-03-31/event-source-mappings" => {
            json!({"EventSourceMappings": [mapping("m-1", "orders", "Enabled")], "NextMarker": PAGE_2})
        }
        "GET /2015-03-31/event-source-mappings?Marker=page%2F2%3D" => {
            let stream = json!({"UUID": "m-3", "EventSourceArn": arn("kinesis", "stream/x"), "State": "Enabled"});
            let mut others = mapping("m-4", "returns", "Enabled");
            others["FunctionArn"] = arn("lambda", "function:workers").into();
            json!({"EventSourceMappings": [stream, others, mapping("m-2", "parcels", "Enabled")]})
        }
        "PUT /2015-03-31/event-source-mappings/m-1" => mapping("m-1", "orders", "Disabling"),
        "GET /2015-03-31/event-source-mappings/m-1" => mapping("m-1", "orders", "Disabled"),
        "PUT /2015-03-31/event-source-mappings/m-2" => mapping("m-2", "parcels", "Disabled"),
        _ if line.starts_with("GET /schedules") => json!({"Schedules": []}),
        _ if request.contains("AmazonSQS.GetQueueUrl") => {
            json!({"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q"})
        }
        _ if request.contains("AmazonSQS.GetQueueAttributes") => json!({"Attributes": {}}),
        _ => return refused(),
    };
    (200, answer.to_string())
}

fn refused() -> (u16, String) {
    (403, json!({"__type": "AccessDeniedException", "Message": "not you"}).to_string())
}

fn refused_by_cloudformation(code: &str, message: &str) -> (u16, String) {
    (403, format!("<E><Error><Code>{code}</Code><Message>{message}</Message></Error></E>"))
}

fn in_use() -> (u16, String) {
    (400, json!({"__type": "ResourceInUseException", "Message": "in use"}).to_string())
}

fn throttled() -> (u16, String) {
    (429, json!({"Type": "User", "code": "TooManyRequestsException", "Message": "slow down"}).to_string())
}

/// The answer of an account in which the queue `parcels` is gone, where that is what is asked for.
pub(crate) fn parcels_gone(request: &str) -> Option<(u16, String)> {
    let gone = json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"});
    let is_asked = request.contains("AmazonSQS.GetQueueUrl") && request.contains("\"parcels\"");
    is_asked.then(|| (400, gone.to_string()))
}

/// Answers as [`shop`] does, but the queue `parcels` is gone.
pub(crate) fn without_parcels(request: &str) -> (u16, String) {
    parcels_gone(request).unwrap_or_else(|| shop(request))
}

#[test]
fn a_queue_that_is_gone_keeps_no_command_from_the_others() {
    let server = Server::start(without_parcels);
    let (code, out, err) = pause(&server);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("an event source mapping of worker names parcels, which is left out"), "{err}");
    // What is about the dead letters of all queues does not leave some out.
    let (code, out, err) = server.claimant(&["dead", "list", "--stack", "shop"]);
    assert!(code == Some(2) && err.contains("name one by its URL, with --queue and without --stack"), "{out}{err}");
    // Where no answer comes, it may be there.
    let server = Server::start(|request| match request.contains("AmazonSQS.GetQueueUrl") {
        true => (503, String::new()),
        false => shop(request),
    });
    assert_eq!(pause(&server).0, Some(2));
}

#[test]
fn an_account_that_is_not_looked_at_whole_is_said() {
    let server = Server::start(|request| match request.starts_with("GET /2015-03-31/event-source-mappings ") {
        true => {
            let own = mapping("m-1", "orders", "Enabled");
            let other =
                json!({"UUID": "m", "EventSourceArn": arn("sqs", "q"), "FunctionArn": arn("lambda", "function:f")});
            let all: Vec<_> = [own].into_iter().chain(std::iter::repeat_n(other, 10_000)).collect();
            (200, json!({"EventSourceMappings": all}).to_string())
        }
        false => shop(request),
    });
    let (code, out, err) = pause(&server);
    assert!(code == Some(0) && err.contains("only the first 10000 event source mappings"), "{out}{err}");
}

fn pause(server: &Server) -> (Option<i32>, String, String) {
    server.claimant(&["pause", "worker", "--stack", "shop", "--yes", "--json"])
}

/// How many of the requests begin so.
fn count(server: &Server, line: &str) -> usize {
    server.requests.lock().unwrap().iter().filter(|request| request.starts_with(line)).count()
}

#[test]
fn all_pages_are_read_and_all_requests_signed() {
    let server = Server::start(shop);
    let (code, out, err) = pause(&server);
    assert_eq!(code, Some(0), "{out}{err}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let shown: Vec<_> = shown["mappings"].as_array().unwrap().iter().map(|mapping| &mapping["queue"]).collect();
    assert_eq!(shown, ["orders", "parcels"], "{out}");
    let requests = server.requests.lock().unwrap();
    for request in requests.iter().filter(|request| request.contains("/2015-03-31/")) {
        assert!(request.contains("Credential=AKIDEXAMPLE/") && request.contains("/eu-west-1/lambda/"), "{request}");
    }
    let body = |id: &str| {
        let put = requests.iter().find(|request| request.starts_with(&format!("PUT {MAPPINGS}/{id}"))).unwrap();
        serde_json::from_str::<Value>(put.rsplit('\n').next().unwrap()).unwrap()
    };
    assert_eq!((body("m-1"), body("m-2")), (json!({"Enabled": false}), json!({"Enabled": false})));
    // Nothing is asked about the other functions of the account.
    let about_functions: Vec<_> = requests.iter().filter(|request| request.contains("/functions")).collect();
    assert!(about_functions.len() == 1 && about_functions[0].starts_with(ONE_FUNCTION), "{about_functions:?}");
}

#[test]
fn a_function_that_is_gone_is_of_no_stack() {
    fn with_gone(request: &str) -> (u16, String) {
        match request {
            _ if request.contains("NextToken=page%2F2%3D") => {
                resources(&[(FUNCTION, "gone"), (FUNCTION, "worker")], "")
            }
            _ if request.starts_with("GET /2015-03-31/functions/gone ") => {
                (404, json!({"__type": "ResourceNotFoundException", "Message": "Function not found"}).to_string())
            }
            _ => shop(request),
        }
    }
    let server = Server::start(with_gone);
    let (code, out, err) = pause(&server);
    assert!(code == Some(0) && !err.contains("gone"), "{out}{err}");
    // Where all are gone, it is not the stack that is meant.
    let server = Server::start(|request| match request.starts_with(ONE_FUNCTION) {
        true => (404, json!({"__type": "ResourceNotFoundException"}).to_string()),
        false => with_gone(request),
    });
    let (code, out, err) = pause(&server);
    assert!(code == Some(2) && err.contains("the stack shop has no function. Are the stack's name"), "{out}{err}");
}

#[test]
fn a_stack_whose_functions_are_all_in_nested_stacks_names_these() {
    let server = Server::start(|request| match request.contains("Action=ListStackResources") {
        true => resources(
            &[
                (
                    "AWS::CloudFormation::Stack",
                    "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-Inner-1ABC/8e",
                ),
                (
                    "AWS::CloudFormation::Stack",
                    "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-Other-2DEF/9f",
                ),
            ],
            "",
        ),
        false => shop(request),
    });
    let (code, out, err) = pause(&server);
    assert!(code == Some(2) && err.contains("nested in it: shop-Inner-1ABC, shop-Other-2DEF"), "{out}{err}");
}

/// Another stack's function is not meant, whatever it is called.
#[test]
fn a_function_of_another_stack_is_left_alone() {
    let server = Server::start(shop);
    for act in ["pause", "resume"] {
        for function in ["workers", "workers:live", "arn:aws:lambda:eu-west-1:123456789012:function:workers"] {
            let (code, out, err) = server.claimant(&[act, "--yes", function, "--stack", "shop"]);
            assert_eq!(code, Some(2), "{act:?} {function}: {out}{err}");
            let said = format!("there is no function {function} in the stack shop: there are worker");
            assert!(err.contains(&said), "{act:?} {function}: {err}");
        }
    }
    assert_eq!(count(&server, "PUT "), 0);
}

/// A mapping that somebody else has paused on purpose is none of those that are resumed; nor is one of another account's queue of this name. The
/// queue may be gone, or not for this role to ask about.
#[test]
fn the_mapping_of_a_queue_that_is_named_is_the_only_one_that_is_switched() {
    let url = |home: &str| format!("https://sqs.{home}/parcels");
    let (own, other) = (url("eu-west-1.amazonaws.com/123456789012"), url("eu-west-1.amazonaws.com/999999999999"));
    let elsewhere = url("us-east-1.amazonaws.com/123456789012");
    for act in ["pause", "resume"] {
        for (queues, ids) in [
            (&["--queue", "parcels", "--stack", "shop"][..], &["m-2", "m-5"][..]),
            (&["--queue", &own], &["m-2"]),
            (&["--queue", &other, "--stack", "shop"], &["m-5"]),
            (&["--queue", &elsewhere], &[]),
            (&["--queue", "orders", "--queue", "returns", "--stack", "shop"], &[]),
        ] {
            let server = Server::start(with_parcels_of_another);
            let args = [&[act, "worker", "--yes", "--json", "--wait", "0"], queues].concat();
            let (code, out, err) = server.claimant(&args);
            let switched: Vec<_> = ["m-1", "m-2", "m-5"]
                .into_iter()
                .filter(|id| count(&server, &format!("PUT {MAPPINGS}/{id}")) > 0)
                .collect();
            // Also those that are `Enabled` only as they were listed.
            assert_eq!(switched, ids, "{args:?}: {out}{err}");
            if ids.is_empty() {
                let says =
                    format!("worker has no event source mapping of the SQS queue {}", queues[queues.len().min(4) - 1]);
                assert!(code == Some(2) && err.contains(&says), "{args:?}: {out}{err}");
                continue;
            }
            let mut shown = shown(&out, &err)["mappings"].take();
            let shown: Vec<_> = shown.as_array_mut().unwrap().iter_mut().map(|one| one["id"].take()).collect();
            assert_eq!(shown, ids, "{args:?}: {out}{err}");
        }
    }
}

/// Answers as [`without_parcels`] does, of a worker that reads the queue `parcels` of another account, too.
fn with_parcels_of_another(request: &str) -> (u16, String) {
    let line = request.split(" HTTP/1.1").next().unwrap();
    let other = |state: &str| {
        let mut other = mapping("m-5", "parcels", state);
        other["EventSourceArn"] = "arn:aws:sqs:eu-west-1:999999999999:parcels".into();
        other
    };
    if line == "PUT /2015-03-31/event-source-mappings/m-5" {
        return (200, other("Disabled").to_string());
    }
    let (status, answer) = without_parcels(request);
    if line != "GET /2015-03-31/event-source-mappings?Marker=page%2F2%3D" {
        return (status, answer);
    }
    let mut answer: Value = serde_json::from_str(&answer).unwrap();
    answer["EventSourceMappings"].as_array_mut().unwrap().push(other("Enabled"));
    (status, answer.to_string())
}

/// Functions with fixed names are called alike in each Region and account.
#[test]
fn a_function_of_another_region_or_account_is_left_alone() {
    let server = Server::start(shop);
    for act in ["pause", "resume"] {
        for home in ["arn:aws:lambda:us-east-1:123456789012", "arn:aws:lambda:eu-west-1:999999999999", "999999999999"] {
            let function = format!("{home}:function:worker");
            for place in [["--stack", "shop"], ["--table", "locks"]] {
                let (code, out, err) = server.claimant(&[&[act, "--yes", &function], &place[..]].concat());
                assert_eq!(code, Some(2), "{act:?} {function}: {out}{err}");
                let said = format!("{function} is of another account or Region");
                let here = "there is arn:aws:lambda:eu-west-1:123456789012:function:worker";
                assert!(err.contains(&said) && err.contains(here), "{act:?} {function}: {err}");
            }
        }
    }
    assert_eq!(count(&server, "PUT "), 0);
    let own = "arn:aws:lambda:eu-west-1:123456789012:function:worker";
    let (code, out, err) = server.claimant(&["pause", "--yes", own, "--stack", "shop"]);
    assert_eq!((code, count(&server, "PUT ")), (Some(0), 2), "{out}{err}");
}

#[test]
fn what_is_throttled_or_fails_is_asked_again() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    static CHANGED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|request| {
        let nth = |count: &AtomicUsize| count.fetch_add(1, Ordering::SeqCst);
        match request {
            _ if request.starts_with(ONE_FUNCTION) && nth(&READ) == 0 => throttled(),
            _ if request.starts_with("PUT ") && request.contains("/m-1") && nth(&CHANGED) == 0 => (503, String::new()),
            _ => shop(request),
        }
    });
    let (code, out, err) = pause(&server);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(count(&server, ONE_FUNCTION), 2);
    assert_eq!(count(&server, &format!("PUT {MAPPINGS}/m-1")), 2);
}

#[test]
fn tries_end_and_a_refusal_names_the_permission_at_once() {
    type Answer = fn(&str) -> (u16, String);
    let table: [(Answer, &str, usize, &[&str]); 8] = [
        (
            |_| (502, "<html>".to_owned()),
            "POST / ",
            3,
            &["the stack shop cannot be read: no answer came. Is the endpoint right", "status 502"],
        ),
        (
            |_| refused_by_cloudformation("AccessDenied", "not you"),
            "POST / ",
            1,
            &[
                "the stack shop cannot be read: AWS refuses it (AccessDenied)",
                "cloudformation:ListStackResources",
                "not you",
            ],
        ),
        (
            |_| refused_by_cloudformation("ValidationError", "Stack with id shop does not exist"),
            "POST / ",
            1,
            &["the stack shop cannot be read: Stack with id shop does not exist. Are the stack's name, the account"],
        ),
        (
            |request| if request.starts_with(ONE_FUNCTION) { throttled() } else { shop(request) },
            ONE_FUNCTION,
            3,
            &["the function worker cannot be read: TooManyRequestsException: slow down"],
        ),
        (
            |request| match request.starts_with(ONE_FUNCTION) {
                true => (502, "<html>".to_owned()),
                false => shop(request),
            },
            ONE_FUNCTION,
            3,
            &["the function worker cannot be read: what answered is not Lambda: status 502", "Is the endpoint right"],
        ),
        (
            |request| if request.starts_with(ONE_FUNCTION) { refused() } else { shop(request) },
            ONE_FUNCTION,
            1,
            &[
                "the function worker cannot be read: AWS refuses it (AccessDeniedException)",
                "lambda:GetFunction",
                "not you",
            ],
        ),
        (
            |request| if request.starts_with("PUT ") { (403, String::new()) } else { shop(request) },
            "PUT /2015-03-31/event-source-mappings/m-1",
            1,
            &["worker and orders cannot be changed: AWS refuses it (403)", "lambda:UpdateEventSourceMapping"],
        ),
        (
            |request| match request.starts_with("GET /2015-03-31/event-source-mappings ") {
                true => refused(),
                false => shop(request),
            },
            "GET /2015-03-31/event-source-mappings",
            1,
            &["the event source mappings cannot be listed: AWS refuses it", "lambda:ListEventSourceMappings"],
        ),
    ];
    // All at once, for most of their time is pauses.
    thread::scope(|scope| {
        for (answer, line, tries, said) in table {
            scope.spawn(move || {
                let server = Server::start(answer);
                let (code, out, err) = pause(&server);
                assert_eq!((code, count(&server, line)), (Some(2), tries), "{line}: {out}{err}");
                said.iter().for_each(|text| assert!(err.contains(text), "{text}: {err}"));
            });
        }
    });
}

#[test]
fn a_change_under_way_is_waited_for() {
    static CHANGED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|request| {
        let one = format!("{MAPPINGS}/m-1 ");
        if request.starts_with(&format!("PUT {one}")) && CHANGED.fetch_add(1, Ordering::SeqCst) == 0 {
            return in_use();
        }
        match request.starts_with(&format!("GET {one}")) && CHANGED.load(Ordering::SeqCst) < 2 {
            true => (200, mapping("m-1", "orders", "Updating").to_string()),
            false => shop(request),
        }
    });
    let (code, out, err) = pause(&server);
    assert_eq!((code, count(&server, &format!("PUT {MAPPINGS}/m-1"))), (Some(0), 2), "{out}{err}");
}

/// It is under way when it is sent again, and can be so for as long as messages are in flight.
#[test]
fn a_change_under_way_whose_answer_was_lost_is_not_waited_for() {
    static CHANGED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|request| {
        if request.starts_with("PUT ") && request.contains("/m-1") {
            let is_first = CHANGED.fetch_add(1, Ordering::SeqCst) == 0;
            return if is_first { crate::aws::CLOSE } else { in_use() };
        }
        shop(request)
    });
    let (code, out, err) = pause(&server);
    let one = &shown(&out, &err)["mappings"][0];
    assert_eq!((code, &one["state"], &one["failed"]), (Some(0), &json!("Disabled"), &Value::Null), "{out}{err}");
    assert_eq!(count(&server, &format!("PUT {MAPPINGS}/m-1")), 2);
}

/// Where the first of these requests is among those that were made.
fn position(server: &Server, line: &str) -> usize {
    let requests = server.requests.lock().unwrap();
    requests.iter().position(|request| request.starts_with(line)).unwrap_or_else(|| panic!("{line}: {requests:#?}"))
}

fn shown(out: &str, err: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}

#[test]
fn all_mappings_are_changed_before_one_is_waited_for() {
    let server = Server::start(shop);
    let (code, out, err) = pause(&server);
    assert_eq!(code, Some(0), "{out}{err}");
    let (changed, asked) = (format!("PUT {MAPPINGS}/m-2"), format!("GET {MAPPINGS}/m-1"));
    assert!(position(&server, &changed) < position(&server, &asked));
}

#[test]
fn what_fails_at_one_mapping_is_said_beside_what_was_done_to_the_others() {
    type Case<'a> = (fn(&str) -> (u16, String), [&'a str; 2], [Option<&'a str>; 2]);
    let table: [Case<'_>; 3] = [
        (
            |request| if request.starts_with("PUT ") && request.contains("/m-2") { refused() } else { shop(request) },
            ["Disabled", "Enabled"],
            [None, Some("worker and parcels cannot be changed: AWS refuses it (AccessDeniedException)")],
        ),
        (
            |request| if request.starts_with("PUT ") && request.contains("/m-1") { refused() } else { shop(request) },
            ["Enabled", "Disabled"],
            [Some("worker and orders cannot be changed: AWS refuses it (AccessDeniedException)"), None],
        ),
        (
            |request| match request.starts_with("GET /2015-03-31/event-source-mappings/") {
                true => refused(),
                false => shop(request),
            },
            ["Disabling", "Disabled"],
            [Some("the event source mapping of worker cannot be asked: AWS refuses it"), None],
        ),
    ];
    for (answer, states, failed) in table {
        let server = Server::start(answer);
        let (code, out, err) = pause(&server);
        assert_eq!(code, Some(1), "{states:?}: {out}{err}");
        let shown = shown(&out, &err);
        for (at, (state, failed)) in states.into_iter().zip(failed).enumerate() {
            let one = &shown["mappings"][at];
            assert_eq!(one["state"], state, "{shown}");
            match failed {
                None => assert_eq!(one["failed"], Value::Null, "{shown}"),
                Some(why) => assert!(one["failed"].as_str().unwrap().contains(why), "{shown}"),
            }
        }
    }
    // So where nothing was done, which is an error.
    let server = Server::start(|request| if request.starts_with("PUT ") { refused() } else { shop(request) });
    let (code, out, err) = pause(&server);
    let shown = shown(&out, &err);
    assert!(code == Some(2) && err.contains("worker and orders cannot be changed"), "{out}{err}");
    assert!((0..2).all(|at| shown["mappings"][at]["failed"].is_string()), "{shown}");
}

/// A change that was made, and whose answer was lost each time.
#[test]
fn a_change_whose_answer_is_lost_is_looked_for() {
    let server = Server::start(|request| {
        let is_lost = request.starts_with("PUT ") && request.contains("/m-1");
        if is_lost { crate::aws::CLOSE } else { shop(request) }
    });
    let (code, out, err) = pause(&server);
    let shown = shown(&out, &err);
    let one = &shown["mappings"][0];
    assert_eq!((code, &one["state"], &one["failed"]), (Some(0), &json!("Disabled"), &Value::Null), "{shown}");
}

const SCHEDULE: &str = "/schedules/claimant-resume-b1c2d3e4000011112222333344445555-1900000000";

/// Answers to requests for the schedules of `m-1`: one that is there until it is deleted.
fn schedules(request: &str, is_deleted: &AtomicBool) -> Option<(u16, String)> {
    if request.starts_with(&format!("DELETE {SCHEDULE}")) {
        is_deleted.store(true, Ordering::SeqCst);
        return Some((200, String::new()));
    }
    let is_asked = request.starts_with("GET /schedules?") && request.contains("claimant-resume-m1-");
    let named = json!({"Schedules": [{"Name": SCHEDULE.trim_start_matches("/schedules/")}]});
    (is_asked && !is_deleted.load(Ordering::SeqCst)).then(|| (200, named.to_string()))
}

#[test]
fn no_breaker_switches_on_what_was_paused_though_its_state_may_not_be_asked() {
    static DELETED: AtomicBool = AtomicBool::new(false);
    let server = Server::start(|request| match schedules(request, &DELETED) {
        Some(answer) => answer,
        None if request.starts_with("GET /2015-03-31/event-source-mappings/") => refused(),
        None => shop(request),
    });
    let (code, out, err) = pause(&server);
    assert!(code == Some(1) && err.contains("A breaker had paused worker from orders until 2030"), "{out}{err}");
    assert_eq!(count(&server, &format!("DELETE {SCHEDULE}")), 1);
    assert!(position(&server, "DELETE ") < position(&server, &format!("GET {MAPPINGS}/m-1")), "before it can fail");
    assert_eq!(shown(&out, &err)["mappings"][0]["on_again"], Value::Null);
}

/// A breaker that looked at the mapping before it was paused, and planned its return after that.
#[test]
fn a_return_that_a_breaker_plans_meanwhile_is_deleted_too() {
    static OFF: AtomicBool = AtomicBool::new(false);
    static DELETED: AtomicBool = AtomicBool::new(false);
    let server = Server::start(|request| {
        OFF.fetch_or(request.starts_with("GET /2015-03-31/event-source-mappings/m-1"), Ordering::SeqCst);
        let planned = OFF.load(Ordering::SeqCst).then(|| schedules(request, &DELETED)).flatten();
        planned.unwrap_or_else(|| shop(request))
    });
    let (code, out, err) = pause(&server);
    assert_eq!((code, count(&server, &format!("DELETE {SCHEDULE}"))), (Some(0), 1), "{out}{err}");
}

/// It is deleted first.
#[test]
fn a_mapping_that_could_not_be_paused_is_not_said_to_stay_off() {
    static DELETED: AtomicBool = AtomicBool::new(false);
    let server = Server::start(|request| match request.starts_with("PUT ") {
        true => refused(),
        false => schedules(request, &DELETED).unwrap_or_else(|| shop(request)),
    });
    let (code, out, err) = pause(&server);
    let deleted = &shown(&out, &err)["mappings"][0]["deleted"];
    assert!(code == Some(2) && deleted[0].as_str().unwrap().starts_with("2030"), "{out}{err}");
    let said = "The schedule of a breaker that was to switch worker from orders on at 2030";
    assert!(err.contains(said) && !err.contains("stays off"), "{err}");
}

/// As a deployment does that is under way.
#[test]
fn a_change_that_another_one_has_undone_is_no_success() {
    let server = Server::start(|request| {
        let without = |state: &str| {
            let mut mapping = mapping("m-1", "orders", state);
            mapping["FunctionResponseTypes"] = json!([]);
            (200, mapping.to_string())
        };
        match request.split(" HTTP/1.1").next().unwrap() {
            "PUT /2015-03-31/event-source-mappings/m-1" => (200, mapping("m-1", "orders", "Updating").to_string()),
            "GET /2015-03-31/event-source-mappings/m-1" => without("Enabled"),
            "GET /2015-03-31/event-source-mappings" => {
                let (_, listed) = without("Enabled");
                let listed: Value = serde_json::from_str(&listed).unwrap();
                (200, json!({ "EventSourceMappings": [listed] }).to_string())
            }
            _ => shop(request),
        }
    });
    let resume = ["resume", "worker", "--report-failures", "--stack", "shop", "--yes"];
    let (code, out, err) = server.claimant(&[&resume[..], &["--json"]].concat());
    let one = &shown(&out, &err)["mappings"][0];
    assert_eq!((code, &one["state"], &one["reports_failures"]), (Some(1), &json!("Enabled"), &json!(false)), "{out}");
    assert_eq!(one["failed"], "another one has changed it back", "{out}");
    let (code, out, err) = server.claimant(&resume);
    assert!(code == Some(1) && out.contains("worker from orders: another one has changed it back\n"), "{out}{err}");
}

/// It may be seen, and not deleted.
#[test]
fn what_goes_on_again_is_not_said_to_be_paused() {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let server = Server::start(|request| match request.starts_with("DELETE ") {
        true => refused(),
        false => schedules(request, &NEVER).unwrap_or_else(|| shop(request)),
    });
    let (code, out, err) = pause(&server);
    let shown = shown(&out, &err);
    let one = &shown["mappings"][0];
    assert!(code == Some(1) && one["on_again"]["at"].as_str().unwrap().starts_with("2030"), "{out}{err}");
    assert!(one["not_kept_off"].as_str().unwrap().contains("scheduler:DeleteSchedule"), "{shown}");
    assert_eq!(one["state"], "Disabled", "{shown}");
}

/// A worker whose intake the breaker `gateway` has paused, and the records of breakers.
pub(crate) fn paused_by_gateway(request: &str) -> (u16, String) {
    let line = request.split(" HTTP/1.1").next().unwrap();
    let operation = |name: &str| request.contains(&format!("DynamoDB_20120810.{name}"));
    let answer = match line {
        "GET /2015-03-31/event-source-mappings" => {
            json!({"EventSourceMappings": [mapping("m-1", "orders", "Disabled")]})
        }
        _ if line == format!("GET {SCHEDULE}") => json!({"Description": "breaker gateway of worker"}),
        _ if operation("UpdateItem") => json!({}),
        _ if operation("GetItem") && request.contains("order~") => json!({}),
        _ if operation("GetItem") => {
            let id = if request.contains("#mail") { "claimant-breaker#mail" } else { "claimant-breaker#gateway" };
            json!({ "Item": breaker(id) })
        }
        _ => {
            static NEVER: AtomicBool = AtomicBool::new(false);
            return schedules(request, &NEVER).unwrap_or_else(|| with_table(shop(request)));
        }
    };
    (200, answer.to_string())
}

/// The record of an open breaker.
fn breaker(id: &str) -> Value {
    let number = |value: &str| json!({ "N": value });
    json!({
        "id": {"S": id}, "status": {"S": "IN_PROGRESS"}, "owner": {"S": "12e456aa"}, "fence": number("3"),
        "lease_until": number("1900000000000"), "attempts": number("2"), "message_id": {"S": "worker"},
        "fingerprint": {"B": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}, "created_at": number("1700000000000"),
        "updated_at": number("1700000000000"), "expires_at": number("2000000000"),
    })
}

/// Names the table in the variables of functions.
fn with_table((status, text): (u16, String)) -> (u16, String) {
    let variables = "\"FunctionName\":\"worker\",\"Environment\":{\"Variables\":{\"CLAIMANT_TABLE\":\"locks\"}}";
    (status, text.replace("\"FunctionName\":\"worker\"", variables))
}

/// The breaker closes, and nothing is received all the same.
#[test]
fn a_breaker_that_is_released_leaves_its_pause_which_is_said() {
    let server = Server::start(paused_by_gateway);
    let release = |breaker: &str, more: &[&str]| {
        let all = [&["release", breaker, "--force", "--yes"], more].concat();
        server.claimant(&all)
    };
    let (code, out, err) = release("claimant-breaker#gateway", &["--stack", "shop"]);
    assert!(code == Some(0) && out.contains("; the breaker is closed."), "{out}{err}");
    assert!(
        out.contains("worker from orders is paused, and on again at 2030")
            && out.contains("At once: claimant resume worker --queue orders"),
        "{out}"
    );
    let (_, out, err) = release("claimant-breaker#gateway", &["--stack", "shop", "--json"]);
    let paused = &shown(&out, &err)["paused"];
    assert_eq!((&paused[0]["function"], &paused[0]["queue"]), (&json!("worker"), &json!("orders")), "{out}");
    // What another breaker has paused stays so.
    let (code, out, _) = release("claimant-breaker#mail", &["--stack", "shop"]);
    assert!(code == Some(0) && !out.contains("resume"), "{out}");
    // A table knows no functions.
    let (code, out, err) = release("claimant-breaker#gateway", &["--table", "locks"]);
    assert!(code == Some(0) && err.contains("claimant pause --dry-run FUNCTION"), "{out}{err}");
    // What is no breaker's asks for no mapping.
    server.requests.lock().unwrap().clear();
    release("order#7", &["--table", "locks"]);
    assert_eq!(count(&server, "GET /2015-03-31/event-source-mappings"), 0);
}

/// A worker whose intake is off, in an account in which nothing may be asked of EventBridge Scheduler; with a table.
pub(crate) fn off_for_a_reason_not_told(request: &str) -> (u16, String) {
    match request.starts_with("GET /schedules") {
        true => refused(),
        false => paused_by_gateway(request),
    }
}

#[test]
fn that_it_is_not_known_who_paused_a_function_is_said() {
    let server = Server::start(off_for_a_reason_not_told);
    let dry_run = ["pause", "worker", "--dry-run", "--stack", "shop"];
    let not_known = "Whether a breaker has paused worker from orders is not known: ";
    let (code, out, err) = server.claimant(&dry_run);
    assert!(code == Some(0) && out.contains("worker from orders is Disabled already."), "{out}{err}");
    assert!(err.contains(not_known) && err.contains("scheduler:ListSchedules"), "{err}");
    let (_, out, err) = server.claimant(&[&dry_run[..], &["--json"]].concat());
    let one = &shown(&out, &err)["mappings"][0];
    assert_eq!(one["on_again"], Value::Null, "{out}");
    assert!(one["on_again_not_known"].as_str().unwrap().contains("scheduler:ListSchedules"), "{out}");
    // Nor where that is not told once it is off.
    let forgetful = Server::start(|request| {
        static LISTS: AtomicUsize = AtomicUsize::new(0);
        match request.starts_with("GET /schedules?") {
            true if LISTS.fetch_add(1, Ordering::SeqCst) < 2 => (200, json!({"Schedules": []}).to_string()),
            true => refused(),
            false => paused_by_gateway(request),
        }
    });
    let (code, _, err) = forgetful.claimant(&["pause", "worker", "--yes", "--stack", "shop"]);
    assert!(code == Some(1) && err.contains(not_known), "{err}");
    // That it may not be kept off says it, too.
    let (code, _, err) = server.claimant(&["pause", "worker", "--yes", "--stack", "shop"]);
    // A script must not take it for off.
    assert_eq!(
        (code, err.matches("scheduler:ListSchedules").count(), err.contains(not_known)),
        (Some(1), 1, false),
        "{err}"
    );
}

/// A worker whose intake a breaker has paused, in an account in which its schedule may be listed, and neither read nor deleted.
fn paused_by_one_not_told(request: &str) -> (u16, String) {
    let is_refused = ["GET", "DELETE"].iter().any(|method| request.starts_with(&format!("{method} {SCHEDULE}")));
    if is_refused { refused() } else { paused_by_gateway(request) }
}

#[test]
fn when_a_paused_function_is_on_again_is_said_though_not_which_breaker_paused_it() {
    let server = Server::start(paused_by_one_not_told);
    for (how, ends) in [("--dry-run", 0), ("--yes", 1)] {
        let (code, out, err) = server.claimant(&["pause", "worker", how, "--stack", "shop"]);
        assert!(code == Some(ends) && out.contains("worker from orders is on again at 2030"), "{how}: {out}{err}");
        assert!(out.contains("(of which breaker is not known") && !err.contains("is not known"), "{how}: {out}{err}");
    }
}

/// Answers as [`off_for_a_reason_not_told`] does, and lists the record of the breaker.
fn listed_breaker(request: &str) -> (u16, String) {
    let operation = |name: &str| request.contains(&format!("DynamoDB_20120810.{name}"));
    if operation("Scan") {
        let items =
            if request.contains("\"Segment\":0") { vec![breaker("claimant-breaker#gateway")] } else { Vec::new() };
        return (200, json!({"Items": items, "Count": items.len(), "ScannedCount": items.len()}).to_string());
    }
    if operation("DescribeTable") { crate::console::shop::shop(request) } else { off_for_a_reason_not_told(request) }
}

#[test]
fn a_list_of_breakers_says_that_it_does_not_know_what_they_paused() {
    let server = Server::start(listed_breaker);
    for (place, why) in
        [(["--stack", "shop"], "scheduler:ListSchedules"), (["--table", "locks"], "no function is known")]
    {
        let (code, out, err) = server.claimant(&[&["list", "running", "stuck"][..], &place].concat());
        assert!(code == Some(1) && out.contains("claimant-breaker#gateway"), "{out}{err}");
        assert!(err.contains("Whether a breaker has paused the intake is not known") && err.contains(why), "{err}");
    }
}

/// Answers as [`shop`] does, but one mapping is never off, and a breaker plans its return once it was looked at.
fn never_off(request: &str, [looked_at, deleted]: &[AtomicBool; 2]) -> (u16, String) {
    if request.starts_with("GET /2015-03-31/event-source-mappings/m-1") {
        looked_at.store(true, Ordering::SeqCst);
        return (200, mapping("m-1", "orders", "Disabling").to_string());
    }
    let planned = looked_at.load(Ordering::SeqCst).then(|| schedules(request, deleted)).flatten();
    planned.unwrap_or_else(|| shop(request))
}

/// Also where the answer to its change was lost: what Lambda told of it since then counts.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_wait_of_a_pause_in_order() {
    static SEEN: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    static SEEN_UNANSWERED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    let answered = Server::start(|request| never_off(request, &SEEN));
    let unanswered = Server::start(|request| match request.starts_with("PUT ") && request.contains("/m-1") {
        true => crate::aws::CLOSE,
        false => never_off(request, &SEEN_UNANSWERED),
    });
    for server in [answered, unanswered] {
        let pause = ["pause", "worker", "--stack", "shop", "--yes", "--json", "--wait", "900"];
        let (code, out, err) = server.interrupted(&pause, "GET /2015-03-31/event-source-mappings/m-1").await;
        assert_eq!(code, Some(130), "{out}{err}");
        assert!(err.contains("Waiting until it is Disabled, 900 s at most. Ctrl-C ends the wait"), "{err}");
        let mappings = shown(&out, &err)["mappings"].take();
        let states = [0, 1].map(|at| mappings[at]["state"].as_str().unwrap_or_default());
        assert_eq!((states, &mappings[0]["failed"]), (["Disabling", "Disabled"], &Value::Null), "{out}");
        assert_eq!(count(&server, &format!("DELETE {SCHEDULE}")), 1, "{err}");
    }
}
