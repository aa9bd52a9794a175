//! `claimant send` on a deployed stack whose SQS gives no answer, in an account that a server on loopback plays.

use serde_json::{Value, json};

use crate::aws::Server;
use crate::console::{lossy, shop::shop};

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
        assert_eq!((code, &report["failed"], &report["unknown"]), (Some(1), &json!(1), &json!(0)), "{report}");
        assert!(report["problems"][0].as_str().unwrap().starts_with(said), "{report}");
    }
    // What SQS says nothing of may be there.
    let server = Server::start(|request| {
        let nothing = json!({"Successful": [], "Failed": []}).to_string();
        if request.contains("SendMessageBatch") { (200, nothing) } else { shop(request) }
    });
    let (_, out, _) = send(&server, &[]);
    assert!(
        out.contains("orders did not confirm it") && out.contains("It is not known whether 1 message arrived."),
        "{out}"
    );
}

fn denied() -> String {
    json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()
}

fn refused() -> String {
    json!({"Successful": [], "Failed": [{"Id": "0", "SenderFault": true, "Code": "InvalidMessageContents", "Message": "no"}]})
        .to_string()
}
