//! `claimant dead`, `send`, `effects`, `pause` and `resume`, as people call them, on a local cloud; `pause` on a stack, too.

use std::collections::BTreeMap;
use std::process::Output;

use claimant_local::cloud::{Binaries, Cloud, CloudConfig};
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A function whose program is never built, its queue, and a dead-letter queue.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Dead: {Type: AWS::SQS::Queue}
  Orders:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}}
  Confirm:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: confirm}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Events: {Orders: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}}
";

pub(crate) struct World {
    directory: TempDir,
    pub(crate) cloud: Cloud,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::of("").await
    }

    /// Starts it with more resources.
    pub(crate) async fn of(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let template = directory.path().join("template.yaml");
        std::fs::write(&template, format!("{TEMPLATE}{more}")).unwrap();
        let config = CloudConfig::new(&template, directory.path());
        let binaries = Binaries { wait: true, search: true, ..config.binaries.clone() };
        let cloud = Cloud::start(CloudConfig { binaries, ..config }).await.unwrap();
        Self { directory, cloud }
    }

    /// Puts a copy in the dead-letter queue, as a function does.
    pub(crate) fn letter(&self, error: &str, outcome: &str, body: &str) {
        self.letter_in("Dead", (error, outcome), body);
    }

    /// Puts one in this queue.
    pub(crate) fn letter_in(&self, queue: &str, why: (&str, &str), body: &str) {
        self.letter_of("order#7", queue, why, body);
    }

    /// Puts one of this record in this queue.
    pub(crate) fn letter_of(&self, record: &str, queue: &str, (error, outcome): (&str, &str), body: &str) {
        let said = [
            ("claimant-error", error),
            ("claimant-outcome", outcome),
            ("claimant-consumer", "order"),
            ("claimant-record", record),
        ];
        let attributes: BTreeMap<_, _> = said
            .into_iter()
            .map(|(name, value)| {
                let value = AttributeValue::Text(value.to_owned());
                (name.to_owned(), MessageAttribute { data_type: "String".to_owned(), value })
            })
            .collect();
        let message = NewMessage { message_attributes: attributes, ..NewMessage::new(body) };
        self.cloud.sqs().send(queue, message).unwrap();
    }

    pub(crate) fn depths(&self) -> (usize, usize) {
        let depth = |queue: &str| self.cloud.sqs().depth(queue).unwrap().visible;
        (depth("Dead"), depth("Orders"))
    }

    pub(crate) fn bodies(&self, queue: &str) -> Vec<String> {
        self.cloud.sqs().messages(queue).unwrap().into_iter().map(|message| message.body).collect()
    }

    /// The command on this cloud.
    pub(crate) fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(args).arg(format!("--local={}", self.cloud.endpoints().control));
        command
    }

    /// Runs the command on this cloud; returns its exit code, standard output and standard error.
    pub(crate) async fn claimant(&self, args: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(args).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    pub(crate) async fn json(&self, args: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.claimant(&[args, &["--json"]].concat()).await;
        (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}")))
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

fn url_in(world: &World, queue: &str) -> String {
    format!("{}/000000000000/{queue}", world.cloud.endpoints().sqs.trim_end_matches('/'))
}

/// As a deployed stack is: by CloudFormation's list of its functions, and what Lambda says of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_local_cloud_is_a_stack_of_its_account() {
    let world = World::start().await;
    world.letter("no such product", "rejected", "{}");
    let claimant = async |args: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_claimant"));
        let Output { status, stdout, stderr } =
            command.args(args).env("CLAIMANT_LOCAL_URL", "").envs(world.cloud.variables()).output().await.unwrap();
        (status.code().unwrap(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
    };
    for (args, code, says) in [
        (&["pause", "Confirm", "--dry-run", "--stack", "local"][..], 0, "Orders"),
        (&["dead", "list", "--stack", "local"], 1, "no such product"),
        (&["list", "--stack", "other"], 2, "the stack other cannot be read: This stack does not exist"),
    ] {
        let (ended, text) = claimant(args).await;
        assert!(ended == code && text.contains(says), "{args:?}: {ended} {text}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cause_of_two_is_sent_back() {
    let world = World::start().await;
    let (code, out, _) = world.claimant(&["dead", "group"]).await;
    assert_eq!((code, out.as_str()), (0, "Dead: 0 dead letters\n"));
    for n in 0..5 {
        world.letter(&format!("order ord-{n} has no price"), "rejected", &format!("{{\"secret\": {n}}}"));
    }
    for n in 0..3 {
        world.letter("evil \u{202e}name", "parked", &format!("secret {n}"));
    }

    let (code, out, _) = world.claimant(&["dead", "group"]).await;
    let lines: Vec<_> = out.lines().collect();
    assert_eq!((code, lines.len(), lines[0]), (1, 6, "Dead: 8 dead letters"), "{out}");
    assert!(lines[1].starts_with("GROUP     LETTERS  CONSUMER  OUTCOME"), "{out}");
    assert!(lines[2].contains("5  order     rejected") && lines[3].trim() == "order # has no price", "{out}");
    assert!(lines[5].contains("evil \\u{202e}name") && !out.contains('\u{202e}'), "{out}");
    let group = lines[2].split(' ').next().unwrap();

    let (code, listed) = world.json(&["dead", "list", "--outcome", "rejected", "--where", "secret=4"]).await;
    let letter = &listed["queues"][0]["letters"][0];
    assert_eq!((code, &letter["group"], &letter["error"]), (1, &json!(group), &json!("order ord-4 has no price")));
    let id = letter["message_id"].as_str().unwrap();
    let (code, out, _) = world.claimant(&["dead", "show", id, "none"]).await;
    assert_eq!(code, 1);
    assert!(out.contains("record        order#7\n") && out.contains("none: no dead letter has this id"), "{out}");
    assert!(!out.contains("secret"), "{out}");
    let (code, shown) = world.json(&["dead", "show", id]).await;
    assert_eq!((code, &shown["letters"][0]["queue"]), (0, &json!("Dead")), "{shown}");
    let (code, out, _) = world.claimant(&["dead", "show", id, "--show-body"]).await;
    assert!(code == 0 && out.contains("body          {\"secret\": 4}"), "{out}");

    let (code, out, err) = world.claimant(&["dead", "redrive", "--group", group]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("Send back 5 dead letters of Dead to Orders? There is no terminal to ask on: give --yes"),
        "{err}"
    );
    let (code, out, _) = world.claimant(&["dead", "redrive", "--group", group, "--dry-run"]).await;
    assert_eq!((code, out.as_str()), (0, "Dead: 5 dead letters would be sent back to Orders.\n"));
    assert_eq!(world.depths(), (8, 0));
    let (code, out, _) = world.claimant(&["dead", "redrive", "--group", group, "--yes", "--limit", "2"]).await;
    assert!(code == 0 && out.contains("There may be more"), "{out}");
    let (code, done) = world.json(&["dead", "redrive", "--group", group, "--yes", "--rate", "100"]).await;
    assert_eq!((code, done["queues"][0]["done"].as_array().unwrap().len()), (0, 3), "{done}");
    assert_eq!(world.depths(), (3, 5));
    let (code, out, _) = world.claimant(&["dead", "redrive", "--group", group, "--yes"]).await;
    assert!(code == 1 && out.contains("No dead letter fits"), "{out}");
    // The queue that is asked for may not be the one that is meant.
    let other = url_in(&world, "Orders").replace("127.0.0.1", "localhost");
    for (to, says) in
        [(&[][..], "to Orders, 3 of them parked"), (&["--to", &other], &format!("to {other}, 3 of them parked"))]
    {
        let (_, _, err) = world.claimant(&[&["dead", "redrive", "--all"], to].concat()).await;
        assert!(err.contains(&format!("Send back 3 dead letters of Dead {says} unless")), "{err}");
    }
    let (_, _, err) = world.claimant(&["dead", "discard", "--all"]).await;
    assert!(err.contains("Discard 3 dead letters of Dead?"), "{err}");
    let (_, out, _) = world.claimant(&["dead", "redrive", "--all", "--yes"]).await;
    assert!(out.contains("3 of them were parked") && out.contains("claimant release"), "{out}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_edited_saved_and_discarded() {
    let world = World::start().await;
    for n in 0..3 {
        world.letter("no currency", "rejected", &format!("{{\"n\":{n}.50}}"));
    }
    let set = ["dead", "redrive", "--where", "n=0.50", "--set", "currency=EUR", "--set", "n=1", "--yes"];
    // A value is the same in all of them, which the question says.
    let (_, _, err) = world.claimant(&[&["dead", "redrive", "--all"][..], &set[4..8]].concat()).await;
    assert!(
        err.contains("Send back 3 dead letters of Dead to Orders, currency set to EUR in each, n set to 1 in each?"),
        "{err}"
    );
    assert_eq!(world.claimant(&set).await.0, 0);
    let sent = world.cloud.sqs().receive("Orders", 10, std::time::Duration::ZERO).await.unwrap();
    assert_eq!(sent[0].body, r#"{"n":1,"currency":"EUR"}"#);

    let saved = world.file("saved.jsonl");
    // What is not discarded leaves no file in the way of the next try.
    for more in [&["--error", "CURRENCY"][..], &["--error", "none", "--yes"]] {
        let (code, _, err) = world.claimant(&[&["dead", "discard", "--save", &saved], more].concat()).await;
        assert!(code > 0 && !std::path::Path::new(&saved).exists(), "{more:?}: {err}");
    }
    let discard = ["dead", "discard", "--error", "CURRENCY", "--save", &saved, "--yes"];
    let (code, out, _) = world.claimant(&discard).await;
    assert_eq!((code, out.as_str(), world.depths()), (0, "Dead: 2 dead letters discarded.\n", (0, 0)));
    assert_eq!(std::fs::read_to_string(&saved).unwrap().lines().count(), 2);
    let (code, _, err) = world.claimant(&discard).await;
    assert!(code == 2 && err.contains("it must not exist yet"), "{err}");
    // What was saved are letters: sent, the file would be one message.
    let (code, out, err) = world.claimant(&["send", "Orders", "--file", &saved]).await;
    assert!(code == 2 && err.contains("has dead letters, one a line, as `claimant dead discard --save`"), "{out}{err}");
    assert_eq!(world.depths(), (0, 0));

    // SQS has several hosts.
    let itself = url_in(&world, "Dead").replace("127.0.0.1", "localhost");
    for (args, wanted) in [
        (&["dead", "discard", "--yes"][..], "say which dead letters are meant"),
        (&["dead", "redrive", "--all", "--group", "abcdef01", "--yes"], "leave the other conditions out"),
        (&["dead", "redrive", "--group", "xy", "--yes"], "4 to 8 of the digits"),
        (&["dead", "list", "--group", "103ce9c00"], "4 to 8 of the digits"),
        (&["dead", "discard", "--error", "", "--yes"], "the part of the error of the dead letters is empty"),
        (&["dead", "list", "--consumer="], "the consumer of the dead letters is empty"),
        (&["dead", "redrive", "--all", "--to", &itself, "--yes"], "cannot be its own destination"),
        (&["dead", "redrive", "--group", "3f2a", "--yes"], "3f2a can be the beginning of several groups"),
        (&["dead", "discard", "--group", "3f2a", "--yes"], "all 8 digits"),
        (&["dead", "redrive", "--all", "--to", "Nowhere", "--yes"], "there is no queue at"),
        (&["dead", "list", "--queue", "Nothing"], "has no queue Nothing: it has Dead, Orders"),
        (&["dead", "redrive", "--all", "--body", "/no/such/file", "--yes"], "cannot be read as text"),
    ] {
        let (code, _, err) = world.claimant(args).await;
        assert!(code == 2 && err.contains(wanted), "{args:?}: {err}");
    }
    world.cloud.stop().await;
}

/// A queue without a dead-letter queue that a function reads, one that nothing does, and one that a function without a queue copies to.
const BARE: &str = "
  Payments: {Type: AWS::SQS::Queue}
  Loose: {Type: AWS::SQS::Queue}
  Given: {Type: AWS::SQS::Queue}
  Idle:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: idle}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Environment: {Variables: {CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Given}}
  Charge:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: charge}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Events: {Payments: {Type: SQS, Properties: {Queue: !GetAtt Payments.Arn}}}
";

/// A function whose schedules leave what they cannot send in a queue of their own.
const LATER: &str = "
  Later: {Type: AWS::SQS::Queue}
  Unsent: {Type: AWS::SQS::Queue}
  Wait:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: wait}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Environment: {Variables: {CLAIMANT_SCHEDULE_DEAD_LETTER_ARN: !GetAtt Unsent.Arn}}
      Events: {Later: {Type: SQS, Properties: {Queue: !GetAtt Later.Arn}}}
";

/// Its only copy is there, as the request, and no queue gets that as a body.
#[tokio::test(flavor = "multi_thread")]
async fn what_schedules_could_not_send_is_found_and_not_sent_as_it_is() {
    let world = World::of(LATER).await;
    let first = json!({"claimant-sent-again-of": {"DataType": "String", "StringValue": "first"}});
    let request = json!({"QueueUrl": url_in(&world, "gone"), "MessageBody": "secret", "MessageAttributes": first});
    let attribute = |value: &str| {
        let value = AttributeValue::Text(value.to_owned());
        MessageAttribute { data_type: "String".to_owned(), value }
    };
    let said = [("ERROR_CODE", "NonExistentQueue"), ("SCHEDULE_ARN", "arn:aws:scheduler:x")];
    let message_attributes = said.map(|(name, value)| (name.to_owned(), attribute(value))).into();
    let letter = NewMessage { message_attributes, ..NewMessage::new(request.to_string()) };
    let id = world.cloud.sqs().send("Unsent", letter).unwrap().message_id;
    for queue in [None, Some("Later")] {
        let send: Vec<_> = ["send"].into_iter().chain(queue).chain(["--message", &id]).collect();
        let (code, out, err) = world.claimant(&send).await;
        assert!(code == 2 && err.contains("--cli-input-json file://FILE"), "{queue:?}: {out}{err}");
    }
    let why = "a schedule could not send it: NonExistentQueue";
    for queue in [&[][..], &["--queue", "Later"], &["--queue", "Unsent"]] {
        let (code, out, err) = world.claimant(&[&["dead", "list"], queue].concat()).await;
        assert!(code == 1 && out.contains(why) && !out.contains("secret"), "{queue:?}: {out}{err}");
        let (code, shown) = world.json(&[&["dead", "redrive", "--all", "--yes"], queue].concat()).await;
        let why = shown.to_string();
        assert!(code == 1 && why.contains("--cli-input-json file://FILE"), "{queue:?}: {why}");
    }
    let (code, out, _) = world.claimant(&["dead", "show", "first"]).await;
    assert!(code == 0 && out.contains(why) && out.contains("the request of a schedule"), "{out}");
    let mut stack = tokio::process::Command::new(env!("CARGO_BIN_EXE_claimant"));
    let listed = stack.args(["dead", "list", "--stack", "local"]).envs(world.cloud.variables()).output().await.unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(why), "{listed:?}");
    world.cloud.stop().await;
}

/// A wrong value of the variable makes no dead-letter queue of one at work, and breaks no command of the stack.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_queue_of_schedules_is_left_out() {
    for (value, why) in [
        ("!GetAtt Later.Arn", "so its messages are at work"),
        ("arn:aws:sqs:eu-west-1:000000000000:Later", "it is in eu-west-1"),
        ("https://sqs.us-east-1.amazonaws.com/000000000000/Unsent", "that is not the ARN of a standard queue"),
    ] {
        let world = World::of(&LATER.replace("!GetAtt Unsent.Arn", value)).await;
        let (code, out, err) = world.claimant(&["dead", "discard", "--all", "--yes", "--queue", "Later"]).await;
        assert!(code == 2 && err.contains("Later has no dead letters: Wait reads it"), "{value}: {out}{err}");
        let mut stack = tokio::process::Command::new(env!("CARGO_BIN_EXE_claimant"));
        let listed = stack.args(["list", "--stack", "local"]).envs(world.cloud.variables()).output().await.unwrap();
        let said = String::from_utf8_lossy(&listed.stderr).into_owned();
        let left_out = "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN of Wait names ";
        assert!(said.contains(left_out) && said.contains(why), "{value}: {said}");
        world.cloud.stop().await;
    }
}

/// The queue whose messages are at work is none of them, however it is named.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_never_those_of_the_queue_at_work() {
    let world = World::of(BARE).await;
    world.claimant(&["pause", "Confirm", "--yes"]).await;
    world.claimant(&["pause", "Charge", "--yes"]).await;
    let url_of = |queue: &str| url_in(&world, queue);
    for queue in ["Payments", "Loose", "Given"] {
        world.cloud.sqs().send(queue, NewMessage::new("at work")).unwrap();
    }
    for (act, queue) in [("discard", "Payments"), ("redrive", &*url_of("Payments"))] {
        let (code, out, err) = world.claimant(&["dead", act, "--all", "--yes", "--queue", queue]).await;
        assert!(code == 2 && err.contains("Payments has no dead letters: Charge reads it"), "{queue}: {out}{err}");
    }
    assert_eq!(world.bodies("Payments"), ["at work"]);
    let (code, _, err) = world.claimant(&["dead", "discard", "--all", "--queue", "Loose"]).await;
    assert!(code == 2 && err.contains("of Loose (nothing says that it is a dead-letter queue)?"), "{err}");
    let (code, _, err) = world.claimant(&["dead", "discard", "--all", "--queue", "Given"]).await;
    assert!(code == 2 && err.contains("of Given?"), "{err}");
    world.cloud.sqs().send("Orders", NewMessage::new("at work")).unwrap();
    for queue in ["Orders", &url_of("Orders")] {
        world.letter("no currency", "rejected", "{}");
        let (code, out, err) = world.claimant(&["dead", "discard", "--all", "--yes", "--queue", queue]).await;
        assert_eq!((code, out.as_str()), (0, "Dead: 1 dead letter discarded.\n"), "{queue}: {err}");
        assert_eq!(world.depths(), (0, 1), "{queue}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_paused_and_resumed() {
    let world = World::start().await;
    let (code, _, err) = world.claimant(&["pause", "Confirm"]).await;
    assert!(code == 2 && err.contains("Stop messages to Confirm, from Orders?"), "{err}");
    let (code, out, _) = world.claimant(&["pause", "Confirm", "--dry-run"]).await;
    assert!(code == 0 && out.contains("Enabled") && out.ends_with("Confirm from Orders would be Disabled.\n"), "{out}");
    let (code, out, _) = world.claimant(&["pause", "Confirm", "--yes"]).await;
    assert_eq!(code, 0, "{out}");
    let (_, out, _) = world.claimant(&["pause", "Confirm", "--dry-run"]).await;
    assert!(out.ends_with("Confirm from Orders is Disabled already.\n"), "{out}");
    assert_eq!(
        out.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["Confirm", "Orders", "Disabled", "no"]
    );
    // What is so already is not asked for.
    let (code, out, err) = world.claimant(&["pause", "Confirm"]).await;
    assert!(code == 0 && out.contains("Disabled") && err.contains("it is so already"), "{out}{err}");
    let (code, _, err) = world.claimant(&["resume", "Confirm"]).await;
    assert!(code == 2 && err.contains("Let messages in to Confirm, from Orders?"), "{err}");
    let (_, _, err) = world.claimant(&["resume", "Confirm", "--report-failures"]).await;
    assert!(err.contains("Let messages in to Confirm, from Orders, and have it report failures?"), "{err}");
    for (act, would) in [("pause", "is Disabled already"), ("resume", "would be Enabled")] {
        let (_, out, _) = world.claimant(&[act, "Confirm", "--report-failures", "--dry-run"]).await;
        assert!(out.ends_with(&format!("Confirm from Orders {would}, and would report failures.\n")), "{out}");
        let (_, shown) = world.json(&[act, "Confirm", "--report-failures", "--dry-run"]).await;
        assert_eq!(shown["mappings"][0]["would_change"], json!(true), "{act}");
    }
    let (code, mappings) = world.json(&["resume", "Confirm", "--report-failures", "--yes"]).await;
    let mapping = &mappings["mappings"][0];
    assert_eq!((code, &mapping["state"], &mapping["reports_failures"]), (0, &json!("Enabled"), &json!(true)));
    let (code, _, err) = world.claimant(&["pause", "None", "--yes"]).await;
    assert!(code == 2 && err.contains("there is no function None in") && err.contains("there are Confirm"), "{err}");
    let (code, _, err) = world.claimant(&["pause", "Confirm", "--queue", "Dead", "--yes"]).await;
    assert!(code == 2 && err.contains("Confirm has no event source mapping of the SQS queue Dead"), "{err}");
    // By the name of its program, as the documents call the functions of the samples.
    let (code, out, _) = world.claimant(&["pause", "confirm", "--dry-run"]).await;
    assert!(code == 0 && out.ends_with("Confirm from Orders would be Disabled.\n"), "{out}");
    let (code, out, err) = world.claimant(&["fault", "kill", "confirm"]).await;
    assert!(code == 0 && out.contains("kills a process of Confirm"), "{out}{err}");
    world.cloud.stop().await;
}

/// A build writes its template into a directory of its own, as CDK does.
#[tokio::test(flavor = "multi_thread")]
async fn samples_are_found_where_the_command_is_typed_if_none_are_beside_the_template() {
    let (world, project) = (World::start().await, tempfile::tempdir().unwrap());
    let sample = |directory: &TempDir, title: &str| {
        let text = json!({"queue": "Orders", "samples": [{"title": title, "body": "x"}]}).to_string();
        std::fs::create_dir(directory.path().join("samples")).unwrap();
        std::fs::write(directory.path().join("samples/orders.json"), text).unwrap();
    };
    let titles = async || {
        let output = world.command(&["send", "--samples"]).current_dir(project.path()).output().await.unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        ["typed here", "beside the template"].map(|title| out.contains(title))
    };
    sample(&project, "typed here");
    assert_eq!(titles().await, [true, false]);
    sample(&world.directory, "beside the template");
    assert_eq!(titles().await, [false, true]);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_sent() {
    let world = World::start().await;
    world.claimant(&["pause", "Confirm", "--yes"]).await;
    let samples = world.directory.path().join("samples");
    std::fs::create_dir(&samples).unwrap();
    let text = r#"{"queue": "Orders", "samples": [
        {"title": "An order", "body": {"id": "ord-{n}"}}, {"title": "A broken order", "body": "x", "envelope": "sns"}]}"#;
    std::fs::write(samples.join("orders.json"), text).unwrap();
    let directory = world.directory.path().display().to_string();
    let (code, out, err) = world.claimant(&["send", "--samples", "--directory", &directory]).await;
    assert!(code == 0 && out.lines().count() == 3 && out.contains("A broken order"), "{out}{err}");
    // The local cloud says where its template is.
    assert_eq!(world.claimant(&["send", "--samples"]).await, (code, out, err));

    let sample = ["send", "--sample", "An order", "--directory", &directory, "--number", "7"];
    let (code, out, err) = world.claimant(&[&sample[..], &["--copies", "2", "--count", "3"]].concat()).await;
    assert_eq!((code, out.as_str()), (0, "6 messages sent to Orders, number 7.\n"), "{err}");
    let broken = ["send", "confirm", "--sample", "broken", "--directory", &directory, "--attribute", "tenant=t-1"];
    let (code, sent) = world.json(&broken).await;
    assert_eq!((code, &sent["sent"], &sent["queue"]), (0, &json!(1), &json!("Orders")), "{sent}");
    let bodies = world.bodies("Orders");
    let copies = |n: usize| bodies.iter().filter(|body| **body == format!(r#"{{"id":"ord-7-{n}"}}"#)).count();
    assert_eq!((bodies.len(), copies(1), copies(2), copies(3)), (7, 2, 2, 2), "{bodies:?}");
    assert!(bodies[6].contains("TopicArn"), "{bodies:?}");

    let (code, shown) = world.json(&["send", "--body", "{\"a\": 1}", "--envelope", "eventbridge", "--dry-run"]).await;
    assert!(code == 0 && shown["messages"][0]["body"].as_str().unwrap().contains("detail-type"), "{shown}");
    let (code, again) = world.json(&["send", "--message", sent["ids"][0].as_str().unwrap()]).await;
    assert_eq!((code, &again["sent"], &again["queue"]), (0, &json!(1), &json!("Orders")), "{again}");
    assert_eq!(world.bodies("Orders")[7], bodies[6]);
    assert_eq!(world.depths(), (0, 8));
    let received = world.cloud.sqs().receive("Orders", 10, std::time::Duration::ZERO).await.unwrap();
    let of_tenant = received.iter().filter(|message| message.message_attributes.contains_key("tenant"));
    assert_eq!(of_tenant.map(|message| &message.body).collect::<Vec<_>>(), [&bodies[6]; 2]);
    for (args, wanted) in [
        (&["send"][..], "say what to send"),
        (&["send", "--message", "1234"], "no message of this id"),
        (&["send", "Nowhere", "--body", "x"], "has no queue Nowhere"),
        (&["send", "--body", "x", "--envelope", "owl"], "there is no such envelope"),
        (&["send", "--body", "x", "--envelope", "eventbridge"], "EventBridge carries a JSON object"),
        (&["send", "--sample", "order", "--directory", &directory], "say which sample is meant"),
        (&["send", "--body", "x", "--count", "10000", "--copies", "2"], "1 to 10000 messages"),
    ] {
        let (code, _, err) = world.claimant(args).await;
        assert!(code == 2 && err.contains(wanted), "{args:?}: {err}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_looked_at_without_a_receive() {
    let world = World::start().await;
    for n in 0..3 {
        world.letter("no price", "rejected", &n.to_string());
    }
    let _held = world.cloud.sqs().receive("Dead", 1, std::time::Duration::ZERO).await.unwrap();
    for _ in 0..2 {
        let (_, listed) = world.json(&["dead", "list"]).await;
        let letters = listed["queues"][0]["letters"].as_array().unwrap();
        let receives: Vec<_> = letters.iter().map(|letter| letter["receives"].as_u64().unwrap()).collect();
        assert_eq!(receives, [1, 0, 0], "{listed}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_are_shown() {
    let world = World::start().await;
    let (code, _, err) = world.claimant(&["effects"]).await;
    assert!(code == 2 && err.contains("answered 404"), "{err}");
    claimant_local::workload::show_effects(&world.cloud);
    let (code, effects) = world.json(&["effects"]).await;
    let names: Vec<_> = effects["kinds"].as_array().unwrap().iter().map(|kind| kind["name"].clone()).collect();
    assert_eq!((code, names), (0, vec![json!("mails"), json!("charges")]), "{effects}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_switched_on_listed_and_ended() {
    let world = World::start().await;
    let (code, out, _) = world.claimant(&["fault", "list"]).await;
    assert_eq!((code, out.as_str()), (0, "No fault acts, and none has.\n"));
    let (code, fault) = world.json(&["fault", "refuse", "mail", "--times", "2"]).await;
    assert_eq!((code, &fault["faults"][0]["does"]), (0, &json!("refuses mails")));
    let (code, out, _) = world.claimant(&["fault", "kill", "Confirm", "--when", "batch"]).await;
    assert!(code == 0 && out.contains("has taken a batch  waits to act once more"), "{out}");
    let (_, out, _) = world.claimant(&["fault", "throttle", "--for", "1h"]).await;
    assert!(out.contains("throttles requests to the table  acts until "), "{out}");
    for (args, wanted) in [
        (&["fault", "cut", "mail"][..], "[possible values: table, claims, settlements, reads]"),
        (&["fault", "refuse"], "required arguments were not provided"),
        (&["fault", "kill", "Other"], "there is no function Other here"),
        (&["fault", "freeze", "Confirm", "--process", "1"], "has no such process now: it has none"),
        (&["fault", "end", "9"], "there is no fault 9"),
        (&["demo"], "needs a local cloud with the sample functions"),
    ] {
        let (code, _, err) = world.claimant(args).await;
        assert!(code == 2 && err.contains(wanted), "{args:?}: {err}");
    }
    let (code, ended) = world.json(&["fault", "end", "1"]).await;
    assert!(code == 0 && ended["faults"][0]["ended_ms"].is_number(), "{ended}");
    // One that is not there keeps no other from its end.
    let (code, out, err) = world.claimant(&["fault", "end", "9", "2", "--json"]).await;
    let ended: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((code, &ended["faults"][0]["id"], &ended["faults"][1]), (1, &json!(2), &Value::Null), "{ended}");
    assert!(err.contains("error: ") && err.contains("there is no fault 9"), "{err}");
    assert_eq!(world.json(&["fault", "end", "--all"]).await.1["faults"].as_array().unwrap().len(), 1);
    let (code, out, _) = world.claimant(&["fault", "end", "--all"]).await;
    assert_eq!((code, out.as_str()), (0, "No fault acted any more. What any of them froze goes on.\n"));
    let active = world.cloud.faults().all().into_iter().filter(|fault| !fault.is_over()).count();
    assert_eq!((active, world.cloud.faults().all().len()), (0, 3));
    world.cloud.stop().await;
}
