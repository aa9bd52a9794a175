//! How acts on dead letters end that are not done whole: in one queue of several, at an id, by Ctrl-C, at what SQS shows.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claimant_local::sqs::NewMessage;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::aws::{CLOSE, Server};
use crate::console::shop::{REJECTED, shop};
use crate::dead::World;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue with a dead-letter queue of its own, and a function that copies what it gives up on to a third.
const MORE: &str = "
  Lost: {Type: AWS::SQS::Queue}
  Given: {Type: AWS::SQS::Queue}
  Parcels:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Lost.Arn, maxReceiveCount: 5}}
  Pack:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: pack}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Environment: {Variables: {CLAIMANT_DEAD_LETTER_QUEUE_URL: !Ref Given}}
      Events: {Parcels: {Type: SQS, Properties: {Queue: !GetAtt Parcels.Arn}}}
";

fn depth(world: &World, queue: &str) -> usize {
    world.cloud.sqs().depth(queue).unwrap().visible
}

/// The names of the queues that were listed.
fn queues(listed: &Value) -> Vec<Value> {
    listed["queues"].as_array().unwrap().iter().map(|queue| queue["queue"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_that_a_function_copies_to_is_one_of_dead_letters() {
    let world = World::of(MORE).await;
    world.cloud.sqs().send("Given", NewMessage::new("x")).unwrap();
    let (code, listed) = world.json(&["dead", "list"]).await;
    assert_eq!((code, queues(&listed)), (1, vec![json!("Dead"), json!("Given"), json!("Lost")]), "{listed}");
    let (_, listed) = world.json(&["dead", "list", "--queue", "Parcels"]).await;
    assert_eq!(queues(&listed), [json!("Given"), json!("Lost")], "{listed}");
    let (code, shown) = world.json(&["send", "--body", "y", "--dry-run", "Parcels"]).await;
    assert_eq!((code, &shown["queue"]), (0, &json!("Parcels")), "{shown}");
    world.cloud.stop().await;
}

/// A dead-letter queue that has one.
const CHAIN: &str = "
  Last: {Type: AWS::SQS::Queue}
  Lost:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Last.Arn, maxReceiveCount: 5}}
  Parcels:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Lost.Arn, maxReceiveCount: 5}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_queue_that_has_one_is_itself_meant() {
    let world = World::of(CHAIN).await;
    for (named, meant) in [("Parcels", "Lost"), ("Lost", "Lost"), ("Last", "Last")] {
        let (_, listed) = world.json(&["dead", "list", "--queue", named]).await;
        assert_eq!(queues(&listed), [json!(meant)], "{named}: {listed}");
    }
    world.cloud.stop().await;
}

/// SQS does not know of the queues whose functions copy there.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_function_copied_goes_back_to_its_queue_where_that_is_the_only_one() {
    let world = World::of(MORE).await;
    world.claimant(&["pause", "Pack", "--yes"]).await;
    for queue in [&[][..], &["--queue", "Given"], &["--queue", "Parcels"]] {
        world.letter_in("Given", ("no price", "rejected"), "{}");
        let (code, done) = world.json(&[&["dead", "redrive", "--all", "--yes"], queue].concat()).await;
        let queues = done["queues"].as_array().unwrap();
        let given = queues.iter().find(|one| one["queue"] == "Given").unwrap();
        assert_eq!((code, &given["done"][0]["to"]), (0, &json!("Parcels")), "{queue:?}: {done}");
    }
    assert_eq!((depth(&world, "Given"), depth(&world, "Parcels")), (0, 3));
    world.cloud.stop().await;

    // It copies to the dead-letter queue of another queue.
    let world = World::of(&MORE.replace("!Ref Given", "!Ref Dead")).await;
    world.letter("no price", "rejected", "{}");
    for queue in [&[][..], &["--queue", "Dead"]] {
        let (code, done) = world.json(&[&["dead", "redrive", "--all", "--yes"], queue].concat()).await;
        let why = done["queues"][0]["problems"][0]["why"].as_str().unwrap_or_else(|| panic!("{done}"));
        assert!(code == 1 && why.contains("it may belong to any of Orders, Parcels"), "{done}");
    }
    assert_eq!((depth(&world, "Dead"), depth(&world, "Orders")), (1, 0));
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_fails_keeps_no_other_from_its_act() {
    let world = World::of(MORE).await;
    for queue in ["Dead", "Lost"] {
        world.cloud.sqs().send(queue, NewMessage::new("x")).unwrap();
    }
    // None of them can be sent to what is not there: nothing is done.
    let (code, _, err) = world.claimant(&["dead", "redrive", "--all", "--yes", "--to", "Nowhere"]).await;
    assert!(
        code == 2 && ["Dead", "Given", "Lost"].iter().all(|name| err.contains(&format!("error: {name}: "))),
        "{err}"
    );
    let (code, done) = world.json(&["dead", "redrive", "--all", "--yes", "--to", "Dead"]).await;
    let [dead, given, lost] = done["queues"].as_array().unwrap().as_slice() else { panic!("{done}") };
    assert!(dead["failed"].as_str().unwrap().contains("cannot be its own destination"), "{done}");
    assert_eq!((code, &given["failed"], &lost["done"][0]["to"]), (1, &json!(null), &json!("Dead")), "{done}");
    assert_eq!((depth(&world, "Dead"), depth(&world, "Lost")), (2, 0));
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_letter_has_is_told() {
    let world = World::of(MORE).await;
    for _ in 0..2 {
        world.letter("no price", "rejected", "{}");
    }
    let id = || world.cloud.sqs().messages("Dead").unwrap()[0].message_id.clone();
    let (code, done) = world.json(&["dead", "redrive", &id(), "none", "--yes"]).await;
    assert_eq!((code, &done["missing"]), (1, &json!(["none"])), "{done}");
    let (code, out, _) = world.claimant(&["dead", "discard", &id(), "none", "--yes"]).await;
    assert!(code == 1 && out.contains("none: no dead letter that was read has this id"), "{out}");
    assert_eq!(depth(&world, "Dead"), 0);
    // Once it is met, no other queue is looked through.
    world.letter("no price", "rejected", "{}");
    let (code, done) = world.json(&["dead", "redrive", &id(), "--yes"]).await;
    assert_eq!((code, done["queues"].as_array().unwrap().len()), (0, 1), "{done}");
    world.cloud.stop().await;
}

/// SIGTERM is what `timeout` and CI systems send.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_sigterm_are_no_success() {
    for signal in ["INT", "TERM"] {
        let world = World::of(MORE).await;
        for n in 0..50 {
            world.letter("no price", "rejected", &n.to_string());
        }
        world.claimant(&["pause", "Confirm", "--yes"]).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(["dead", "redrive", "--all", "--yes", "--rate", "1", "--limit", "40"]).kill_on_drop(true);
        command.arg(format!("--local={}", world.cloud.endpoints().control)).stdout(Stdio::piped());
        let process = command.spawn().unwrap();
        let sent = async {
            while depth(&world, "Orders") == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, sent).await.unwrap();
        let id = process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().await.unwrap().success());
        let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}: {shown}");
        assert!(shown.contains("There may be more") && shown.contains("Ended before Given, Lost."), "{shown}");
        assert_eq!(depth(&world, "Orders") + depth(&world, "Dead"), 50, "{signal}");
        world.cloud.stop().await;
    }
}

/// Answers for a queue that never ends.
fn endless(request: &str) -> (u16, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return shows_one_again_and_again(request);
    }
    std::thread::sleep(Duration::from_millis(20));
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    let letter = json!({"MessageId": format!("m-{next}"), "ReceiptHandle": "r", "Body": "x", "Attributes": {}});
    (200, json!({ "Messages": [letter] }).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn to_look_for_a_letter_is_ended_by_ctrl_c() {
    let aws = Server::start(endless);
    let show = ["dead", "show", "none", "--queue", &format!("{}/1/dead", aws.url)];
    let (code, shown, _) = aws.interrupted(&show, "AmazonSQS.ReceiveMessage").await;
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("not among the dead letters that were read; there are others"), "{shown}");
}

/// Answers for a table with a record, and for a dead-letter queue that never ends and moves its letters on.
fn endless_beside_a_table(request: &str) -> (u16, String) {
    if request.contains("DynamoDB_20120810.") {
        return shop(request);
    }
    if request.contains("AmazonSQS.GetQueueAttributes") {
        let last = "arn:aws:sqs:eu-west-1:1:last";
        let policy = json!({"deadLetterTargetArn": last, "maxReceiveCount": 3}).to_string();
        return (200, json!({"Attributes": {"RedrivePolicy": policy}}).to_string());
    }
    if request.contains("AmazonSQS.ChangeMessageVisibilityBatch") {
        return confirmed(request);
    }
    endless(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_explained_before_its_dead_letters_are_looked_for() {
    let aws = Server::start(endless_beside_a_table);
    let queue = format!("{}/1/dead", aws.url);
    let inspect = ["inspect", "order#o-9", "--table", "locks", "--queue", &queue];
    let (code, shown, err) = aws.interrupted(&inspect, "AmazonSQS.ReceiveMessage").await;
    assert_eq!(code, Some(130), "{shown}{err}");
    assert!(shown.starts_with("order#o-9  (locks, rejected)\n") && shown.contains("If a message came now:"), "{shown}");
    assert!(shown.ends_with("No dead letter of it was found, but not all were looked at.\n"), "{shown}");
    assert!(err.contains("dead: careful: SQS moves its messages on after 3 receives"), "{err}");
    // What it held is shown to others again.
    let requests = aws.requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.contains("AmazonSQS.ChangeMessageVisibilityBatch")));
}

/// Answers for a queue that never ends, and for one that may not be read.
fn one_not_read(request: &str) -> (u16, String) {
    let is_refused = request.contains("AmazonSQS.ReceiveMessage") && request.contains("/1/b-dead");
    if is_refused { (403, NOT_YOU.to_owned()) } else { endless_tens(request) }
}

/// Answers for an empty queue, and for one that cannot be opened.
fn one_not_opened(request: &str) -> (u16, String) {
    let is_refused = request.contains("AmazonSQS.ListDeadLetterSourceQueues") && request.contains("/1/b-dead");
    let answer = if is_refused { NOT_YOU } else { "{}" };
    if is_refused || request.contains("AmazonSQS.ReceiveMessage") {
        return (if is_refused { 403 } else { 200 }, answer.to_owned());
    }
    endless_beside_a_table(request)
}

/// To read it has hidden the letters, and grown their receive counts.
#[test]
fn what_was_read_of_dead_letters_is_shown_where_another_queue_cannot_be_read() {
    let (not_read, not_opened) = (Server::start(one_not_read), Server::start(one_not_opened));
    for (aws, act, shows) in [
        (&not_read, &["group", "--limit", "10"][..], "groups"),
        (&not_read, &["list", "--limit", "10"], "letters"),
        (&not_opened, &["list"], "letters"),
        (&not_opened, &["discard", "--all", "--yes"], "done"),
    ] {
        let queues = ["a-dead", "b-dead", "c-dead"].map(|name| format!("{}/1/{name}", aws.url));
        let queues: Vec<_> = queues.iter().flat_map(|url| ["--queue", url]).collect();
        let (code, out, err) = aws.claimant(&[&["dead"], act, &["--json"], &queues].concat());
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        let all = shown["queues"].as_array().unwrap();
        assert_eq!((code, &shown["not_reached"]), (Some(2), &json!([])), "{shown}{err}");
        assert!(err.contains("error: b-dead: ") && err.contains("not you"), "{shown}{err}");
        // Who takes the letters from it does not look at each field.
        let is_said = act.contains(&"--limit");
        assert_eq!(err.contains("a-dead: 10 dead letters, and perhaps more"), is_said, "{err}");
        let seen: Vec<_> = all
            .iter()
            .map(|one| (one[shows].is_array(), one["failed"].is_string(), one["queue"].is_string()))
            .collect();
        assert_eq!(seen, [(true, false, true), (true, true, true), (true, false, true)], "{shown}");
    }
}

/// Answers for a queue that never ends, ten letters at a time.
fn endless_tens(request: &str) -> (u16, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return endless_beside_a_table(request);
    }
    let letter = |_| {
        let id = format!("m-{}", NEXT.fetch_add(1, Ordering::SeqCst));
        json!({"MessageId": id, "ReceiptHandle": "r", "Body": "x", "Attributes": {"MessageGroupId": id}})
    };
    (200, json!({ "Messages": (0..10).map(letter).collect::<Vec<_>>() }).to_string())
}

const NOT_YOU: &str = r#"{"__type": "AccessDeniedException", "message": "not you"}"#;

/// Answers for a queue that never ends, to whose source nothing may be sent.
fn never_sent(request: &str) -> (u16, String) {
    if request.contains("AmazonSQS.SendMessageBatch") { (403, NOT_YOU.to_owned()) } else { endless_tens(request) }
}

/// Answers for a queue that never ends, of which nothing may be deleted.
fn never_deleted(request: &str) -> (u16, String) {
    let sent = |n: usize| json!({"Id": n.to_string(), "MessageId": format!("new-{n}"), "MD5OfMessageBody": "x"});
    if request.contains("AmazonSQS.SendMessageBatch") {
        return (200, json!({"Successful": (0..80).map(sent).collect::<Vec<_>>(), "Failed": []}).to_string());
    }
    if request.contains("AmazonSQS.DeleteMessageBatch") { (403, NOT_YOU.to_owned()) } else { endless_tens(request) }
}

/// Else each letter is hidden, and its receives counted, to be refused the same; or is sent again, and stays.
#[test]
fn what_is_refused_of_every_letter_ends_the_act() {
    for (answer, act, sent, deleted) in [
        (never_sent as fn(&str) -> (u16, String), "redrive", 3, 0),
        (never_deleted, "redrive", 1, 1),
        (never_deleted, "discard", 0, 1),
    ] {
        let aws = Server::start(answer);
        let (code, out, err) =
            aws.claimant(&["dead", act, "--all", "--yes", "--json", "--queue", &format!("{}/1/dead", aws.url)]);
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        let queue = &shown["queues"][0];
        assert!(queue["failed"].as_str().is_some_and(|why| why.contains("not you")), "{shown}");
        assert_eq!((code, &queue["problem_count"]), (Some(1), &json!(10 * sent.max(deleted))), "{shown}");
        let requests = aws.requests.lock().unwrap();
        let count = |operation: &str| requests.iter().filter(|request| request.contains(operation)).count();
        assert_eq!((count("AmazonSQS.SendMessageBatch"), count("AmazonSQS.DeleteMessageBatch")), (sent, deleted));
    }
}

/// They are there and here, which is not that none could go.
#[test]
fn what_was_sent_and_is_not_deleted_is_told() {
    let aws = Server::start(never_deleted);
    let redrive = ["dead", "redrive", "--all", "--yes", "--queue", &format!("{}/1/dead", aws.url)];
    let (code, out, err) = aws.claimant(&redrive);
    let first = "dead: 0 dead letters sent back. 10 were sent, and may be in both queues: ";
    assert!(code == Some(1) && out.starts_with(first), "{out}{err}");
    assert!(!out.contains("none could go") && !out.contains("stayed"), "{out}");
}

/// Answers for a queue that never ends, whose letters may be received, and not be shown again.
fn never_shown_again(request: &str) -> (u16, String) {
    let is_refused = request.contains("AmazonSQS.ChangeMessageVisibilityBatch");
    if is_refused { (403, NOT_YOU.to_owned()) } else { endless_tens(request) }
}

/// Answers for such a queue by successes that name no letter, as what is not SQS does.
fn shown_by_word_alone(request: &str) -> (u16, String) {
    let is_empty = request.contains("AmazonSQS.ChangeMessageVisibilityBatch");
    if is_empty { (200, "{}".to_owned()) } else { endless_tens(request) }
}

/// Else the next command finds nothing, and a person looks for another reader.
#[test]
fn what_stays_hidden_since_it_was_read_is_told() {
    let answers: [(fn(&str) -> _, _); 3] =
        [(never_shown_again, true), (shown_by_word_alone, true), (endless_tens, false)];
    for (answer, is_told) in answers {
        let aws = Server::start(answer);
        let queue = format!("{}/1/dead", aws.url);
        for (act, count) in [
            (&["dead", "list", "--limit", "10"][..], "10"),
            (&["dead", "list", "--limit", "10", "--json"], "10"),
            (&["dead", "redrive", "--all", "--limit", "10", "--dry-run"], "10"),
            (&["inspect", "order#o-9", "--table", "locks"], "2000"),
        ] {
            let (_, out, err) = aws.claimant(&[act, &["--queue", &queue]].concat());
            let said = format!(
                "dead: {count} letters that were read stay hidden for two minutes, also from the next look: SQS did not take the \
                 request to show what was read again. Do these credentials have sqs:ChangeMessageVisibility?"
            );
            assert_eq!(err.contains(&said), is_told, "{act:?}: {out}{err}");
        }
    }
}

/// Emulators go by the account and the name: one would discard the letters of a queue that is another one's.
#[test]
fn a_queue_of_another_server_is_not_asked_for_where_it_is_not() {
    let [asked, named] = [(); 2].map(|()| Server::start(endless_tens));
    let at = |server: &Server| server.url.trim_start_matches("http://").to_owned();
    let queue = |server: &Server, name: &str| format!("{}/1/{name}", server.url);
    let (other, dead, moved_on) = (queue(&named, "dead"), queue(&asked, "dead"), queue(&named, "orders"));
    for args in [
        &["dead", "discard", "--all", "--yes", "--queue", &other][..],
        &["dead", "list", "--queue", &other],
        &["send", "--queue", &other, "--body", "secret", "--yes"],
        &["dead", "redrive", "--all", "--yes", "--queue", &dead, "--to", &moved_on],
    ] {
        let (code, out, err) = asked.claimant(args);
        let both = err.contains(&at(&asked)) && err.contains(&at(&named));
        assert!(code == Some(2) && both && !err.contains("secret"), "{args:?}: {out}{err}");
    }
    let of_letters = |request: &String| request.contains("ReceiveMessage") || request.contains("SendMessage");
    let requests = [&asked, &named].map(|server| server.requests.lock().unwrap().clone());
    assert!(requests[1].is_empty() && !requests[0].iter().any(of_letters), "{requests:?}");
}

#[test]
fn where_no_answer_came_from_is_told() {
    let aws = Server::start(|_| CLOSE);
    let (code, out, err) = aws.claimant(&["dead", "list", "--queue", &format!("{}/1/dead", aws.url)]);
    let said = format!("a request to {} failed", aws.url.trim_start_matches("http://"));
    assert!(code == Some(2) && err.contains("no answer came") && err.contains(&said), "{out}{err}");
}

/// Answers as a proxy does.
fn a_proxy(_: &str) -> (u16, String) {
    (403, "<html>s3cret</html>".to_owned())
}

#[test]
fn what_answers_in_the_place_of_aws_is_told() {
    let aws = Server::start(a_proxy);
    for (args, service) in [
        (&["dead", "list", "--queue", &format!("{}/1/dead", aws.url)][..], "SQS"),
        (&["inspect", "order#o-9", "--table", "locks"], "DynamoDB"),
    ] {
        let (code, out, err) = aws.claimant(args);
        let said = format!("what answered is not {service}: status 403, without an error code");
        assert!(code == Some(2) && err.contains(&said), "{out}{err}");
        assert!(!err.contains("s3cret") && !err.contains('<') && !err.contains("no answer came"), "{err}");
    }
}

/// Confirms each message of a request.
fn confirmed(request: &str) -> (u16, String) {
    let ids = (0..80).filter(|n| request.contains(&format!("\"Id\":\"{n}\"")));
    let one = |n: usize| json!({"Id": n.to_string(), "MessageId": format!("new-{n}"), "MD5OfMessageBody": "x"});
    (200, json!({"Successful": ids.map(one).collect::<Vec<_>>(), "Failed": []}).to_string())
}

/// Answers for a queue of 160 letters that SQS moved, 80 from a queue that takes none back, and then 80 from one that does.
fn taken_back_by_one(request: &str) -> (u16, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if request.contains("AmazonSQS.ReceiveMessage") {
        let letter = |n: usize| {
            let source = ["orders", "payments"][n / 80];
            let source = json!({"DeadLetterQueueSourceArn": format!("arn:aws:sqs:eu-west-1:1:{source}")});
            json!({"MessageId": format!("m-{n}"), "ReceiptHandle": "r", "Body": "x", "Attributes": source})
        };
        let first = NEXT.fetch_add(10, Ordering::SeqCst);
        let letters: Vec<_> = (first..first + 10).filter(|n| *n < 160).map(letter).collect();
        return (200, json!({ "Messages": letters }).to_string());
    }
    if request.contains("AmazonSQS.ListDeadLetterSourceQueues") {
        let urls = ["orders", "payments"].map(|name| format!("https://sqs.eu-west-1.amazonaws.com/1/{name}"));
        return (200, json!({ "queueUrls": urls }).to_string());
    }
    match request.contains("AmazonSQS.SendMessageBatch") && request.contains("/1/orders") {
        true => (403, NOT_YOU.to_owned()),
        false if request.contains("MessageBatch") => confirmed(request),
        false => (200, "{}".to_owned()),
    }
}

#[test]
fn what_is_refused_of_one_queue_keeps_no_letter_from_another() {
    let aws = Server::start(taken_back_by_one);
    let queue = format!("{}/1/dead", aws.url);
    let (code, out, err) = aws.claimant(&["dead", "redrive", "--all", "--yes", "--json", "--queue", &queue]);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let queue = &shown["queues"][0];
    let done = queue["done"].as_array().unwrap();
    assert!(done.len() == 80 && done.iter().all(|done| done["to"] == "payments"), "{shown}");
    assert_eq!((code, &queue["problem_count"], &queue["failed"]), (Some(1), &json!(80), &Value::Null), "{shown}");
    let requests = aws.requests.lock().unwrap();
    let refused = requests.iter().filter(|one| one.contains("SendMessageBatch") && one.contains("/1/orders")).count();
    assert_eq!(refused, 3);
}

/// Answers for a queue of one letter, whose copy is taken once without an answer, and refused when it is sent again.
fn lost_and_then_refused(request: &str) -> (u16, String) {
    static SHOWN: AtomicUsize = AtomicUsize::new(0);
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let answer = if request.contains("AmazonSQS.ReceiveMessage") && SHOWN.fetch_add(1, Ordering::SeqCst) == 0 {
        let group = json!({"MessageGroupId": "ada"});
        json!({"Messages": [{"MessageId": "m-1", "ReceiptHandle": "r", "Body": "x", "Attributes": group}]})
    } else if request.contains("AmazonSQS.SendMessageBatch") {
        if SENT.fetch_add(1, Ordering::SeqCst) == 0 {
            return CLOSE;
        }
        json!({"Successful": [], "Failed": [{"Id": "0", "SenderFault": true, "Code": "KmsThrottled", "Message": "no"}]})
    } else {
        json!({})
    };
    (200, answer.to_string())
}

#[test]
fn a_copy_that_may_have_arrived_is_not_said_to_be_refused() {
    let aws = Server::start(lost_and_then_refused);
    let [dead, to] = ["dead.fifo", "orders.fifo"].map(|name| format!("{}/1/{name}", aws.url));
    let redrive = ["dead", "redrive", "m-1", "--yes", "--json", "--to", &to, "--queue", &dead];
    let (code, out, err) = aws.claimant(&redrive);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let problem = &shown["queues"][0]["problems"][0];
    let why = problem["why"].as_str().unwrap_or_else(|| panic!("{shown}{err}"));
    assert_eq!((code, &problem["copied"]), (Some(1), &Value::Null), "{shown}");
    assert!(why.starts_with("it is not known whether orders.fifo took it: ") && why.contains("KmsThrottled"), "{why}");
}

/// Answers for a FIFO queue that never ends, each of whose letters has a group of its own. Nothing may be sent back, and one answer is lost.
fn never_sent_and_once_lost(request: &str) -> (u16, String) {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    if request.contains("AmazonSQS.SendMessageBatch") {
        return if SENT.fetch_add(1, Ordering::SeqCst) == 2 { CLOSE } else { (403, NOT_YOU.to_owned()) };
    }
    endless_tens(request)
}

/// A reason is that of every letter of which nothing is tried any more: not that of one request.
#[test]
fn what_is_not_known_of_one_request_is_not_said_of_letters_that_are_not_sent() {
    let aws = Server::start(never_sent_and_once_lost);
    let [dead, to] = ["dead.fifo", "orders.fifo"].map(|name| format!("{}/1/{name}", aws.url));
    let redrive = ["dead", "redrive", "--all", "--yes", "--json", "--to", &to, "--queue", &dead];
    let (code, out, err) = aws.claimant(&redrive);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    let queue = &shown["queues"][0];
    let why = queue["failed"].as_str().unwrap_or_else(|| panic!("{shown}{err}"));
    assert_eq!((code, &queue["problem_count"]), (Some(1), &json!(40)), "{shown}");
    assert!(why.starts_with("orders.fifo did not take it: ") && why.contains("not you"), "{why}");
}

/// Answers for two queues, of which each has the letter that is named, and another one; slowly from the first receive on.
fn slow(request: &str) -> (u16, String) {
    let is_batch = request.contains("MessageBatch") || request.contains("AmazonSQS.ChangeMessageVisibilityBatch");
    if is_batch || request.contains("AmazonSQS.ReceiveMessage") {
        std::thread::sleep(Duration::from_millis(300));
    }
    if is_batch {
        return confirmed(request);
    }
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return endless_beside_a_table(request);
    }
    let letter = |n: usize| json!({"MessageId": format!("m-{n}"), "ReceiptHandle": "r", "Body": "x", "Attributes": {}});
    (200, json!({ "Messages": [letter(1), letter(2)] }).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_after_all_that_was_asked_for_is_done_ends_nothing() {
    for (act, once, all) in [
        (&["discard", "m-1", "--yes"][..], "AmazonSQS.ChangeMessageVisibilityBatch", ("not_reached", json!([]))),
        (&["discard", "m-1", "--yes"], "AmazonSQS.DeleteMessageBatch", ("not_reached", json!([]))),
        (&["redrive", "m-1", "--yes"], "AmazonSQS.SendMessageBatch", ("not_reached", json!([]))),
        (&["redrive", "--all", "--limit", "1", "--yes"], "AmazonSQS.SendMessageBatch", ("not_reached", json!([]))),
        (&["show", "m-1"], "AmazonSQS.ReceiveMessage", ("complete", json!(true))),
    ] {
        let aws = Server::start(slow);
        let [a, b] = ["a-dead", "b-dead"].map(|name| format!("{}/1/{name}", aws.url));
        let act = [&["dead"], act, &["--json", "--queue", &a, "--queue", &b]].concat();
        let (code, out, err) = aws.interrupted(&act, once).await;
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!((code, &shown[all.0]), (Some(0), &all.1), "{act:?}: {shown}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_that_ctrl_c_came_before_are_named() {
    let aws = Server::start(endless);
    let urls: Vec<_> = (1..10).map(|n| format!("{}/1/dead-{n}", aws.url)).collect();
    let queues: Vec<_> = urls.iter().flat_map(|url| ["--queue", url]).collect();
    let (code, out, err) =
        aws.interrupted(&[&["dead", "list", "--json"], &queues[..]].concat(), "AmazonSQS.ReceiveMessage").await;
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    // Eight are read side by side.
    assert_eq!((code, &shown["not_reached"]), (Some(130), &json!(["dead-9"])), "{shown}{err}");
}

/// How many queues are read side by side, and how many of them the test below has seen begun.
const SIDE_BY_SIDE: usize = 8;
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Answers for empty queues, each first once as many have begun as are read side by side; or, after a while, all the same.
fn empty_once_all_have_begun(request: &str) -> (u16, String) {
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return endless_beside_a_table(request);
    }
    if request.contains("\"WaitTimeSeconds\":0") {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        let until = Instant::now() + Duration::from_secs(20);
        while BEGUN.load(Ordering::SeqCst) < SIDE_BY_SIDE && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    (200, "{}".to_owned())
}

/// The end of each queue is waited for: for a second on AWS.
#[test]
fn several_queues_are_read_side_by_side() {
    let aws = Server::start(empty_once_all_have_begun);
    let urls: Vec<_> = (1..10).map(|n| format!("{}/1/dead-{n}.fifo", aws.url)).collect();
    let queues: Vec<_> = urls.iter().flat_map(|url| ["--queue", url]).collect();
    for look in ["group", "list"] {
        aws.requests.lock().unwrap().clear();
        BEGUN.store(0, Ordering::SeqCst);
        let (code, out, err) = aws.claimant(&[&["dead", look], &queues[..]].concat());
        assert_eq!(code, Some(0), "{out}{err}");
        let names: Vec<_> = out.lines().filter_map(|line| line.split_once(".fifo: ")).map(|(name, _)| name).collect();
        assert_eq!(names, (1..10).map(|n| format!("dead-{n}")).collect::<Vec<_>>(), "{out}");
        let requests = aws.requests.lock().unwrap();
        let receives = requests.iter().filter(|request| request.contains("AmazonSQS.ReceiveMessage"));
        let first: Vec<_> = receives.take_while(|request| request.contains("\"WaitTimeSeconds\":0")).collect();
        assert_eq!(first.len(), SIDE_BY_SIDE, "{look}: {first:#?}");
    }
}

#[test]
fn to_explain_a_key_is_not_to_receive_every_dead_letter() {
    let aws = Server::start(endless_tens);
    let queue = format!("{}/1/dead", aws.url);
    let inspect = ["inspect", "order#o-9", "--table", "locks", "--queue", &queue, "--json"];
    let (code, out, err) = aws.claimant(&inspect);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((code, &shown["dead_letters_complete"]), (Some(1), &json!(false)), "{shown}");
    let receives =
        aws.requests.lock().unwrap().iter().filter(|request| request.contains("AmazonSQS.ReceiveMessage")).count();
    assert_eq!(receives, 200);
    assert!(
        err.contains(&format!("not every dead letter was looked at; claimant dead show {REJECTED} looks at more")),
        "{err}"
    );
    // Letters name either, and so does that.
    assert!(err.contains(" and claimant dead list --record order#o-9 at more of those"), "{err}");
}

/// Answers for a queue whose one letter somebody else reads.
fn hidden_by_another(request: &str) -> (u16, String) {
    if request.contains("AmazonSQS.GetQueueAttributes") {
        return (200, json!({"Attributes": {"ApproximateNumberOfMessagesNotVisible": "1"}}).to_string());
    }
    if request.contains("AmazonSQS.ReceiveMessage") { (200, "{}".to_owned()) } else { endless_beside_a_table(request) }
}

/// Answers for a queue of one letter, whose counts lag: it is counted as hidden once it is deleted, too.
fn lagging(request: &str) -> (u16, String) {
    static SHOWN: AtomicUsize = AtomicUsize::new(0);
    let is_shown = || SHOWN.load(Ordering::SeqCst) > 0;
    let answer = if request.contains("AmazonSQS.GetQueueAttributes") {
        let count = if is_shown() { "ApproximateNumberOfMessagesNotVisible" } else { "ApproximateNumberOfMessages" };
        json!({"Attributes": {count: "1"}})
    } else if request.contains("AmazonSQS.ReceiveMessage") && SHOWN.fetch_add(1, Ordering::SeqCst) == 0 {
        json!({"Messages": [{"MessageId": "m-1", "ReceiptHandle": "r", "Body": "x", "Attributes": {}}]})
    } else if request.contains("AmazonSQS.DeleteMessageBatch") {
        json!({"Successful": [{"Id": "0"}], "Failed": []})
    } else {
        json!({})
    };
    (200, answer.to_string())
}

/// A command that was alone ends well.
#[test]
fn what_a_command_has_read_itself_is_not_hidden_by_another() {
    let aws = Server::start(lagging);
    let queue = format!("{}/1/dead", aws.url);
    let (code, shown, err) = aws.claimant(&["dead", "discard", "--all", "--yes", "--queue", &queue]);
    assert_eq!((code, shown.as_str()), (Some(0), "dead: 1 dead letter discarded.\n"), "{err}");
}

/// Answers for an empty queue, after half a second.
fn empty_at_leisure(request: &str) -> (u16, String) {
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return endless_beside_a_table(request);
    }
    std::thread::sleep(Duration::from_millis(500));
    (200, "{}".to_owned())
}

#[test]
fn what_another_reader_hides_is_found_by_no_command() {
    let aws = Server::start(hidden_by_another);
    let queue = format!("{}/1/dead", aws.url);
    let (code, shown, err) = aws.claimant(&["inspect", "order#o-9", "--table", "locks", "--queue", &queue]);
    assert!(code == Some(1) && shown.ends_with("but not all were looked at.\n"), "{shown}{err}");
    assert!(err.contains("not every dead letter was looked at.") && !err.contains("claimant dead"), "{err}");
    // Nor is it said that there is none; not by a look before an act either, nor of a FIFO queue.
    let fifo = format!("{queue}.fifo");
    for (args, ends, says) in [
        (&["list"][..], 2, "dead: 0 dead letters, and perhaps more; 1 letter is hidden now: something else reads it"),
        (&["group"], 2, "dead: 0 dead letters, and perhaps more; 1 letter is hidden now"),
        (&["show", "m-1"], 1, "m-1: not among the dead letters that were read; there are others"),
        (&["show", "m-1", "--json"], 1, "\"complete\":false"),
        (&["redrive", "--all", "--yes"], 1, "or a reader died within minutes.\nNo dead letter fits, or none could go."),
        (&["discard", "m-1", "--yes", "--json"], 1, "\"more\":true"),
        (&["redrive", "--all", "--queue", &fifo], 1, "There may be more: SQS shows ten of a message group at a time"),
        (&["redrive", "--all", "--queue", &fifo], 1, "1 letter is hidden now"),
        (&["discard", "--all", "--dry-run", "--json", "--queue", &fifo], 1, "\"hidden\":1"),
    ] {
        let queue = if args.contains(&"--queue") { &[][..] } else { &["--queue", &queue] };
        let (code, shown, err) = aws.claimant(&[&["dead"], args, queue].concat());
        assert_eq!(code, Some(ends), "{args:?}: {shown}{err}");
        assert!(shown.contains(says) || shown.replace(": ", ":").contains(says), "{args:?}: {shown}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_the_end_of_a_look_cuts_nothing_off() {
    let aws = Server::start(empty_at_leisure);
    let queue = format!("{}/1/dead", aws.url);
    let inspect = ["inspect", "order#o-9", "--table", "locks", "--queue", &queue, "--json"];
    let (code, out, err) = aws.interrupted(&inspect, "AmazonSQS.ReceiveMessage").await;
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((code, &shown["dead_letters_complete"]), (Some(1), &json!(true)), "{shown}{err}");
}

/// SQS hands out a sample: what was shown long ago comes again, and hides what was not.
fn shows_one_again_and_again(request: &str) -> (u16, String) {
    let answer = if request.contains("AmazonSQS.ReceiveMessage") {
        json!({"Messages": [{"MessageId": "m-1", "ReceiptHandle": "r", "Body": "x", "Attributes": {}}]})
    } else if request.contains("AmazonSQS.ListDeadLetterSourceQueues") {
        json!({"queueUrls": ["https://sqs.eu-west-1.amazonaws.com/1/orders"]})
    } else {
        json!({})
    };
    (200, answer.to_string())
}

#[test]
fn what_sqs_did_not_show_may_still_be_there() {
    let aws = Server::start(shows_one_again_and_again);
    let queue = format!("{}/1/dead", aws.url);
    for act in [&["list"][..], &["redrive", "--yes"], &["discard", "--yes"]] {
        let all = [&["dead"], act, &["--outcome", "rejected", "--queue", &queue, "--json"]].concat();
        let (_, out, _) = aws.claimant(&all);
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&shown["queues"][0]["more"], &shown["queues"][0]["looked_at"]),
            (&json!(true), &json!(1)),
            "{shown}"
        );
    }
}
