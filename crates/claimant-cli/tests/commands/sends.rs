//! `claimant send` on a deployed stack whose SQS gives no answer, in an account that a server on loopback plays.

use serde_json::{Value, json};

use crate::aws::Server;

/// What is said where SQS's answer is a success that cannot be read.
const UNREAD: &str = "it is not known whether orders took it: what answered is not SQS, or its answer broke off: status 200, without an error code";
use crate::console::{lossy, shop::shop};
use crate::deployed::resources;

fn send(server: &Server, args: &[&str]) -> (Option<i32>, String, String) {
    server.claimant(&[&["send", "orders", "--stack", "shop", "--body", "x", "--yes"], args].concat())
}

#[test]
fn what_may_have_arrived_is_not_said_to_be_not_sent() {
    let server = Server::start(lossy);
    let (code, out, err) = send(&server, &["--count", "12", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let counts = ["sent", "failed", "unknown", "left"].map(|name| report[name].as_u64().unwrap());
    assert_eq!((code, counts), (Some(1), [0, 10, 10, 2]), "{report}");
    let why = report["problems"][0].as_str().unwrap();
    assert!(why.starts_with("it is not known whether orders took it: no answer came"), "{why}");
    let (code, out, _) = send(&server, &[]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.starts_with("0 messages confirmed by orders, number "), "{out}");
    assert!(
        out.ends_with("1 message not confirmed, 0 not tried. It is not known whether 1 message arrived.\n"),
        "{out}"
    );
    assert!(!out.contains("not sent") && !out.contains("sent to"), "{out}");
}

#[test]
fn what_is_refused_is_not_sent() {
    for (answer, said) in [
        (
            (|request| if request.contains("SendMessageBatch") { (403, denied()) } else { shop(request) })
                as fn(&str) -> (u16, String),
            "orders did not take it: AWS refuses it (AccessDeniedException)",
        ),
        (
            |request| if request.contains("SendMessageBatch") { (200, refused()) } else { shop(request) },
            "orders refuses it (InvalidMessageContents): no",
        ),
    ] {
        let server = Server::start(answer);
        let (code, out, err) = send(&server, &["--json"]);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!((code, &report["failed"], &report["unknown"]), (Some(2), &json!(1), &json!(0)), "{report}");
        assert!(report["problems"][0].as_str().unwrap().starts_with(said), "{report}");
    }
    // What SQS says nothing of may be there, and so may what has an answer that cannot be read.
    for (answer, said) in [
        (
            (|request| match request.contains("SendMessageBatch") {
                true => (200, json!({"Successful": [], "Failed": []}).to_string()),
                false => shop(request),
            }) as fn(&str) -> (u16, String),
            "orders did not confirm it",
        ),
        (
            |request| if request.contains("SendMessageBatch") { (200, "<html>".to_owned()) } else { shop(request) },
            UNREAD,
        ),
        (
            |request| match request.contains("SendMessageBatch") {
                true => (200, r#"{"Successful": [{"Id": "0""#.to_owned()),
                false => shop(request),
            },
            UNREAD,
        ),
    ] {
        let (code, out, _) = send(&Server::start(answer), &[]);
        assert_eq!(code, Some(1), "{out}");
        assert!(out.contains(said) && out.contains("It is not known whether 1 message arrived."), "{out}");
    }
}

/// Answers as [`shop`] does, of a queue whose name CloudFormation made.
fn made(request: &str) -> (u16, String) {
    let made = "shop-OrderQueue-1A2B3C";
    if request.contains("Action=ListStackResources") {
        let url = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{made}");
        let (status, answer) = resources(&[("AWS::Lambda::Function", "worker"), ("AWS::SQS::Queue", &url)], "");
        return (status, answer.replace(">Https:", ">https:").replacen(&url, "OrderQueue", 1));
    }
    let (status, answer) = shop(&request.replace(made, "orders"));
    (status, answer.replace("orders", made))
}

/// As samples name queues, and as functions are called.
#[test]
fn a_queue_of_a_stack_goes_by_its_name_in_the_template() {
    let server = Server::start(made);
    for (to, says) in [
        ("OrderQueue", "1 message sent to shop-OrderQueue-1A2B3C,"),
        ("Worker", "1 message sent to shop-OrderQueue-1A2B3C,"),
        ("ParcelQueue", "it has the queues shop-OrderQueue-1A2B3C; the functions: Worker\n"),
        // Parts of its name that are not that.
        ("shop", "it has the queues shop-OrderQueue-1A2B3C; the functions: Worker\n"),
        ("1A2B3C", "it has the queues shop-OrderQueue-1A2B3C; the functions: Worker\n"),
    ] {
        let (_, out, err) = server.claimant(&["send", to, "--stack", "shop", "--body", "x", "--yes"]);
        assert!(out.contains(says) || err.ends_with(says), "{to}: {out}{err}");
    }
}

fn denied() -> String {
    json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()
}

fn refused() -> String {
    json!({"Successful": [], "Failed": [{"Id": "0", "SenderFault": true, "Code": "InvalidMessageContents", "Message": "no"}]})
        .to_string()
}

/// Takes ten messages in each request, slowly.
fn slow(request: &str) -> (u16, String) {
    if !request.contains("SendMessageBatch") {
        return shop(request);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    let sent = |n: usize| json!({"Id": n.to_string(), "MessageId": format!("m-{n}"), "MD5OfMessageBody": "x"});
    (200, json!({"Successful": (0..10).map(sent).collect::<Vec<_>>(), "Failed": []}).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_sending_with_its_report() {
    let server = Server::start(slow);
    let many = ["send", "orders", "--stack", "shop", "--body", "x", "--yes", "--count", "10000"];
    let (code, out, err) = server.interrupted(&[&many[..], &["--json"]].concat(), "SendMessageBatch").await;
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let [sent, failed, left] = ["sent", "failed", "left"].map(|name| report[name].as_u64().unwrap());
    assert_eq!((code, failed, sent + left), (Some(130), 0, 10_000), "{report}");
    assert!(sent >= 10 && left > 0 && report["number"].is_string(), "{report}");
    let server = Server::start(slow);
    let (code, out, _) = server.interrupted(&many, "SendMessageBatch").await;
    assert!(code == Some(130) && out.contains("messages sent to orders, number "), "{out}");
    assert!(out.contains("Ended before ") && out.ends_with(" messages.\n"), "{out}");
}
