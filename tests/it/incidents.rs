//! Incidents from the alarm to the fix, by the built command alone, in the local cloud. What is typed is what the runbook says:
//! the blocks of `docs/alarm-*.md`, line by line.

use std::path::Path;
use std::time::{Duration, Instant};

use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::dynamodb::Item;
use claimant_local::faults::{Act, FaultSpec, Target};
use claimant_local::sqs::NewMessage;
use claimant_servers::repository;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::cloud::{POISON_FUNCTION, QUEUES_AND_TABLE, built, start, wait_for};

/// The commands that ask before they write; a test has no terminal to answer on.
const ASKING: [&str; 7] = [
    "claimant release",
    "claimant reset",
    "claimant forget",
    "claimant resolve",
    "claimant dead redrive",
    "claimant dead discard",
    "claimant resume",
];

/// The payment function at a gateway that does not deduplicate: what may have been charged is parked.
const PAYMENT: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  PaymentQueue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 30
      RedrivePolicy: {deadLetterTargetArn: !GetAtt PaymentDeadLetterQueue.Arn, maxReceiveCount: 5}
  PaymentDeadLetterQueue:
    Type: AWS::SQS::Queue
  LockTable:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      TimeToLiveSpecification: {AttributeName: expires_at, Enabled: true}
  PaymentFunction:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: payment}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Policies:
        - DynamoDBCrudPolicy: {TableName: !Ref LockTable}
        - SQSSendMessagePolicy: {QueueName: !GetAtt PaymentDeadLetterQueue.QueueName}
      Environment:
        Variables:
          CLAIMANT_TABLE: !Ref LockTable
          CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref PaymentDeadLetterQueue
          GATEWAY_URL: https://gateway.example/legacy
          GATEWAY_DEDUPLICATES: 'no'
      Events:
        Payments:
          Type: SQS
          Properties: {Queue: !GetAtt PaymentQueue.Arn, BatchSize: 10, FunctionResponseTypes: [ReportBatchItemFailures]}
";

/// What a command printed, and its exit code.
#[derive(Debug)]
struct Printed {
    code: i32,
    text: String,
}

/// A cloud with an operator.
struct Incident {
    cloud: Cloud,
    /// Where `template.yaml` is, and where lines are typed.
    stage: TempDir,
    name: &'static str,
    /// What all commands took so far.
    typed: Duration,
}

impl Incident {
    async fn start(name: &'static str, template: &str, binary: &str) -> Self {
        let stage = TempDir::new().expect("a temporary directory");
        let path = stage.path().join("template.yaml");
        std::fs::write(&path, template).expect("it is writable");
        let (cloud, _) = start(CloudConfig::new(path, built(&["claimant", binary]))).await;
        Self { cloud, stage, name, typed: Duration::ZERO }
    }

    fn send(&self, queue: &str, body: &Value) {
        self.cloud.sqs().send(queue, NewMessage::new(body.to_string())).expect("the queue is there");
    }

    fn pay(&self, order: &str) {
        self.send("PaymentQueue", &json!({ "order_id": order, "amount_cents": 1_250, "currency": "EUR" }));
    }

    /// Types a line at a shell; `--yes` answers its question.
    async fn types(&mut self, line: &str) -> Printed {
        let yes = if ASKING.iter().any(|command| line.starts_with(command)) { " --yes" } else { "" };
        let path = format!("{}:{}", built(&["claimant"]).display(), std::env::var("PATH").unwrap_or_default());
        let began = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{line}{yes}")]).env("PATH", path);
        shell.current_dir(self.stage.path());
        shell.env("CLAIMANT_LOCAL_URL", &self.cloud.endpoints().control).env("CLAIMANT_OPERATOR", "on-call");
        let output = shell.output().await.expect("a shell runs");
        let took = began.elapsed();
        self.typed += took;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().expect("no signal ends it");
        println!("{}: {:.2} s, exit code {code}: {line}\n{text}", self.name, took.as_secs_f64());
        Printed { code, text }
    }

    /// Types the block below a heading of the runbook; what each line printed, by its command.
    async fn follows(&mut self, page: &str, heading: &str) -> Vec<Printed> {
        self.follows_with(page, heading, ("", "")).await
    }

    /// As [`follows`](Self::follows), with an id of here in place of the page's.
    async fn follows_with(&mut self, page: &str, heading: &str, (of_page, here): (&str, &str)) -> Vec<Printed> {
        let mut printed = Vec::new();
        for line in block(page, heading) {
            let line = if of_page.is_empty() { line } else { line.replace(of_page, here) };
            printed.push(self.types(&line).await);
        }
        assert!(!printed.is_empty(), "{page} has no block below {heading}");
        printed
    }

    /// Waits for an alarm, as CloudWatch would: until this command finds something.
    async fn alarm(&mut self, line: &str) -> Printed {
        let began = Instant::now();
        loop {
            let printed = self.types(line).await;
            if printed.code == 1 {
                self.typed = Duration::ZERO;
                return printed;
            }
            assert_eq!(printed.code, 0, "{}", printed.text);
            assert!(began.elapsed() < Duration::from_secs(120), "nothing found: {line}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn drained(&self) {
        wait_for("the queue to drain", || self.cloud.drained().expect("the queues are there")).await;
    }

    fn charges(&self) -> usize {
        self.cloud.gateway().charges().len()
    }

    fn dead(&self, queue: &str) -> usize {
        self.cloud.sqs().depth(queue).expect("the queue is there").visible
    }

    async fn ends(self) {
        println!("{}: all commands together took {:.2} s", self.name, self.typed.as_secs_f64());
        self.cloud.stop().await;
    }
}

/// The lines of the first block below a heading of a page, which are all commands.
fn block(page: &str, heading: &str) -> Vec<String> {
    let path = repository().expect("the repository is known").join(Path::new("docs").join(page));
    let text = std::fs::read_to_string(path).expect("the page is there");
    let below = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with('#'));
    let fenced =
        below.skip_while(|line| !line.starts_with("```sh")).skip(1).take_while(|line| !line.starts_with("```"));
    fenced.map(str::to_owned).collect()
}

/// A process dies while it charges; no one knows whether it did.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn stuck_after_a_death() {
    let mut incident = Incident::start("stuck after a death", PAYMENT, "payment").await;
    incident.pay("slow-1001");
    wait_for("the charge", || incident.charges() == 1).await;
    let pids = incident.cloud.function("payment").expect("it runs").pids();
    for pid in pids {
        let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.expect("kill runs").success());
    }
    let list = incident.alarm("claimant list stuck").await;
    assert!(list.text.contains("payment#slow-1001"), "{}", list.text);
    let printed = incident.follows("alarm-oldest-message.md", "## A key is stuck").await;
    assert!(printed[1].text.contains("its owner died, its handler did not stop"), "{}", printed[1].text);
    assert!(printed[1].text.contains("parked"), "{}", printed[1].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 1, 0, 0]);
    incident.drained().await;
    assert_eq!((incident.charges(), incident.types("claimant list").await.code), (1, 0));
    incident.ends().await;
}

/// A gateway that does not deduplicate lost its answer: one payment was made, one was not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn a_parked_payment() {
    const PAGE: &str = "alarm-parked.md";
    let mut incident = Incident::start("parked payment", PAYMENT, "payment").await;
    incident.pay("flaky-1001");
    incident.pay("unavailable-1002");
    wait_for("two dead letters", || incident.dead("PaymentDeadLetterQueue") == 2).await;
    incident.alarm("claimant list parked").await;
    assert_eq!(incident.charges(), 1);
    // A correction under the parked key is a conflict: a letter of the same record, whose work is not done.
    incident.send("PaymentQueue", &json!({ "order_id": "flaky-1001", "amount_cents": 900, "currency": "EUR" }));
    wait_for("a third dead letter", || incident.dead("PaymentDeadLetterQueue") == 3).await;
    let printed = incident.follows(PAGE, "## It was done").await;
    assert!(printed[1].text.contains("In PaymentDeadLetterQueue: "), "{}", printed[1].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 1, 0, 0]);
    assert_eq!(incident.dead("PaymentDeadLetterQueue"), 2, "the conflict stays");
    let printed = incident.follows(PAGE, "## It was not done").await;
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 0, 0]);
    wait_for("the second charge", || incident.charges() == 2).await;
    incident.drained().await;
    assert_eq!((incident.dead("PaymentDeadLetterQueue"), incident.types("claimant list").await.code), (1, 0));
    incident.ends().await;
}

/// A producer left the currency out; of 500 dead letters those can be fixed, and the others stay where they are.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn five_hundred_dead_letters_of_three_causes() {
    let mut incident = Incident::start("500 dead letters", PAYMENT, "payment").await;
    for n in 0..500 {
        let (order, amount) = match n % 10 {
            0 => (format!("short-{n}"), 48_000),
            1..=3 => (format!("short-{n}"), 990),
            4..=6 => (format!("declined-{n}"), 1_250),
            _ => (format!("free-{n}"), 0),
        };
        let mut payment = json!({ "order_id": order, "amount_cents": amount, "currency": "EUR" });
        if order.starts_with("short-") {
            payment.as_object_mut().expect("it is an object").remove("currency");
        }
        incident.send("PaymentQueue", &payment);
    }
    wait_for("500 dead letters", || incident.dead("PaymentDeadLetterQueue") == 500).await;
    incident.alarm("claimant dead list --limit 1").await;
    let printed = incident.follows("alarm-dead-letters.md", "## Find the causes").await;
    assert!([" 200 ", " 150 "].iter().all(|count| printed[0].text.contains(count)), "{}", printed[0].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 1, 0, 0, 1]);
    wait_for("the charges", || incident.charges() == 200).await;
    let cents: u64 = incident.cloud.gateway().charges().iter().map(|charge| charge.order.amount_cents).sum();
    assert_eq!(cents, 50 * 48_000 + 150 * 990, "each by its own amount");
    incident.drained().await;
    assert_eq!(incident.dead("PaymentDeadLetterQueue"), 300, "the other two causes stay");
    let printed = incident.follows("alarm-dead-letters.md", "## What cannot be fixed").await;
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [0]);
    assert_eq!(incident.dead("PaymentDeadLetterQueue"), 150);
    incident.ends().await;
}

/// A message ends its process each time, until SQS gives up on it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn a_poison_message() {
    /// The letter's id in the page.
    const OF_PAGE: &str = "5f0c2b7e-9a34-4d1f-8f60-2f7c1f0a9b11";
    /// What SQS has moved there of another queue is none of this.
    const ANOTHER: &str = "  Parcels:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 0, RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 1}}
";
    let template = QUEUES_AND_TABLE.replace("SECONDS", "25").replace("maxReceiveCount: 5", "maxReceiveCount: 2")
        + ANOTHER
        + &POISON_FUNCTION
            .replace("Parameters:\n  EffectsFile: {Type: String}\n", "")
            .replace("!Ref EffectsFile", "/dev/null");
    let mut incident = Incident::start("poison message", &template, "poison-worker").await;
    for n in 0..10 {
        incident.send("Orders", &json!({ "id": format!("k{n}"), "kills": n == 4, "takes_ms": 10 }));
    }
    incident.alarm("claimant dead list").await;
    incident.alarm("claimant list stuck").await;
    let letter = incident.cloud.sqs().messages("Dead").expect("the queue is there").remove(0).message_id;
    incident.send("Parcels", &json!({ "id": "p1" }));
    for _ in 0..2 {
        incident.cloud.sqs().receive("Parcels", 1, Duration::ZERO).await.expect("the queue is there");
    }
    assert_eq!(incident.dead("Dead"), 2);
    let of_here = (OF_PAGE, &*letter);
    let printed = incident.follows_with("alarm-function-errors.md", "## A message ends its process", of_here).await;
    assert!(printed[0].text.contains("received too often from Orders"), "{}", printed[0].text);
    assert!(printed[2].text.contains(&format!("In Dead: {letter}")), "{}", printed[2].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 1, 1, 0, 0]);
    incident.drained().await;
    let saved = std::fs::read_to_string(incident.stage.path().join("poison.jsonl")).expect("it was saved");
    assert_eq!((saved.lines().count(), saved.contains("k4")), (1, true));
    assert_eq!((incident.dead("Dead"), incident.types("claimant list").await.code), (1, 0), "the other letter stays");
    incident.ends().await;
}

/// The gateway is away, and its breaker is open; once it is back, the person on call does not wait for the next probe.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn a_breaker_that_is_open() {
    const PAGE: &str = "alarm-breaker.md";
    let template = PAYMENT
        .replace("'no'", "'yes'\n          CLAIMANT_VISIBILITY: 'off'")
        .replace("/legacy", "")
        .replace("VisibilityTimeout: 30", "VisibilityTimeout: 5")
        .replace("maxReceiveCount: 5", "maxReceiveCount: 100");
    let mut incident = Incident::start("breaker", &template, "payment").await;
    let away = FaultSpec { of: Some(Target::Gateway), seconds: Some(3_600), ..FaultSpec::new(Act::Refuse) };
    incident.cloud.faults().begin(away).expect("the gateway can be refused");
    for n in 0..20 {
        incident.pay(&format!("ord-{n}"));
    }
    wait_for("the breaker", || incident.cloud.dynamodb().items("LockTable").unwrap().iter().any(is_open)).await;
    let printed = incident.follows(PAGE, "## Which system, and since when").await;
    assert!(["IN_PROGRESS", "payment"].iter().all(|word| printed[0].text.contains(word)), "{}", printed[0].text);
    incident.cloud.faults().end_all();
    let printed = incident.follows(PAGE, "## The system is back").await;
    assert_eq!(printed[0].code, 0, "{}", printed[0].text);
    incident.drained().await;
    assert_eq!((incident.charges(), incident.dead("PaymentDeadLetterQueue")), (20, 0));
    incident.ends().await;
}

fn is_open(item: &Item) -> bool {
    item.text("id") == Some("claimant-breaker#gateway") && item.text("status") == Some("IN_PROGRESS")
}

/// Lambda deletes failed messages where the mapping does not say that the function reports them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn a_mapping_without_report_batch_item_failures() {
    const PAGE: &str = "alarm-function-errors.md";
    // The first answer of the gateway is 503, which is a plain retry where it deduplicates.
    let fixed = PAYMENT.replace("'no'", "'yes'").replace("/legacy", "");
    let broken = fixed.replace(", FunctionResponseTypes: [ReportBatchItemFailures]", "");
    let mut incident = Incident::start("no ReportBatchItemFailures", &broken, "payment").await;
    // What cannot be claimed is lost without a record: no list has it.
    let away = FaultSpec { of: Some(Target::Table), seconds: Some(3_600), ..FaultSpec::new(Act::Throttle) };
    incident.cloud.faults().begin(away).expect("the table can be throttled");
    incident.pay("ord-1004");
    incident.drained().await;
    incident.cloud.faults().end_all();
    assert_eq!(incident.types("claimant list").await.code, 0);
    incident.pay("unavailable-1005");
    let list = incident.alarm("claimant list failed").await;
    assert!(list.text.contains("payment#unavailable-1005"), "{}", list.text);
    let printed = incident.follows(PAGE, "## Failed messages do not come back").await;
    assert!(printed[1].text.contains("FunctionResponseTypes: [ReportBatchItemFailures]"), "{}", printed[1].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!((incident.charges(), incident.dead("PaymentDeadLetterQueue")), (0, 0), "its message is gone");
    // The mapping is mended: what fails now comes back.
    incident.pay("unavailable-1006");
    wait_for("the charge", || incident.charges() == 1).await;

    // The line that the finding names is added, the stack deployed, and the producer sends the order again.
    std::fs::write(incident.stage.path().join("template.yaml"), &fixed).expect("it is writable");
    let printed = incident.follows(PAGE, "### Once the line is there").await;
    assert_eq!(printed[0].code, 0, "{}", printed[0].text);
    incident.ends().await;
    let mut incident = Incident::start("no ReportBatchItemFailures, fixed", &fixed, "payment").await;
    incident.pay("unavailable-1005");
    wait_for("the charge", || incident.charges() == 1).await;
    incident.drained().await;
    assert_eq!(incident.types("claimant list").await.code, 0);
    incident.ends().await;
}

/// What the handler calls refuses; its message is tried again by and by.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn nothing_succeeds() {
    // Without the backoff, the message is hidden for the 30 s of its queue: it is failed while the page is read.
    let template = PAYMENT.replace("'no'", "'yes'\n          CLAIMANT_VISIBILITY: 'off'").replace("/legacy", "");
    let mut incident = Incident::start("nothing succeeds", &template, "payment").await;
    incident.pay("unavailable-1");
    incident.alarm("claimant list failed").await;
    let printed = incident.follows("alarm-nothing-succeeds.md", "## What waits").await;
    assert!(printed[0].text.contains("payment#unavailable-"), "{}", printed[0].text);
    assert_eq!(printed.iter().map(|line| line.code).collect::<Vec<_>>(), [1, 1]);
    incident.ends().await;
}

/// Every page of the runbook that has commands is followed by a test.
#[test]
fn every_page_of_the_runbook_is_followed() {
    let docs = repository().expect("the repository is known").join("docs");
    let tests = include_str!("incidents.rs");
    for page in std::fs::read_dir(docs).expect("it is there") {
        let page = page.expect("it can be read");
        let name = page.file_name().into_string().expect("it is UTF-8");
        if !name.starts_with("alarm-") {
            continue;
        }
        let text = std::fs::read_to_string(page.path()).expect("it can be read");
        assert!(!text.contains("```sh") || tests.contains(&format!("\"{name}\"")), "no test follows {name}");
    }
}

/// What an empty account, missing rights and a table of another shape answer: what is wrong and how to fix it, and exit code 2.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn what_is_not_there_or_not_allowed_is_said() {
    let mut incident = Incident::start("wrong account", PAYMENT, "payment").await;
    let endpoints = incident.cloud.endpoints().clone();
    let denied = denying().await;
    let account = |dynamodb: &str, sqs: &str| {
        format!(
            "env -u CLAIMANT_LOCAL_URL AWS_ENDPOINT_URL_DYNAMODB={dynamodb} AWS_ENDPOINT_URL_SQS={sqs} AWS_REGION=eu-west-1 \
             AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b"
        )
    };
    let (here, denying) = (account(&endpoints.dynamodb, &endpoints.sqs), account(&denied, &denied));
    let shape = here.replace(&endpoints.dynamodb, &other_shape(&incident.cloud).await);
    for (line, code, says) in [
        // The table is there, and empty: that is fine.
        (format!("{here} claimant list --table LockTable"), 0, "No key is"),
        (format!("{here} claimant list --table Locks"), 2, "Locks"),
        (format!("{here} claimant inspect payment#1 --table Locks"), 2, "Locks"),
        (format!("{denying} claimant list --table LockTable"), 2, "dynamodb:"),
        (format!("{denying} claimant inspect payment#1 --table LockTable"), 2, "dynamodb:"),
        (format!("{denying} claimant release payment#1 --yes --table LockTable"), 2, "dynamodb:"),
        (format!("{shape} claimant inspect payment#1 --table Other"), 2, "id"),
        ("claimant list --local --table Locks".to_owned(), 2, "has no table Locks: it has LockTable"),
        ("claimant inspect ord-1".to_owned(), 2, "consumer"),
        ("claimant inspect ord-1 --consumer payment".to_owned(), 0, "There is no record"),
        ("claimant resolve payment#ord-1".to_owned(), 1, "there is no record"),
    ] {
        let printed = incident.types(&line).await;
        assert_eq!(printed.code, code, "{line}: {}", printed.text);
        assert!(printed.text.contains(says), "{line}: {}", printed.text);
    }
    incident.ends().await;
}

/// An endpoint that allows nothing.
async fn denying() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there are ports");
    let address = listener.local_addr().expect("it is bound");
    let body = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: arn:aws:iam::1:user/a is not authorized"}"#;
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/x-amz-json-1.0\r\nx-amzn-errortype: AccessDeniedException\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut read = [0; 65_536];
                // OK to ignore: what breaks here fails the command under test.
                let _ = stream.read(&mut read).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    format!("http://{address}")
}

/// The cloud's DynamoDB with a table of another shape, `Other`.
async fn other_shape(cloud: &Cloud) -> String {
    let url = cloud.endpoints().dynamodb.clone();
    let key = claimant_local::stack::KeySpec { name: "card_id".into(), kind: claimant_local::stack::KeyKind::S };
    let table = claimant_local::stack::TableSpec {
        logical_id: "Other".into(),
        name: "Other".into(),
        partition_key: key,
        sort_key: None,
        ttl_attribute: None,
    };
    cloud.dynamodb().create_table(&table).expect("it is new");
    url
}

/// What functions of a deployed stack use is found by CloudFormation's list of them, their variables and their mappings.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn a_stack_is_found_by_its_name() {
    let mut incident = Incident::start("stack", PAYMENT, "payment").await;
    incident.pay("declined-1");
    wait_for("a dead letter", || incident.dead("PaymentDeadLetterQueue") == 1).await;
    let variables = incident.cloud.variables().into_iter().map(|(name, value)| format!("{name}={value} "));
    let account: String = variables.collect();
    for (line, code, says) in [
        ("claimant list --stack local", 1, "payment#declined-1"),
        ("claimant inspect payment#declined-1 --stack local", 1, "In PaymentDeadLetterQueue: "),
        ("claimant dead list --stack local", 1, "the payment was declined"),
        ("claimant list --stack local --table Locks", 2, "has no table Locks: it has LockTable"),
        ("claimant list --stack other", 2, "the stack other cannot be read: This stack does not exist"),
    ] {
        let printed = incident.types(&format!("env -u CLAIMANT_LOCAL_URL {account}{line}")).await;
        assert_eq!(printed.code, code, "{line}: {}", printed.text);
        assert!(printed.text.contains(says), "{line}: {}", printed.text);
    }
    incident.ends().await;
}

/// The lists that a shell's pipes read, and the outcomes as they happen.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the built binaries: make test"]
async fn documents_and_outcomes_can_be_piped() {
    let mut incident = Incident::start("pipes", PAYMENT, "payment").await;
    let tail = {
        let mut shell = Command::new(built(&["claimant"]).join("claimant"));
        shell.args(["tail", "--limit", "1", "--json"]).env("CLAIMANT_LOCAL_URL", &incident.cloud.endpoints().control);
        shell.stdout(std::process::Stdio::piped()).spawn().expect("the command runs")
    };
    let tail = tail.wait_with_output();
    tokio::pin!(tail);
    // Until it listens, outcomes pass it by.
    let mut sent = 0;
    let output = loop {
        incident.pay(&format!("declined-{sent}"));
        sent += 1;
        tokio::select! {
            output = &mut tail => break output.expect("it ends"),
            () = tokio::time::sleep(Duration::from_millis(500)) => assert!(sent < 200, "no outcome is shown"),
        }
    };
    let seen: Value = serde_json::from_slice(&output.stdout).expect("one document in one line");
    assert_eq!((&seen["seen"]["consumer"], &seen["function"]), (&json!("payment"), &json!("PaymentFunction")));
    incident.drained().await;
    let listed = incident.types("claimant list rejected --json 2>/dev/null").await;
    let listed: Value = serde_json::from_str(&listed.text).expect("one document");
    assert_eq!(listed["stores"][0]["keys"].as_array().map(Vec::len), Some(sent));
    assert_eq!(listed["stores"][0]["keys"][0]["state"], "rejected");
    // A reader that has enough is no failure.
    assert_eq!(incident.types("claimant list rejected | head -n 1").await.code, 0);
    let planned = incident.types("claimant release payment#declined-0 --dry-run --json").await;
    assert_eq!((planned.code, planned.text.contains("\"would_write\"")), (0, true), "{}", planned.text);
    let asked = incident.types("true; claimant release payment#declined-0 < /dev/null").await;
    assert_eq!((asked.code, asked.text.contains("give --yes")), (2, true), "{}", asked.text);
    incident.ends().await;
}
