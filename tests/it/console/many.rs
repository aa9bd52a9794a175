//! 100,000 messages: no page is larger for it, and each answers from what it keeps.

use claimant_local::sqs::NewMessage;
use claimant_tests::browser::{DESKTOP, PHONE};
use serde_json::json;

use super::stage::Stage;

const MESSAGES: usize = 100_000;

/// The most that a page weighs, in either form.
const BYTES_MAX: usize = 1024 * 1024;

/// The rows of a page.
const ROWS: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn a_hundred_thousand_messages_are_a_hundred_a_page() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let mut last = String::new();
    // The dead-letter queue keeps them: no function takes them from there.
    for n in 0..MESSAGES {
        let body = format!(r#"{{"order_id": "ord-{n}"}}"#);
        let sent = stage.cloud.sqs().send("OrderDeadLetterQueue", NewMessage::new(body)).expect("the queue is there");
        stage.cloud.journal().tie(&sent.message_id, "order-confirmation#one-for-all");
        last = sent.message_id;
    }
    for path in [
        "/",
        "/messages",
        "/messages?text=nothing-like-it",
        "/keys",
        "/dead",
        "/effects",
        "/send",
        "/faults",
        "/doctor",
        // All of them have one key.
        "/keys/order-confirmation%23one-for-all",
        &format!("/messages/{last}"),
    ] {
        for accept in ["text/html", "application/json"] {
            let (status, _, body) = stage.ask("GET", path, &[("accept", accept)], "");
            assert_eq!(status, 200, "{path}: {body}");
            assert!(body.len() <= BYTES_MAX, "{path} as {accept} has {} bytes", body.len());
        }
    }
    let of_key = stage.json("/keys/order-confirmation%23one-for-all");
    assert_eq!((of_key["messages"].as_array().map(Vec::len), &of_key["left_out"]), (Some(100), &json!(MESSAGES - 100)));
    let page = stage.browser.page();
    for view in [DESKTOP, PHONE] {
        page.view(view);
        stage.open(&page, "/messages");
        assert_eq!(page.count("main tbody tr"), ROWS);
        let first = page.text("main tbody tr a");
        page.click("text=Older →");
        page.until("the second page", &format!("document.querySelector('main tbody tr a').innerText !== '{first}'"));
        assert_eq!(page.count("main tbody tr"), ROWS);
        assert_eq!(page.faults(), [""; 0]);
    }
    stage.end().await;
}
