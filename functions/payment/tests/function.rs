//! The built function in the local cloud, from the project's template: its queue, its lock table, a payment gateway.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::lambda::Invocation;
use claimant_local::sqs::NewMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

const QUEUE: &str = "PaymentQueue";
const DEAD_LETTERS: &str = "PaymentDeadLetterQueue";
/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(120);
/// Parameters for a gateway that knows no keys.
const LEGACY: &[(&str, &str)] = &[("GatewayUrl", "https://gateway.example/legacy"), ("GatewayDeduplicates", "no")];

/// The cloud with this one function, whose leases and visibility timeouts are short.
struct Stage {
    cloud: Cloud,
    logs: Arc<Mutex<Vec<String>>>,
    _template: TempDir,
}

impl Stage {
    async fn with(parameters: &[(&str, &str)], slow: Duration) -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template.yaml");
        let template = std::fs::read_to_string(project).unwrap();
        assert!(template.contains("Timeout: 30\n") && template.contains("VisibilityTimeout: 180\n"));
        let short = template.replace("VisibilityTimeout: 180\n", "VisibilityTimeout: 3\n");
        let short = short.replace("Timeout: 30\n", "Timeout: 3\n");
        let table = "CLAIMANT_TABLE: !Ref LockTable\n";
        assert!(short.contains(table));
        let short = short.replace(table, &format!("{table}        AWS_LAMBDA_LOG_LEVEL: TRACE\n"));
        // What the template refuses is given to the function all the same: its own checks are tested here.
        let allowed = |line: &&str| !line.trim_start().starts_with("Allowed");
        let short: String = short.lines().filter(allowed).flat_map(|line| [line, "\n"]).collect();
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("template.yaml"), short).unwrap();
        let logs: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&logs);
        let binaries = Path::new(env!("CARGO_BIN_EXE_payment")).parent().unwrap();
        let mut config = CloudConfig {
            parameters: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            only: vec!["payment".into()],
            logs: Arc::new(move |_, line| sink.lock().unwrap().push(line.to_owned())),
            ..CloudConfig::new(directory.path().join("template.yaml"), binaries)
        };
        config.delays.charge = slow;
        Self { cloud: Cloud::start(config).await.unwrap(), logs, _template: directory }
    }

    fn send(&self, orders: &[&str]) {
        for order in orders {
            self.cloud.sqs().send(QUEUE, NewMessage::new(payment(order))).unwrap();
        }
    }

    async fn drained(&self) {
        self.until("the queue is empty", || self.cloud.drained().unwrap()).await;
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "waited for: {what}; logs: {}", self.logged());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Each charge's reference and the requests that it answers, sorted.
    fn charges(&self) -> Vec<(String, u32)> {
        let charges = self.cloud.gateway().charges();
        let mut charges: Vec<_> = charges.into_iter().map(|c| (c.order.reference, c.requests)).collect();
        charges.sort();
        charges
    }

    /// Where a key stands, after how many runs, and the charge that is kept with it.
    fn record(&self, order: &str) -> (String, i64, Option<String>) {
        let items = self.cloud.dynamodb().items("LockTable").unwrap();
        let record = items.iter().find(|item| item.text("id") == Some(&format!("payment#{order}")));
        let record = record.unwrap_or_else(|| panic!("no record of {order}"));
        let receipt = record.text("result").map(|json| serde_json::from_str::<Value>(json).unwrap());
        let charge_id = receipt.map(|receipt| receipt["charge_id"].as_str().unwrap().to_owned());
        (record.text("status").unwrap().to_owned(), record.number("attempts").unwrap(), charge_id)
    }

    /// Each dead letter's order and the reason that it carries, sorted. Takes them: asked for once.
    async fn dead_letters(&self) -> Vec<(String, String)> {
        let letters = self.cloud.sqs().receive(DEAD_LETTERS, 10, Duration::ZERO).await.unwrap();
        let letters = letters.into_iter().map(|letter| {
            let body: Value = serde_json::from_str(&letter.body).unwrap();
            let reason = letter.message_attributes["claimant-error"].value.as_bytes();
            (body["order_id"].as_str().unwrap().to_owned(), String::from_utf8(reason.to_vec()).unwrap())
        });
        let mut letters: Vec<_> = letters.collect();
        letters.sort();
        letters
    }

    fn logged(&self) -> String {
        self.logs.lock().unwrap().join("\n")
    }
}

fn payment(order: &str) -> String {
    json!({ "order_id": order, "amount_cents": 1_250, "currency": "EUR" }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_charged_once_whatever_gets_lost() {
    let stage = Stage::with(&[], Duration::from_millis(300)).await;
    stage.send(&["ord-1", "flaky-1", "unavailable-1", "slow-1", "ord-1", "flaky-1", "slow-1"]);
    stage.drained().await;
    let once = [("flaky-1", 2), ("ord-1", 1), ("slow-1", 1), ("unavailable-1", 1)];
    assert_eq!(stage.charges(), once.map(|(order, requests)| (order.to_owned(), requests)));
    let charged = stage.cloud.gateway().charges();
    for (order, runs) in [("ord-1", 1), ("flaky-1", 2), ("unavailable-1", 2), ("slow-1", 1)] {
        let charge = charged.iter().find(|charge| charge.order.reference == order).unwrap();
        assert_eq!(stage.record(order), ("COMPLETED".into(), runs, Some(charge.charge_id.clone())), "{order}");
        assert_eq!((charge.key.as_deref(), charge.order.amount_cents), (Some(order), 1_250));
    }
    assert_eq!(stage.dead_letters().await, []);
    // A later copy is told the receipt.
    stage.send(&["ord-1"]);
    stage.drained().await;
    let receipt = stage.record("ord-1").2.unwrap();
    stage.until("the duplicate is shown", || stage.logged().contains(&receipt)).await;
    assert_eq!(stage.cloud.gateway().requests(), 6, "four orders, two of them asked for again");
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_charged_is_dead_lettered_with_its_reason() {
    let stage = Stage::with(&[], Duration::ZERO).await;
    stage.send(&["declined-1", "örd-1"]);
    let nothing = payment("ord-1").replace("1250", "0");
    stage.cloud.sqs().send(QUEUE, NewMessage::new(nothing)).unwrap();
    stage.drained().await;
    let letters = stage.dead_letters().await;
    assert_eq!(letters.len(), 3);
    for ((order, reason), (expected, why)) in
        letters.iter().zip([("declined-1", "declined"), ("ord-1", "amount is 0"), ("örd-1", "Idempotency-Key")])
    {
        assert!(order == expected && reason.contains(why), "{letters:?}");
    }
    assert_eq!((stage.charges(), stage.cloud.gateway().requests()), (vec![], 1));
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_key_helps_a_lost_answer_is_parked_and_not_charged_again() {
    let stage = Stage::with(LEGACY, Duration::ZERO).await;
    stage.send(&["ord-1", "flaky-1", "unavailable-1", "ord-1", "flaky-1"]);
    stage.drained().await;
    // A second copy with an id of its own changes nothing.
    stage.send(&["flaky-1", "ord-1"]);
    stage.drained().await;
    assert_eq!(stage.charges(), [("flaky-1".to_owned(), 1), ("ord-1".to_owned(), 1)]);
    let places = ["ord-1", "flaky-1", "unavailable-1"].map(|order| stage.record(order));
    assert_eq!(
        places.each_ref().map(|(status, runs, _)| (status.as_str(), *runs)),
        [("COMPLETED", 1), ("PARKED", 1), ("PARKED", 1)]
    );
    let letters = stage.dead_letters().await;
    assert_eq!(letters.len(), 4, "three copies of one order, and another one: {letters:?}");
    let reasons: String = letters.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(reasons.contains("its answer was lost") && reasons.contains("503"), "{letters:?}");
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_key_helps_what_was_cut_off_is_parked_too() {
    let stage = Stage::with(LEGACY, Duration::from_secs(60)).await;
    // One whose process dies after the charge, and one that is still waiting when its time is over.
    stage.send(&["slow-1"]);
    stage.until("the charge", || stage.charges().len() == 1).await;
    let function = stage.cloud.function("payment").unwrap();
    let pids = function.pids();
    let killed = std::process::Command::new("kill").args(["-KILL", &pids[0].to_string()]).status().unwrap();
    assert!(killed.success() && pids.len() == 1, "{pids:?}");
    stage.send(&["slow-2"]);
    stage.drained().await;
    assert_eq!(stage.charges(), [("slow-1".to_owned(), 1), ("slow-2".to_owned(), 1)]);
    for order in ["slow-1", "slow-2"] {
        assert_eq!(stage.record(order), ("PARKED".into(), 1, None), "{order}");
    }
    let orders: Vec<_> = stage.dead_letters().await.into_iter().map(|(order, _)| order).collect();
    assert_eq!(orders, ["slow-1", "slow-2"]);
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_be_reached_was_not_asked() {
    // Nobody listens on port 1 of this host.
    let nowhere = [("GatewayUrl", "http://127.0.0.1:1"), ("GatewayDeduplicates", "no")];
    let stage = Stage::with(&nowhere, Duration::ZERO).await;
    stage.send(&["ord-1"]);
    let failed_twice = || {
        let items = stage.cloud.dynamodb().items("LockTable").unwrap();
        items.iter().any(|item| item.text("status") == Some("FAILED") && item.number("attempts") == Some(2))
    };
    stage.until("a second try", failed_twice).await;
    assert!(stage.logged().contains("cannot be reached") && stage.dead_letters().await.is_empty());
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_charged_and_nothing_of_it_logged() {
    let stage = Stage::with(&[], Duration::ZERO).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/events/payment.json");
    let event = std::fs::read(path).unwrap();
    for _ in 0..2 {
        let answer = stage.cloud.function("payment").unwrap().invoke(event.clone()).await;
        let Invocation::Response(answer) = answer else { panic!("{answer:?}: {}", stage.logged()) };
        assert_eq!(answer, br#"{"batchItemFailures":[]}"#);
    }
    assert_eq!(stage.charges(), [("ord-1001".to_owned(), 1)]);
    let logged = stage.logged();
    assert!(logged.contains("batch done"), "{logged}");
    for secret in ["ord-1001", "3390", "EUR", "AQEB", "Idempotency-Key"] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
    stage.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_set_up_says_how_to_mend_it() {
    for (url, deduplicates, wanted) in [
        ("gateway", "yes", "GATEWAY_URL is not a URL"),
        ("https://gateway.example", "perhaps", "`yes` or `no` is needed"),
    ] {
        let stage = Stage::with(&[("GatewayUrl", url), ("GatewayDeduplicates", deduplicates)], Duration::ZERO).await;
        let answer = stage.cloud.function("payment").unwrap().invoke(b"{}".to_vec()).await;
        assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
        stage.until(wanted, || stage.logged().contains(wanted)).await;
        stage.cloud.stop().await;
    }
}
