//! The built functions in the local cloud: the whole path of a message, and a process that dies on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::sqs::NewMessage;
use claimant_local::workload::{self, Summary};
use claimant_servers::repository;
use tempfile::TempDir;

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(120);

/// Queues and a table as the project has them, with a short visibility timeout in seconds: what a test waits for are leases
/// and visibility timeouts.
pub(crate) const QUEUES_AND_TABLE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: SECONDS
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}
  Dead:
    Type: AWS::SQS::Queue
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
";

/// The project's function with a timeout that is short, and ten times what its work takes: a busy machine must not use it up.
const SHORT_FUNCTION: &str = "
  OrderConfirmationFunction:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: order-confirmation}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 10
      Environment:
        Variables: {CLAIMANT_TABLE: !Ref Locks, SENDER_ADDRESS: orders@example.com}
      Events:
        Orders:
          Type: SQS
          Properties: {Queue: !GetAtt Orders.Arn, BatchSize: 10, FunctionResponseTypes: [ReportBatchItemFailures]}
";

/// A function that its messages can end. Its renewed leases make the visibility timeout shorter.
pub(crate) const POISON_FUNCTION: &str = "
  PoisonFunction:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: poison-worker}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 25
      Environment:
        Variables: {CLAIMANT_TABLE: !Ref Locks, EFFECTS_FILE: !Ref EffectsFile}
      Events:
        Orders:
          Type: SQS
          Properties:
            Queue: !GetAtt Orders.Arn
            BatchSize: 10
            MaximumBatchingWindowInSeconds: 1
            FunctionResponseTypes: [ReportBatchItemFailures]
Parameters:
  EffectsFile: {Type: String}
";

/// Writes a template of queues, a table and this function.
fn write_template(path: &Path, visibility_s: u32, function: &str) {
    let text = QUEUES_AND_TABLE.replace("SECONDS", &visibility_s.to_string()) + function;
    std::fs::write(path, text).expect("it is writable");
}

pub(crate) type Logs = Arc<Mutex<Vec<String>>>;

/// Where cargo puts the workspace's binaries: beside the directory of this test binary.
pub(crate) fn binaries() -> PathBuf {
    built(&["order-confirmation", "payment", "gift-card", "loyalty", "audit"])
}

pub(crate) fn built(names: &[&str]) -> PathBuf {
    let this = std::env::current_exe().expect("a process has an executable");
    let profile = this.parent().and_then(|deps| deps.parent()).expect("target/debug/deps/it");
    for binary in names.iter().map(|name| profile.join(name)) {
        assert!(binary.exists(), "{} is not built: run cargo build --workspace --bins", binary.display());
    }
    profile.to_owned()
}

fn project_template() -> PathBuf {
    repository().unwrap().join("template.yaml")
}

pub(crate) async fn start(mut config: CloudConfig) -> (Cloud, Logs) {
    let logs = Logs::default();
    let sink = Arc::clone(&logs);
    config.logs = Arc::new(move |_, line| sink.lock().expect("not poisoned").push(line.to_owned()));
    (Cloud::start(config).await.expect("the cloud starts"), logs)
}

pub(crate) async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn order(id: &str, address: &str) -> NewMessage {
    let items = serde_json::json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
    let order = serde_json::json!({ "order_id": id, "customer_email": address, "items": items, "currency": "EUR" });
    NewMessage::new(order.to_string())
}

/// How often the workload is run where each time a machine was too busy for it.
const RUNS_MAX: usize = 3;

/// What is logged where a process stood still for longer than its lease: its work is taken over, or it gives it up.
const STOOD_STILL: [&str; 3] = ["taking over work", "lease lost", "claim was lost"];

/// The fault that SQS alone can bring about: its answer came too late, and the copy was sent again.
const COPIED_TWICE: &str = "were dead-lettered more often than sent";
const DONE_TWICE: &str = "had their effect more than once";

/// What is wrong however busy the machine.
const NEVER: [&str; 7] = [
    "are lost",
    "too many were deleted",
    "were never sent",
    "had an effect although they were to be refused",
    "had another effect",
    DONE_TWICE,
    "tries in",
];

/// The function whose effects neither its claim's transaction nor the system that has them keeps from being repeated: SES knows no keys.
const REPEATS: &str = "order-confirmation";

/// Whether a busy machine can bring this fault of the function about, and nobody is promised that it does not: a copy is in a dead-letter
/// queue twice, or a process of this same function stood still for longer than its lease, so that its work took up its receives, or its
/// mail was sent once more by another. A fault of the whole run is of no function.
fn is_of_load(function: &str, fault: &str, logs: &str) -> bool {
    let stood_still =
        logs.lines().any(|line| line.contains(function) && STOOD_STILL.iter().any(|what| line.contains(what)));
    let repeats = function == REPEATS && fault.contains(DONE_TWICE);
    let never = !repeats && NEVER.iter().any(|what| fault.contains(what));
    fault.contains(COPIED_TWICE) || stood_still && !never
}

#[test]
fn only_what_a_busy_machine_may_do_is_tried_again() {
    let taken_over =
        |function: &str| format!("WARN taking over work whose owner did not finish it consumer={function}");
    let (mail, card) = (taken_over("order-confirmation"), taken_over("gift-card"));
    let twice = "1 had their effect more than once: ord-3";
    let table = [
        ("order-confirmation", twice, &mail, true),
        ("order-confirmation", twice, &card, false),
        ("order-confirmation", "9 tries in 8 handler runs: some without a claim, or two in one run", &mail, false),
        ("gift-card", twice, &mail, false),
        ("gift-card", twice, &card, false),
        ("gift-card", "1 had another effect than was asked for: ord-3", &card, false),
        ("gift-card", "1 had an effect although they were to be refused: ord-7", &card, false),
        ("gift-card", "1 messages are lost: not done, not dead-lettered, not queued", &card, false),
        ("gift-card", "1 were good, and dead-lettered: ord-3", &card, true),
        ("gift-card", "1 were good, and dead-lettered: ord-3", &mail, false),
        ("gift-card", "1 were dead-lettered more often than sent: ord-7", &String::new(), true),
        ("", "not drained after 120 s: 9 of 60 done", &card, true),
        ("", "not drained after 120 s: 9 of 60 done", &String::new(), false),
    ];
    for (function, fault, logs, expected) in table {
        assert_eq!(is_of_load(function, fault, logs), expected, "{function}: {fault}: {logs}");
    }
}

/// Runs the sample workload with these parameters; the summaries, and all that was logged. What a busy machine can bring about is not so
/// each time ([`is_of_load`]).
async fn workload(parameters: &[(&str, &str)]) -> (Vec<Summary>, String) {
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let parameters: BTreeMap<_, _> = parameters.collect();
    let mut left = RUNS_MAX;
    loop {
        left -= 1;
        let parameters = parameters.clone();
        let (cloud, logs) = start(CloudConfig { parameters, ..CloudConfig::new(project_template(), binaries()) }).await;
        let settings = workload::Settings { count: 60, seed: 7, timeout: PATIENCE };
        let report = workload::run(&cloud, settings, |_| {}).await.expect("the workload runs");
        cloud.stop().await;
        let of_functions = report.summaries.iter().flat_map(|s| s.faults.iter().map(|fault| (s.function, fault)));
        let faults: Vec<_> = report.faults.iter().map(|fault| ("", fault)).chain(of_functions).collect();
        let logs = logs.lock().expect("not poisoned").join("\n");
        let too_busy = faults.iter().all(|(function, fault)| is_of_load(function, fault, &logs));
        if !faults.is_empty() && too_busy && left > 0 {
            println!("once more: {faults:?} {:#?}", report.summaries);
            continue;
        }
        assert!(faults.is_empty(), "{faults:?} {:#?}\n{logs}", report.summaries);
        return (report.summaries, logs);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn the_sample_workload_loses_and_doubles_nothing() {
    let (summaries, logs) = workload(&[]).await;
    let functions: Vec<_> =
        summaries.iter().map(|s| (s.function, s.figures.effects, s.figures.parked, s.figures.lost)).collect();
    let wanted = [
        ("order-confirmation", 60, 0, 0),
        ("payment", 57, 0, 0),
        ("gift-card", 57, 0, 0),
        ("loyalty", 57, 0, 0),
        ("audit", 57, 0, 0),
    ];
    assert_eq!(functions, wanted);
    for summary in summaries {
        let figures = &summary.figures;
        assert!(figures.sent > figures.work && figures.duplicates > 0, "{summary:?}");
        assert!(figures.runs > figures.effects, "some handlers failed: {summary:?}");
        // What is in a transaction fails for good, or not at all.
        let fails_at_first = ["order-confirmation", "payment"].contains(&summary.function);
        assert!(figures.dead_lettered > 0 && (figures.retries > 0 || !fails_at_first), "{summary:?}");
    }
    assert!(logs.contains("batch done"), "{logs}");
    assert!(!logs.contains("example.com"), "an address was logged");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn what_a_gateway_without_keys_may_have_charged_is_parked() {
    let legacy = [("GatewayUrl", "https://gateway.example/legacy"), ("GatewayDeduplicates", "no")];
    let (summaries, _) = workload(&legacy).await;
    let payment = summaries.into_iter().find(|summary| summary.function == "payment").expect("it ran");
    // Of 9 in doubt, 6 were charged, and of all 60, 3 declined; none was asked for twice but those.
    assert_eq!((payment.figures.parked, payment.figures.effects), (9, 54), "{payment:?}");
}

/// Faults 3 and 4 for real: the process dies before it knows that its mail was sent; the next owner takes over after the lease, and
/// sends it again, since SES knows no keys.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn an_order_survives_the_death_of_its_process() {
    let stage = TempDir::new().expect("a temporary directory");
    let template = stage.path().join("template.yaml");
    write_template(&template, 10, SHORT_FUNCTION);
    let mut config = CloudConfig::new(template, binaries());
    config.delays.mail = Duration::from_millis(1_000);
    let (cloud, logs) = start(config).await;

    cloud.sqs().send("Orders", order("ord-1", "slow@example.com")).expect("the queue is there");
    wait_for("the first try to send", || cloud.mailbox().attempts() == 1).await;
    let function = cloud.function("order-confirmation").expect("it runs");
    let pids = function.pids();
    assert_eq!(pids.len(), 1);
    let killed = Command::new("kill").args(["-KILL", &pids[0].to_string()]).status().expect("kill runs");
    assert!(killed.success());

    wait_for("the queue to drain", || cloud.drained().expect("the queues are there")).await;
    let counters = function.counters();
    assert_eq!(counters.crashes, 1);
    let record = cloud.dynamodb().items("Locks").expect("the table is there").pop().expect("one record");
    assert_eq!(record.text("status"), Some("COMPLETED"));
    assert_eq!((record.number("fence"), record.number("attempts")), (Some(2), Some(2)));
    assert_eq!((cloud.mailbox().mails().len(), cloud.mailbox().attempts()), (2, 2));
    assert_eq!(cloud.sqs().depth("Dead").expect("the queue is there").visible, 0);
    cloud.stop().await;
    let logs = logs.lock().expect("not poisoned").join("\n");
    assert!(logs.contains("taking over work"), "{logs}");
}

/// L4 for real: a message that ends its process, among nine good ones.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries: make test"]
async fn a_message_that_ends_its_process_is_dead_lettered_alone() {
    let stage = TempDir::new().expect("a temporary directory");
    let (template, effects) = (stage.path().join("template.yaml"), stage.path().join("effects"));
    write_template(&template, 25, POISON_FUNCTION);
    let parameters = [("EffectsFile".to_owned(), effects.display().to_string())].into();
    let (cloud, logs) =
        start(CloudConfig { parameters, ..CloudConfig::new(template, built(&["poison-worker"])) }).await;
    for n in 0..10 {
        let body = serde_json::json!({ "id": format!("k{n}"), "kills": n == 4 });
        cloud.sqs().send("Orders", NewMessage::new(body.to_string())).expect("the queue is there");
    }
    wait_for("the queue to drain", || cloud.drained().expect("the queues are there")).await;
    let crashes = cloud.function("poison-worker").expect("it runs").counters().crashes;
    let dead = cloud.sqs().receive("Dead", 10, Duration::ZERO).await.expect("the queue is there");
    cloud.stop().await;
    let logs = logs.lock().expect("not poisoned").join("\n");
    let mut done: Vec<_> =
        std::fs::read_to_string(effects).expect("it was written").lines().map(str::to_owned).collect();
    done.sort();
    assert_eq!(done, ["k0", "k1", "k2", "k3", "k5", "k6", "k7", "k8", "k9"], "each good one once: {logs}");
    let dead: Vec<_> = dead.iter().map(|message| message.body.contains("k4")).collect();
    assert_eq!(dead, [true], "{logs}");
    // Five, but for receives that find the lease of the last owner still live.
    assert!((2..=5).contains(&crashes), "{crashes} {logs}");
}
