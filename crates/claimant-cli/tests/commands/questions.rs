//! What is asked on a terminal before dead letters are acted on, and what becomes of the answer.

use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use claimant_local::sqs::NewMessage;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::aws::Server;
use crate::console::shop::shop;
use crate::dead::World;
use crate::deployed::paused_by_gateway;
use crate::keys::{TABLE, with_a_second_table};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue with a dead-letter queue of its own, beside the others.
const MORE: &str = "
  Lost: {Type: AWS::SQS::Queue}
  Parcels:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Lost.Arn, maxReceiveCount: 5}}
";

/// A FIFO queue and its dead-letter queue, beside the others.
const FIFO: &str = "
  Gone: {Type: AWS::SQS::Queue, Properties: {QueueName: Gone.fifo, FifoQueue: true}}
  Points:
    Type: AWS::SQS::Queue
    Properties: {QueueName: Points.fifo, FifoQueue: true, RedrivePolicy: {deadLetterTargetArn: !GetAtt Gone.Arn, maxReceiveCount: 1}}
";

/// A command on a terminal.
struct Terminal {
    script: Child,
    shown: String,
}

impl Terminal {
    fn start(world: &World, args: &str) -> Self {
        Self::of(&format!("{} {args} --local={}", env!("CARGO_BIN_EXE_claimant"), world.cloud.endpoints().control))
    }

    /// Starts a command in the account that this server answers for.
    fn in_account(server: &Server, args: &str) -> Self {
        let variables: String = server.variables().iter().map(|(name, value)| format!("{name}={value} ")).collect();
        Self::of(&format!("{variables}{} {args}", env!("CARGO_BIN_EXE_claimant")))
    }

    /// Starts what a shell makes of a line.
    fn of(line: &str) -> Self {
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", line, "/dev/null"]).kill_on_drop(true);
        let script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux is there");
        Self { script, shown: String::new() }
    }

    /// Waits until it asks.
    async fn asks(&mut self) {
        self.asks_for(1).await;
    }

    /// Waits until it asks for the so-manieth time.
    async fn asks_for(&mut self, time: usize) {
        let mut some = [0; 1_024];
        while self.shown.matches("[y/N]").count() < time {
            let read = timeout(PATIENCE, self.script.stdout.as_mut().unwrap().read(&mut some)).await;
            let read = read.unwrap_or_else(|_| panic!("it does not ask: {}", self.shown)).unwrap();
            assert!(read > 0, "it ended: {}", self.shown);
            self.shown += &String::from_utf8_lossy(&some[..read]);
        }
    }

    /// Types this; returns the exit code and all that was shown, once the command has ended.
    async fn types(mut self, typed: &str) -> (Option<i32>, String) {
        let mut keys = self.script.stdin.take().unwrap();
        keys.write_all(typed.as_bytes()).await.unwrap();
        let output = timeout(PATIENCE, self.script.wait_with_output()).await;
        let Output { status, stdout, .. } =
            output.unwrap_or_else(|_| panic!("it does not end: {}", self.shown)).unwrap();
        drop(keys);
        (status.code(), self.shown + &String::from_utf8_lossy(&stdout))
    }

    /// Says yes to the first question, and Ctrl-C to the second; returns also the JSON that was shown then.
    async fn ends_at_the_second_question(mut self) -> (Option<i32>, String, Value) {
        self.asks().await;
        self.script.stdin.as_mut().unwrap().write_all(b"y\n").await.unwrap();
        self.asks_for(2).await;
        let (code, shown) = self.types("\u{3}").await;
        let document = serde_json::from_str(&shown[shown.find("\n{").unwrap()..]).unwrap();
        (code, shown, document)
    }
}

/// Answers the question with yes, as somebody does in a hurry.
async fn yes(world: &World, args: &str) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(world, args);
    terminal.asks().await;
    terminal.types("YES\n").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_question_was_answered_with_no_is_told() {
    let world = World::start().await;
    world.letter("no price", "rejected", "{}");
    let mut terminal = Terminal::start(&world, "dead redrive --all --json");
    terminal.asks().await;
    let (code, shown) = terminal.types("n\n").await;
    let document: Value = serde_json::from_str(&shown[shown.find("\n{").unwrap()..]).unwrap();
    let queue = &document["queues"][0];
    assert_eq!((code, &queue["queue"], &queue["declined"]), (Some(1), &json!("Dead"), &json!(true)), "{shown}");
    assert_eq!((&queue["done"], world.depths()), (&json!([]), (1, 0)), "{shown}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_stay_are_told_after_the_question_too() {
    let world = World::start().await;
    for body in ["{}", "no JSON", "{}"] {
        world.letter("no currency", "rejected", body);
    }
    let (code, shown) = yes(&world, "dead redrive --all --set currency=EUR").await;
    assert_eq!(world.depths(), (1, 2), "{shown}");
    assert!(shown.contains("Send back 2 dead letters of Dead to Orders, currency set to EUR in each?"), "{shown}");
    assert!(shown.contains("the body is not JSON") && shown.contains("1 stayed"), "{shown}");
    assert_eq!(code, Some(1), "{shown}");
    for _ in 0..2 {
        world.letter("no price", "rejected", "{}");
    }
    let (code, shown) = yes(&world, "dead discard --error price --limit 1").await;
    assert!(code == Some(0) && shown.contains("There may be more: the limit was reached."), "{shown}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_another_took_meanwhile_is_told() {
    let world = World::start().await;
    for n in 0..4 {
        world.letter("no price", "rejected", &n.to_string());
    }
    // One that was hidden all the time is none that was asked about.
    let hidden = world.cloud.sqs().receive("Dead", 1, Duration::ZERO).await.unwrap();
    let mut terminal = Terminal::start(&world, "dead redrive --all");
    terminal.asks().await;
    let taken = world.cloud.sqs().receive("Dead", 1, Duration::ZERO).await.unwrap();
    let (code, shown) = terminal.types("y\n").await;
    assert_eq!((hidden.len(), taken.len()), (1, 1));
    assert_eq!(world.cloud.sqs().depth("Orders").unwrap().visible, 2, "{shown}");
    assert!(shown.contains("Send back 3 dead letters") && shown.contains("was not seen again"), "{shown}");
    assert!(shown.contains("2 letters are hidden now: something else reads them"), "{shown}");
    assert_eq!(code, Some(1), "{shown}");
    world.cloud.stop().await;
}

/// Of a FIFO queue, too, and where others were hidden all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_of_a_group_that_another_took_meanwhile_is_told() {
    let world = World::of(FIFO).await;
    for n in 0..3 {
        let (group_id, deduplication_id) = (Some(format!("g{n}")), Some(n.to_string()));
        let letter = NewMessage { group_id, deduplication_id, ..NewMessage::new(n.to_string()) };
        world.cloud.sqs().send("Gone.fifo", letter).unwrap();
    }
    let hidden = world.cloud.sqs().receive("Gone.fifo", 1, Duration::ZERO).await.unwrap();
    let mut terminal = Terminal::start(&world, "dead discard --all --queue Points.fifo");
    terminal.asks().await;
    let taken = world.cloud.sqs().receive("Gone.fifo", 1, Duration::ZERO).await.unwrap();
    let (code, shown) = terminal.types("y\n").await;
    assert_eq!((hidden.len(), taken.len(), code), (1, 1, Some(1)), "{shown}");
    assert!(shown.contains("Discard 2 dead letters") && shown.contains("was not seen again"), "{shown}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_group_goes_whole() {
    let world = World::of(FIFO).await;
    let letter = |n: usize| NewMessage {
        group_id: Some("ada".to_owned()),
        deduplication_id: Some(n.to_string()),
        ..NewMessage::new(format!("{n:02}"))
    };
    (0..25).for_each(|n| drop(world.cloud.sqs().send("Gone.fifo", letter(n)).unwrap()));
    let (code, out, _) = world.claimant(&["dead", "redrive", "--all", "--queue", "Points.fifo", "--dry-run"]).await;
    assert!(code == 0 && out.contains("SQS shows ten of a message group at a time"), "{out}");
    // Of a letter that is named, nothing else goes.
    let id = world.cloud.sqs().messages("Gone.fifo").unwrap()[0].message_id.clone();
    let mut terminal = Terminal::start(&world, &format!("dead discard {id} --queue Points.fifo"));
    terminal.asks().await;
    let (_, shown) = terminal.types("n\n").await;
    assert!(shown.contains("Discard 1 dead letter of Gone.fifo?"), "{shown}");
    let (code, shown) = yes(&world, "dead redrive --all --queue Points.fifo").await;
    assert!(shown.contains("behind them in their message groups"), "{shown}");
    assert_eq!((code, world.bodies("Gone.fifo").len(), world.bodies("Points.fifo").len()), (Some(0), 0, 25), "{shown}");
    assert!(world.bodies("Points.fifo").is_sorted());
    world.cloud.stop().await;
}

/// A question is about the message groups that were looked at, and what was in them then.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_somebody_thinks_stays() {
    let world = World::of(FIFO).await;
    let send = |group: &str, body: &str| {
        let (group_id, deduplication_id) = (Some(group.to_owned()), Some(body.to_owned()));
        world
            .cloud
            .sqs()
            .send("Gone.fifo", NewMessage { group_id, deduplication_id, ..NewMessage::new(body) })
            .unwrap();
    };
    send("ada", "first");
    let mut terminal = Terminal::start(&world, "dead discard --all --queue Points.fifo");
    terminal.asks().await;
    send("bob", "of-another-group");
    send("ada", "behind-it-but-later");
    let (code, shown) = terminal.types("y\n").await;
    let mut left = world.bodies("Gone.fifo");
    left.sort();
    assert_eq!(
        (code, left),
        (Some(0), vec!["behind-it-but-later".to_owned(), "of-another-group".to_owned()]),
        "{shown}"
    );
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_the_question_ends_the_command() {
    let world = World::start().await;
    world.letter("no price", "rejected", "{}");
    let saved = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("ctrl-c.jsonl");
    for act in ["redrive --all", &format!("discard --all --save {}", saved.display())] {
        let mut terminal = Terminal::start(&world, &format!("dead {act}"));
        terminal.asks().await;
        let (code, shown) = terminal.types("\u{3}").await;
        assert_eq!((code, world.depths()), (Some(130), (1, 0)), "{shown}");
        assert!(shown.contains("Ended before Dead."), "{shown}");
    }
    // It would be in the way of the next try.
    assert!(!saved.exists());
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_ctrl_c_at_a_question_is_printed() {
    let world = World::of(MORE).await;
    for queue in ["Dead", "Lost"] {
        world.cloud.sqs().send(queue, NewMessage::new("{}")).unwrap();
    }
    let terminal = Terminal::start(&world, "dead redrive --all --json");
    let (code, shown, document) = terminal.ends_at_the_second_question().await;
    assert_eq!((code, &document["not_reached"]), (Some(130), &json!(["Lost"])), "{shown}");
    assert_eq!(document["queues"][0]["done"].as_array().map(Vec::len), Some(1), "{shown}");
    assert_eq!((world.depths(), world.bodies("Lost").len()), ((0, 1), 1));
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_of_a_key_is_printed_though_ctrl_c_ends_the_next() {
    let server = Server::start(shop);
    let terminal = Terminal::in_account(&server, "release order#o-9 order#o-9 --table locks --json");
    let (code, shown, document) = terminal.ends_at_the_second_question().await;
    assert_eq!((code, &document["not_reached"]), (Some(130), &json!(["order#o-9"])), "{shown}");
    assert_eq!((&document["keys"][0]["outcome"], &document["keys"][1]), (&json!("done"), &Value::Null), "{shown}");
}

/// Whether the key's next run has begun and ended.
static HAS_GONE_ON: AtomicBool = AtomicBool::new(false);

/// Answers as [`shop`] does, of a key that goes on.
fn going_on(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    (status, if HAS_GONE_ON.load(Ordering::SeqCst) { answer.replace("12e456aa", "99e456aa") } else { answer })
}

/// The same names are in staging and production.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_says_where_it_is_done() {
    let server = Server::start(shop);
    // The account is played by a server.
    let endpoint = format!("the endpoint {})", server.url.trim_start_matches("http://"));
    for (args, question) in [
        ("resolve order#o-9 --table locks", &*format!("Count it as done? ({endpoint}")),
        ("send orders --body x --stack shop", "Send 1 message to orders? (the stack shop, "),
        ("pause worker --stack shop", &format!("Stop messages to worker, from orders? (the stack shop, {endpoint}")),
    ] {
        let mut terminal = Terminal::in_account(&server, args);
        terminal.asks().await;
        let (code, shown) = terminal.types("n\n").await;
        assert!(code == Some(1) && shown.contains(question), "{shown}");
        let (_, out, err) = server.claimant(&[&args.split(' ').collect::<Vec<_>>()[..], &["--dry-run"]].concat());
        let (_, place) = question.split_once('(').unwrap();
        assert!(err.contains(&format!("A dry run, in {}", place.trim_end_matches(')'))), "{out}{err}");
    }
}

#[test]
fn a_dry_run_says_once_where_it_looked() {
    let server = Server::start(with_a_second_table);
    let (_, out, err) = server.claimant(&["resolve", "order#o-9", "--stack", "shop", "--dry-run"]);
    assert_eq!(err.matches("A dry run").count(), 1, "{out}{err}");
    let (_, out, err) = server.claimant(&["dead", "discard", "--all", "--stack", "shop", "--dry-run"]);
    let endpoint = server.url.trim_start_matches("http://");
    let place = format!("A dry run of orders-dead, in the stack shop, the endpoint {endpoint}:\n");
    assert!(err.contains(&place), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_goes_on_while_somebody_thinks_is_left() {
    let server = Server::start(going_on);
    let mut terminal = Terminal::in_account(&server, "resolve order#o-9 --table locks");
    terminal.asks().await;
    HAS_GONE_ON.store(true, Ordering::SeqCst);
    let (code, shown) = terminal.types("y\n").await;
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("left as it is: the key has gone on since it was looked at"), "{shown}");
    assert!(!server.requests.lock().unwrap().iter().any(|request| request.contains("UpdateItem")), "{shown}");
}

/// Answers as [`paused_by_gateway`] does, but Lambda lists its mappings once and then says nothing.
fn slow_after_it_was_opened(request: &str) -> (u16, String) {
    static LISTED: AtomicUsize = AtomicUsize::new(0);
    if request.starts_with("GET /2015-03-31/event-source-mappings ") && LISTED.fetch_add(1, Ordering::SeqCst) > 0 {
        std::thread::sleep(PATIENCE * 2);
    }
    paused_by_gateway(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_of_a_breaker_does_not_wait_for_its_pause_after_ctrl_c() {
    let server = Server::start(slow_after_it_was_opened);
    let terminal =
        Terminal::in_account(&server, "release claimant-breaker#gateway order#7 --force --stack shop --json");
    let (code, shown, document) = terminal.ends_at_the_second_question().await;
    assert_eq!((code, &document["keys"][0]["outcome"]), (Some(130), &json!("done")), "{shown}");
    assert!(shown.contains("was not looked at. claimant pause --dry-run FUNCTION"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_another_one_sets_while_somebody_thinks_is_left() {
    let world = World::of(TABLE).await;
    let mut terminal = Terminal::start(&world, "limit ses --rate 20/s --table Locks");
    terminal.asks().await;
    let (code, out, err) = world.claimant(&["limit", "ses", "--rate", "5/s", "--table", "Locks", "--yes"]).await;
    assert_eq!(code, 0, "{out}{err}");
    let (code, shown) = terminal.types("y\n").await;
    assert!(code == Some(1) && shown.contains("left as it is, since another one has set it"), "{shown}");
    assert!(shown.contains("ses: 5 a second ("), "{shown}");
    world.cloud.stop().await;
}

/// Letters of other keys fit nothing, and where there are none nothing is shown to be read.
#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_look_for_the_letters_of_a_key_counts_its_own() {
    let world = World::of(&format!("{TABLE}{MORE}")).await;
    let progress = async |world: &World| {
        let (_, shown) = Terminal::start(world, "inspect order#none --table Locks").types("").await;
        let lines: Vec<_> = shown.lines().filter(|line| line.contains("read")).map(str::to_owned).collect();
        (lines, shown)
    };
    let (lines, shown) = progress(&world).await;
    assert_eq!(lines, [""; 0], "{shown}");
    (0..3).for_each(|_| world.letter("no price", "rejected", "{}"));
    let (lines, shown) = progress(&world).await;
    assert!(matches!(&lines[..], [only] if only.contains(" of about 3 read, 0 fit")), "{shown}");
    world.cloud.stop().await;
}

/// Standard error is the terminal, and standard output is none.
#[tokio::test(flavor = "multi_thread")]
async fn progress_is_as_wide_as_the_terminal_that_shows_it() {
    let server = Server::start(shop);
    let variables: String = server.variables().iter().map(|(name, value)| format!("{name}={value} ")).collect();
    let list = format!("{variables}{} list --table locks --json > /dev/null", env!("CARGO_BIN_EXE_claimant"));
    let (_, shown) = Terminal::of(&format!("stty cols 40; {list}")).types("").await;
    let widths: Vec<_> = shown.split(['\r', '\n', '\x1b']).map(|line| line.chars().count()).collect();
    assert!(shown.contains("records read") || shown.contains(" of about "), "{shown}");
    assert!(widths.iter().all(|width| *width <= 40), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_declined_at_its_price_shows_what_was_read_before() {
    let server = Server::start(with_a_second_table);
    let mut terminal = Terminal::in_account(&server, "list --stack shop");
    terminal.asks().await;
    let (code, shown) = terminal.types("n\n").await;
    // 1 is that something was found.
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("order#o-9") && shown.contains("Not read: more."), "{shown}");
}
