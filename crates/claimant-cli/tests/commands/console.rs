//! `claimant console` as people call it, over an account that a server on loopback plays.

pub(crate) mod shop;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use claimant_core::{ConsumerName, Key, RecordId};

use crate::aws::{self, Server};
use crate::deployed::{off_for_a_reason_not_told, parcels_gone, paused_by_gateway, resources, without_parcels};
use serde_json::{Value, json};
use shop::{DONE, MAPPINGS, REJECTED, shop};

/// The id of a message that is no dead letter.
const NO_LETTER: &str = "0e8f0f3e-2222-4333-8444-555566667777";

/// A console that runs.
struct Running {
    process: Child,
    url: String,
}

impl Running {
    fn start(server: &Server, args: &[&str]) -> Self {
        Self::of(server, &[&["--stack", "shop"], args].concat())
    }

    fn of(server: &Server, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.arg("console").args(args).envs(server.variables());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim_end().strip_prefix("console   http://").unwrap_or_else(|| panic!("{first}"));
        Self { process, url: url.trim_end_matches('/').to_owned() }
    }

    /// The fingerprint of the first cause on the page of dead letters, which are read for it.
    fn first_cause(&self) -> String {
        let causes = self.page("/dead?read=true");
        causes.split_once("href=\"/dead/").unwrap().1.split('?').next().unwrap().to_owned()
    }

    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, accept: &str, form: &str) -> (u16, String) {
        self.ask_with(&format!("{method} {path} HTTP/1.1\r\nhost: {}\r\naccept: {accept}", self.url), form)
    }

    fn ask_with(&self, head: &str, form: &str) -> (u16, String) {
        let (head, body) = self.answer(head, form);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }

    /// The head and the body of an answer.
    fn answer(&self, head: &str, form: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.url).unwrap();
        let kind = "connection: close\r\ncontent-type: application/x-www-form-urlencoded";
        write!(stream, "{head}\r\n{kind}\r\ncontent-length: {}\r\n\r\n{form}", form.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn page(&self, path: &str) -> String {
        let (status, page) = self.ask("GET", path, "text/html", "");
        assert_eq!(status, 200, "{path}: {page}");
        page
    }

    fn pause(&self) -> (u16, String) {
        self.ask("POST", "/mappings", "application/json", "function=worker&enabled=false")
    }

    /// Asks it to stop, as Ctrl-C does.
    fn interrupt(&self) {
        let asked = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(asked.success());
    }

    /// Stops it as Ctrl-C does.
    fn stop(mut self) {
        self.interrupt();
        self.ended();
    }

    /// Waits until it has stopped in order.
    fn ended(&mut self) {
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Running {
    /// Ends it where a test fails: it holds what the test prints to open.
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

/// How many requests of these operations AWS got.
fn asked(server: &Server, operations: &[&str]) -> usize {
    let requests = server.requests.lock().unwrap();
    requests.iter().filter(|request| operations.iter().any(|operation| request.contains(operation))).count()
}

/// What changes something.
const CHANGES: [&str; 6] = ["PUT /", "SendMessage", "DeleteMessage", "UpdateItem", "PutItem", "DeleteItem"];

const RECEIVES: [&str; 1] = ["AmazonSQS.ReceiveMessage"];

#[test]
fn a_stack_is_shown_as_far_as_aws_tells_and_not_changed() {
    let server = Server::start(shop);
    let console = Running::start(&server, &[]);
    let (status, overview) = console.ask("GET", "/", "application/json", "");
    let overview: Value = serde_json::from_str(&overview).unwrap_or_else(|e| panic!("{e}: {status} {overview}"));
    let queue = &overview["queues"][0];
    assert_eq!((&queue["name"], &queue["dead_letter_queues"]), (&json!("orders"), &json!(["orders-dead"])));
    assert_eq!([&queue["visible"], &queue["in_flight"], &queue["delayed"]], [120, 7, 3]);
    assert_eq!(queue["counts"], Value::Null, "not known is not 0");
    let mapping = &overview["functions"][0]["mappings"][0];
    assert_eq!([&mapping["id"], &mapping["queue"], &mapping["state"]], ["m-1", "orders", "Enabled"]);
    // What may not be asked is said, beside what AWS never tells; the rest of the page is there.
    let untold = overview["untold"].to_string();
    for said in ["orders-dead cannot be counted", "sqs:GetQueueAttributes", "CloudWatch", "a minute old"] {
        assert!(untold.contains(said), "{said} is not in {untold}");
    }

    let page = console.page("/");
    let endpoint = format!("the stack shop, the endpoint {}", server.url.trim_start_matches("http://"));
    for said in [&*endpoint, "read-only", "What is not told here", "load it again to look again"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    assert!(!page.contains("/live") && !page.contains("s3cret"), "{page}");
    assert!(console.page("/messages").contains("SQS shows a message only to who receives it"));

    let (status, refused) = console.pause();
    assert!(status == 403 && refused.contains("start it with --allow-writes"), "{status} {refused}");
    for path in ["/keys/worker%23k/release", "/dead/x/discard", "/send", "/faults/kill", "/none"] {
        let (status, refused) = console.ask("POST", path, "application/json", "why=x");
        assert!(status == 403 && refused.contains("read-only"), "{path}: {status} {refused}");
    }
    assert_eq!(asked(&server, &CHANGES), 0);
    console.stop();
}

#[test]
fn every_page_shows_what_it_can_and_has_no_form_that_changes_something() {
    let server = Server::start(shop);
    let console = Running::start(&server, &["--logs"]);
    let done = format!("/messages/{DONE}");
    for (path, says) in [
        ("/", &["120", "Enabled", "What is not told here"][..]),
        ("/messages", &["No list of messages", "The id of a message"]),
        (&done, &["is completed, at", "worker, process 0a1b2c3d", "placed", "Where it is now is not known"]),
        ("/keys", &["Nothing was read yet", "a search of locks reads about 200 records (81.9 KB): 10 read units"]),
        ("/keys?state=rejected", &["order#o-9", "order o-9 has no price"]),
        (&format!("/keys?text={DONE}"), &["order#o-7"]),
        ("/keys/order%23o-7", &["completed", "If it came now"]),
        ("/dead", &["Read the letters", "hidden from other readers", "2 letters"]),
        ("/send", &["--allow-writes"]),
        ("/effects", &["Only in a local cloud"]),
        ("/faults", &["Only in a local cloud"]),
        ("/doctor", &["Examine it"]),
    ] {
        let page = console.page(path);
        for said in says {
            assert!(page.contains(said), "{path}: {said} is not in {page}");
        }
        assert!(!page.contains(r#"method="post""#), "{path}: {page}");
        let (status, json) = console.ask("GET", path, "application/json", "");
        assert!(status == 200 && serde_json::from_str::<Value>(&json).is_ok(), "{path}: {status} {json}");
    }
    assert_eq!(asked(&server, &RECEIVES), 0, "nothing is received unless that is asked for");

    // A search that has read a part says so, and goes on.
    let page = console.page("/keys?state=parked");
    assert!(page.contains("None among the first 2,500 records") && !page.contains("No such key"), "{page}");
    let (_, link) = page.split_once("rel=\"next\" href=\"").unwrap_or_else(|| panic!("{page}"));
    let page = console.page(&link.split('"').next().unwrap().replace("&amp;", "&"));
    assert!(page.contains("order#o-9") && !page.contains("rel=\"next\""), "{page}");
    let (status, refused) = console.ask("GET", "/keys?state=parked&from=x", "application/json", "");
    assert!(status == 400 && refused.contains("leave it out"), "{status} {refused}");
    // A key in full, and a state that it is not in.
    let page = console.page("/keys?state=completed&text=order%23o-9");
    assert!(page.contains("No such key in this state"), "{page}");

    let letters = console.page("/dead?read=true");
    let (before, _) = letters.split_once("\">order # has no price").unwrap_or_else(|| panic!("{letters}"));
    let group = before.rsplit("href=\"").next().unwrap().replace("&amp;", "&");
    let group = console.page(&group);
    assert!(group.contains("&lt;script&gt;") && !group.contains(r#"method="post""#), "{group}");
    let rejected = console.page(&format!("/messages/{REJECTED}?read=true"));
    for said in [
        "It is in the dead-letter queue orders-dead",
        "order#o-9",
        "&lt;script&gt;",
        "No line of the last 1 d names it",
    ] {
        assert!(rejected.contains(said), "{said} is not in {rejected}");
    }
    let absent = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    assert!(absent.contains("It is not among the 2 letters that were read, and there may be more"), "{absent}");
    // An id as pages show it, and what is none.
    for typed in [REJECTED[..8].to_owned(), REJECTED.to_uppercase(), format!("%22{REJECTED}%22")] {
        let page = console.page(&format!("/messages/{typed}?read=true"));
        assert!(page.contains("It is in the dead-letter queue orders-dead") && page.contains(REJECTED), "{page}");
    }
    let short = console.page(&format!("/messages/{}", &REJECTED[..8]));
    assert!(short.contains("by a whole id") && short.contains("Look for it among the dead letters"), "{short}");
    let no_id = console.page("/messages?text=order%23o-9");
    let says = "“order#o-9” is no id of a message, nor the beginning of one";
    assert!(no_id.contains(says) && no_id.contains(r#"href="/keys?text=order%23o%2D9""#), "{no_id}");
    let (status, refused) = console.ask("GET", "/messages/order%23o-9?read=true", "application/json", "");
    assert!(status == 400 && refused.contains(says), "{status} {refused}");
    assert!(asked(&server, &RECEIVES) > 0 && asked(&server, &["ChangeMessageVisibilityBatch"]) >= 4, "shown again");
    assert_eq!(asked(&server, &CHANGES), 0);
    console.stop();
}

#[test]
fn the_guard_stands_before_a_stack_too() {
    let server = Server::start(shop);
    let console = Running::start(&server, &["--allow-writes"]);
    let before = server.requests.lock().unwrap().len();
    let own = format!("host: {}", console.url);
    for (method, path, headers) in [
        ("GET", "/", "host: rebound.example"),
        ("GET", "/dead?read=true", &*format!("{own}\r\nsec-fetch-site: cross-site")),
        ("GET", "/", &*format!("{own}\r\nsec-fetch-site: same-site")),
        ("POST", "/mappings", &*format!("{own}\r\nsec-fetch-site: cross-site")),
        ("POST", "/mappings", &*format!("{own}\r\norigin: http://evil.example")),
    ] {
        let (status, answer) =
            console.ask_with(&format!("{method} {path} HTTP/1.1\r\n{headers}"), "function=worker&enabled=false");
        assert_eq!(status, 403, "{method} {path} {headers}: {answer}");
    }
    assert_eq!(server.requests.lock().unwrap().len(), before, "nothing was asked of AWS");
    let (status, _) = console.ask_with(&format!("GET / HTTP/1.1\r\n{own}\r\nsec-fetch-site: none"), "");
    assert_eq!(status, 200);
    console.stop();
}

#[test]
fn pages_change_a_stack_where_that_is_allowed() {
    let server = Server::start(shop);
    let console = Running::start(&server, &["--allow-writes"]);
    for (path, form) in [("/", "Pause"), ("/send", "Send it twice"), ("/keys/order%23o-9", "Do it")] {
        let page = console.page(path);
        assert!(
            page.contains(form) && page.contains(r#"method="post""#) && !page.contains("read-only"),
            "{path}: {page}"
        );
    }
    // What works for others is stopped, or set to work, after a question.
    let causes = console.page("/dead?read=true");
    let group = causes.split("href=\"").find(|link| link.starts_with("/dead/")).unwrap().split('"').next().unwrap();
    for (path, act, asks) in [
        ("/", "Pause", "worker gets no more messages until"),
        (group, "Send back", "The letter goes back to orders."),
        ("/send", "Send", "Whatever reads this queue does its work"),
    ] {
        let page = console.page(&path.replace("&amp;", "&"));
        assert!(page.contains(&format!(">{act}</summary><div class=\"sure\"><p>{asks}")), "{page}");
    }
    // No act on a key is done that was not chosen, as by Enter in the field beside it.
    let page = console.page("/keys/order%23o-9");
    assert!(page.contains(r#"required><option value="">"#), "{page}");
    let (status, done) = console.pause();
    assert!(status == 200 && done.contains("worker gets no more messages"), "{status} {done}");
    // What a breaker may have planned could not be looked for.
    assert!(done.contains("a schedule switches it on again: ") && done.contains("scheduler:ListSchedules"), "{done}");
    assert_eq!(asked(&server, &CHANGES), 1);
    console.stop();
}

/// Answers as [`shop`] does, of an account with a function of another stack.
fn with_another(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    let is_list = request.starts_with(&format!("GET {MAPPINGS} "));
    (status, if is_list { answer.replace("function:worker", "function:another") } else { answer })
}

#[test]
fn the_doctors_page_of_a_stack_knows_what_its_resources_accept() {
    let server = Server::start(crate::doctor::accepts);
    let console = Running::start(&server, &[]);
    let (_, examined) = console.ask("GET", "/doctor?look=true", "application/json", "");
    let examined: Value = serde_json::from_str(&examined).unwrap_or_else(|e| panic!("{e}: {examined}"));
    let accepted = &examined["accepted"][0];
    let wanted = [&json!("no-partial-batch-response"), &json!("one each")];
    assert_eq!([&accepted["check"], &accepted["reason"]], wanted, "{examined}");
    console.stop();
}

#[test]
fn a_function_of_another_stack_is_not_paused() {
    let server = Server::start(with_another);
    let console = Running::start(&server, &["--allow-writes"]);
    let (status, refused) = console.ask("POST", "/mappings", "application/json", "function=another&enabled=false");
    assert!(status == 400 && refused.contains("there is no function another in the stack shop"), "{status} {refused}");
    assert_eq!(asked(&server, &CHANGES), 0);
    console.stop();
}

/// Answers as [`shop`] does, of a stack with a second function: it reads `parcels`, and copies what it gives up on to `orders-dead`, too.
fn shared(request: &str) -> (u16, String) {
    let arn = |service: &str, name: &str| format!("arn:aws:{service}:eu-west-1:123456789012:{name}");
    let answer = if request.contains("Action=ListStackResources") {
        return resources(&[("AWS::Lambda::Function", "worker"), ("AWS::Lambda::Function", "pack")], "");
    } else if request.starts_with("GET /2015-03-31/functions/pack ") {
        // By another host than the one in SQS's answers.
        let url = "https://eu-west-1.queue.amazonaws.com/123456789012/orders-dead";
        let variables = json!({ "CLAIMANT_DEAD_LETTER_QUEUE_URL": url });
        json!({"Configuration": {"FunctionName": "pack", "Environment": {"Variables": variables}}})
    } else if request.starts_with(&format!("GET {MAPPINGS} ")) {
        let mapping = |id: &str, queue: &str, function: &str| {
            let function = arn("lambda", &format!("function:{function}"));
            json!({"UUID": id, "EventSourceArn": arn("sqs", queue), "FunctionArn": function, "State": "Enabled"})
        };
        json!({"EventSourceMappings": [mapping("m-1", "orders", "worker"), mapping("m-2", "parcels", "pack")]})
    } else if request.contains("AmazonSQS.GetQueueUrl") && request.contains("parcels") {
        json!({"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/parcels"})
    } else if request.contains("AmazonSQS.GetQueueAttributes") && request.contains("parcels") {
        json!({"Attributes": {}})
    } else {
        return shop(request);
    };
    (200, answer.to_string())
}

/// Whose letters are here does not depend on which queues are looked at.
#[test]
fn what_a_function_copied_may_be_of_a_queue_that_is_not_shown() {
    for queue in [&[][..], &["--queue", "orders"], &["--queue", "orders-dead"]] {
        let server = Server::start(shared);
        let console = Running::start(&server, &[queue, &["--allow-writes"]].concat());
        let causes = console.page("/dead?read=true");
        assert!(causes.contains("2 letters of orders, parcels"), "{queue:?}: {causes}");
        let form = "queue=orders-dead&id=aaaa0000-0000-4000-8000-000000000001";
        let (_, done) = console.ask("POST", "/dead/redrive", "application/json", form);
        assert!(done.contains("may belong to any of orders, parcels"), "{queue:?}: {done}");
        assert_eq!(asked(&server, &CHANGES), 0, "{queue:?}");
        console.stop();
    }
}

/// Answers as [`shop`] does, of a stack whose only function reads the dead letters of another stack's queue.
fn watched(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    let is_list = request.starts_with(&format!("GET {MAPPINGS} "));
    (status, if is_list { answer.replace(":orders\"", ":orders-dead\"") } else { answer })
}

#[test]
fn a_dead_letter_queue_that_a_function_reads_is_one() {
    let server = Server::start(watched);
    let (code, out, err) =
        server.claimant(&["dead", "list", "--stack", "shop", "--queue", "orders-dead", "--limit", "1", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {code:?} {out}{err}"));
    assert_eq!(shown["queues"][0]["queue"], "orders-dead", "{shown}");
}

/// A queue and its dead-letter queue are one and the same to what looks for dead letters; so are the hosts that SQS has for one.
#[test]
fn a_dead_letter_queue_that_is_named_twice_is_read_once() {
    let queue = |host: &str, name: &str| format!("https://{host}.amazonaws.com/123456789012/{name}");
    let (orders, dead) = (queue("sqs.eu-west-1", "orders"), queue("eu-west-1.queue", "orders-dead"));
    for (answer, named) in [
        (shop as fn(&str) -> (u16, String), &["--queue", &*orders, "--queue", &dead][..]),
        (shared, &["--stack", "shop"]),
        (shared, &["--stack", "shop", "--queue", &dead]),
    ] {
        let server = Server::start(answer);
        let (_, out, err) = server.claimant(&[&["dead", "list", "--json"], named].concat());
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!(shown["queues"].as_array().map(Vec::len), Some(1), "{named:?}: {shown}");
    }
}

/// Answers as [`shop`] does, but whose dead letters a queue has may not be asked.
fn sources_refused(request: &str) -> (u16, String) {
    if request.contains("AmazonSQS.ListDeadLetterSourceQueues") { shop("") } else { shop(request) }
}

#[test]
fn what_a_queue_is_that_may_not_be_asked_is_not_known() {
    let server = Server::start(sources_refused);
    let named = ["--table", "locks", "--queue", "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"];
    let console = Running::of(&server, &named);
    let page = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    assert!(page.contains("No dead-letter queue is known here") && !page.contains("It is not among"), "{page}");
    assert!(page.contains("Whether orders is a dead-letter queue, or has one, is not known"), "{page}");
    console.stop();
    let (_, out, err) = server.claimant(&[&["inspect", "order#o-9"], &named[..]].concat());
    assert!(err.contains("whether orders is a dead-letter queue, or has one, is not known"), "{err}");
    assert!(err.contains("if it is one") && !err.contains("SQS knows it for no"), "{err}");
    assert!(out.contains("no dead-letter queue is known.\n") && !out.contains("--queue"), "{out}");
}

/// Answers as [`shop`] does, but loses what SQS says of a deletion, and takes none of the next two, as of one client's tries.
fn deleted_unheard(request: &str) -> (u16, String) {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    match request.contains("AmazonSQS.DeleteMessageBatch") {
        true if TRIES.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) => aws::CLOSE,
        true => (503, json!({"__type": "SlowDown", "message": "not now"}).to_string()),
        false => shop(request),
    }
}

/// Nor is the copy of it thrown away, which may be all that is left.
#[test]
fn what_may_be_deleted_is_not_said_to_be_here() {
    let server = Server::start(deleted_unheard);
    let console = Running::start(&server, &["--allow-writes"]);
    let act = |path: &str| {
        let form = "queue=orders-dead&id=aaaa0000-0000-4000-8000-000000000001";
        let (status, done) = console.ask("POST", path, "application/json", form);
        let done: Value = serde_json::from_str(&done).unwrap_or_else(|e| panic!("{e}: {status} {done}"));
        let said = done["notice"]["text"].as_str().unwrap().to_owned();
        assert!(said.contains("it is not known whether orders-dead deleted it"), "{path}: {done}");
        (said, done)
    };
    let (said, done) = act("/dead/discard");
    let path = done["result"]["saved"].as_str().unwrap_or_else(|| panic!("{done}"));
    let saved = std::fs::read_to_string(path).unwrap();
    assert!(said.contains(path) && saved.contains("aaaa0000-0000-4000-8000-000000000001"), "{said}: {saved}");
    std::fs::remove_file(path).unwrap();
    let (said, _) = act("/dead/redrive");
    assert!(said.contains("It was sent to orders, and it is not known"), "{said}");
    console.stop();
}

/// Answers as [`shop`] does, but refuses to delete, and to show again.
fn kept_and_hidden(request: &str) -> (u16, String) {
    let is_refused = ["DeleteMessageBatch", "ChangeMessageVisibilityBatch"];
    match is_refused.iter().any(|operation| request.contains(&format!("AmazonSQS.{operation}"))) {
        true => (403, json!({"__type": "AccessDeniedException", "message": "not you"}).to_string()),
        false => shop(request),
    }
}

/// Nor is it to be edited again, which would send it twice.
#[test]
fn what_was_sent_and_not_deleted_is_not_said_to_be_not_sent() {
    let server = Server::start(kept_and_hidden);
    let console = Running::start(&server, &["--allow-writes"]);
    let cause = format!("/dead/{}?queue=orders-dead", console.first_cause());
    let group = cause.split(['/', '?']).nth(2).unwrap();
    let (_, read) = console.ask("GET", &format!("{cause}&read=true"), "application/json", "");
    let read: Value = serde_json::from_str(&read).unwrap();
    let id = read["letters"][0]["message_id"].as_str().unwrap_or_else(|| panic!("{read}"));
    let form = format!("queue=orders-dead&group={group}&id={id}&body=x");
    let head = format!("POST /dead/redrive HTTP/1.1\r\nhost: {}\r\naccept: text/html", console.url);
    let (head, _) = console.answer(&head, &form);
    let place = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_else(|| panic!("{head}"));
    let page = console.page(place);
    let said = "0 dead letters sent back. 1 was sent, and may be in both queues: that it was deleted is not confirmed. \
                It was sent to orders, and it was not deleted: ";
    assert!(page.contains(said) && !page.contains("1 letter was not: "), "{page}");
    assert!(!place.contains("edit="), "{place}");
    // What stays hidden is told wherever it was read.
    let hidden = "hidden for two minutes, also from the next look";
    assert!(page.contains(&format!("2 letters that were read stay {hidden}")), "{page}");
    for page in ["/dead?read=true".to_owned(), format!("{cause}&read=true"), format!("/messages/{REJECTED}?read=true")]
    {
        assert!(console.page(&page).contains(hidden), "{page}");
    }
    console.stop();
}

/// A queue that is named by its URL is a dead-letter queue, or has one, as it is in a stack.
#[test]
fn dead_letters_of_queues_that_are_named_are_shown() {
    for queue in ["orders", "orders-dead"] {
        let server = Server::start(shop);
        let url = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{queue}");
        let console = Running::of(&server, &["--table", "locks", "--queue", &url, "--allow-writes"]);
        let causes = console.page("/dead?read=true");
        assert!(causes.contains("2 letters of orders") && causes.contains("order # has no price"), "{queue}: {causes}");
        let send = console.page("/send");
        assert!(!send.contains("orders-dead"), "{queue}: {send}");
        let rejected = console.page(&format!("/messages/{REJECTED}?read=true"));
        assert!(rejected.contains("It is in the dead-letter queue orders-dead"), "{queue}: {rejected}");
        // It goes back to the queue that it belongs to, whether that was named or not.
        let (before, _) = causes.split_once("\">order # has no price").unwrap();
        let link = before.rsplit("href=\"/dead/").next().unwrap();
        let (group, id) = (link.split('?').next().unwrap(), "aaaa0000-0000-4000-8000-000000000001");
        let page = console.page(&format!("/dead/{group}?queue=orders-dead&edit={id}"));
        assert!(page.contains("<option value=\"orders\" selected"), "{queue}: {page}");
        let form = format!("queue=orders-dead&group={group}&id={id}&body=x&to=orders");
        let (_, done) = console.ask("POST", "/dead/redrive", "application/json", &form);
        assert!(done.contains("1 dead letter sent back to orders."), "{queue}: {done}");
        assert_eq!(asked(&server, &["SendMessageBatch"]), 1, "{queue}");
        console.stop();
    }
    let server = Server::start(shop);
    let console = Running::of(&server, &["--table", "locks"]);
    let page = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    assert!(page.contains("No dead-letter queue is known") && !page.contains("It is not among"), "{page}");
    console.stop();
}

/// Answers as [`shop`] does, and shows letters once: they are hidden then.
fn shown_once(request: &str) -> (u16, String) {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    let is_hidden = request.contains("AmazonSQS.ReceiveMessage") && SHOWN.fetch_or(true, Ordering::SeqCst);
    if is_hidden { (200, json!({}).to_string()) } else { shop(request) }
}

#[test]
fn a_key_is_not_said_to_have_no_dead_letters_where_none_was_looked_for() {
    let server = Server::start(shown_once);
    let inspect = |more: &[&str]| {
        let (_, out, err) = server.claimant(&[&["inspect", "order#o-9", "--table", "locks"], more].concat());
        assert!(out.contains("order#o-9"), "{more:?}: {out}{err}");
        out
    };
    for (more, says) in [
        (&[][..], "no dead-letter queue is known. With --table or --store, and without --stack, --queue URL names"),
        (&["--no-dead-letters"], "were not looked for (--no-dead-letters)"),
    ] {
        let out = inspect(more);
        assert!(out.contains(says) && !out.contains("No dead letter of it"), "{more:?}: {out}");
        let shown: Value = serde_json::from_str(&inspect(&[more, &["--json"]].concat())).unwrap();
        assert_eq!((&shown["dead_letters"], &shown["dead_letters_complete"]), (&json!([]), &json!(false)), "{shown}");
    }
    // The queue that it came from leads to its dead letters.
    let queue = ["--queue", "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "--json"];
    let shown: Value = serde_json::from_str(&inspect(&queue)).unwrap();
    let (letters, is_complete) = (shown["dead_letters"].as_array().unwrap(), &shown["dead_letters_complete"]);
    assert_eq!((letters.len(), &letters[0]["queue"], is_complete), (1, &json!("orders-dead"), &json!(true)), "{shown}");
}

/// To read letters is to receive them, which hides them from others.
#[test]
fn the_record_of_a_breaker_is_not_looked_for_among_dead_letters() {
    let server = Server::start(|request: &str| match request {
        _ if request.contains("AmazonSQS.ReceiveMessage") => panic!("letters were received"),
        _ => shop(request),
    });
    let inspect = |more: &[&str]| {
        let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
        server.claimant(&[&["inspect", "claimant-breaker#mail", "--table", "locks", "--queue", queue], more].concat())
    };
    let (_, out, err) = inspect(&[]);
    assert!(out.ends_with("It has no dead letters: it is the record of a breaker or a limit.\n"), "{out}{err}");
    let (_, out, err) = inspect(&["--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((&shown["dead_letters"], &shown["dead_letters_complete"]), (&json!([]), &json!(true)), "{shown}");
}

/// Answers as [`shop`] does, but the message that is done is its own key, which has a record in the clear and a hashed one.
fn done_by_two(request: &str) -> (u16, String) {
    let hashed = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new(DONE).unwrap());
    let clear = format!("order#{DONE}");
    let id = [clear.as_str(), hashed.as_str()].into_iter().find(|id| request.contains(&format!("\"{id}\"")));
    match id.filter(|_| request.contains("DynamoDB_20120810.GetItem")) {
        Some(id) => {
            let (status, answer) = shop("DynamoDB_20120810.GetItem order#o-7");
            (status, answer.replace("order#o-7", id))
        }
        None => shop(request),
    }
}

#[test]
fn a_message_whose_key_has_two_records_says_so() {
    let server = Server::start(done_by_two);
    let console = Running::start(&server, &["--logs"]);
    let page = console.page(&format!("/messages/{DONE}"));
    let says = format!("A key of it has two records, order#{DONE} (completed) and order~");
    assert!(page.contains(&says) && page.matches("Its key ").count() == 2, "{page}");
    console.stop();
}

/// Answers as [`shop`] does, of a key that is hashed; there is no record of it.
fn hashed_and_gone(request: &str) -> (u16, String) {
    let id = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new("o-8").unwrap());
    let (status, answer) = shop(request);
    (status, answer.replace("order#o-9", id.as_str()))
}

#[test]
fn dead_letters_of_a_hashed_key_are_found_without_its_record() {
    let server = Server::start(hashed_and_gone);
    let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
    for key in [&["order#o-8"][..], &["o-8", "--consumer", "order"]] {
        let (_, out, err) = server.claimant(&[&["inspect", "--table", "locks", "--queue", queue], key].concat());
        assert!(out.contains("There is no record") && out.contains("In orders-dead: aaaa0000"), "{key:?}: {out}{err}");
    }
}

/// Answers as [`shop`] does, but loses what is sent: the connection is closed.
pub(crate) fn lossy(request: &str) -> (u16, String) {
    if request.contains("AmazonSQS.SendMessageBatch") { aws::CLOSE } else { shop(request) }
}

const THROTTLED: &str = r#"{"__type":"com.amazonaws.sqs#RequestThrottled"}"#;

/// Answers as [`lossy`] does the first time, and takes no more after that.
fn lossy_then_throttled(request: &str) -> (u16, String) {
    static IS_LATER: AtomicBool = AtomicBool::new(false);
    let throttles = request.contains("AmazonSQS.SendMessageBatch") && IS_LATER.swap(true, Ordering::SeqCst);
    if throttles { (400, THROTTLED.to_owned()) } else { lossy(request) }
}

/// Answers as [`shop`] does, but takes nothing the first time.
fn throttled_then_taken(request: &str) -> (u16, String) {
    static IS_LATER: AtomicBool = AtomicBool::new(false);
    let throttles = request.contains("AmazonSQS.SendMessageBatch") && !IS_LATER.swap(true, Ordering::SeqCst);
    if throttles { (400, THROTTLED.to_owned()) } else { shop(request) }
}

/// Nor is it sent once more.
#[test]
fn what_may_have_arrived_is_not_said_to_be_not_sent() {
    type Row = (fn(&str) -> (u16, String), &'static str, usize);
    let rows: [Row; 3] = [
        (lossy, "It is not known whether 1 message arrived in orders: ", 1),
        (lossy_then_throttled, "It is not known whether 1 message arrived in orders: ", 1),
        (throttled_then_taken, "", 2),
    ];
    for (answer, wanted, tries) in rows {
        let server = Server::start(answer);
        let console = Running::start(&server, &["--allow-writes"]);
        let (status, done) = console.ask("POST", "/send", "application/json", "queue=orders&body=x");
        let done: Value = serde_json::from_str(&done).unwrap_or_else(|e| panic!("{e}: {status} {done}"));
        assert!(done["notice"]["text"].as_str().unwrap().starts_with(wanted), "{done}");
        let is_taken = wanted.is_empty();
        assert_eq!((&done["notice"]["done"], done["result"]["unknown"] == 0), (&json!(is_taken), is_taken), "{done}");
        console.stop();
        let requests = server.requests.lock().unwrap();
        let sent = requests.iter().filter(|request| request.contains("AmazonSQS.SendMessageBatch")).count();
        assert_eq!(sent, tries, "{done}");
    }
}

/// Answers as [`shop`] does, of a function with a second mapping, which may not be changed.
fn half_closed(request: &str) -> (u16, String) {
    let mapping = |id: &str, queue: &str| {
        let arn = |service: &str, name: &str| format!("arn:aws:{service}:eu-west-1:123456789012:{name}");
        json!({"UUID": id, "EventSourceArn": arn("sqs", queue), "FunctionArn": arn("lambda", "function:worker"), "State": "Enabled"})
    };
    if request.starts_with(&format!("GET {MAPPINGS} ")) {
        return (
            200,
            json!({"EventSourceMappings": [mapping("m-2", "parcels"), mapping("m-1", "orders")]}).to_string(),
        );
    }
    shop(request)
}

#[test]
fn of_mappings_that_are_not_all_paused_each_is_told() {
    let server = Server::start(half_closed);
    let console = Running::start(&server, &["--allow-writes"]);
    let (status, done) = console.pause();
    let done: Value = serde_json::from_str(&done).unwrap_or_else(|e| panic!("{e}: {status} {done}"));
    let said = done["notice"]["text"].as_str().unwrap();
    for part in
        ["the mapping of parcels is Enabled (", "lambda:UpdateEventSourceMapping", "the mapping of orders is Disabled"]
    {
        assert!(said.contains(part), "{part}: {done}");
    }
    assert_eq!((status, &done["notice"]["done"]), (200, &json!(false)), "{done}");
    let (refused, paused) = (&done["result"][0], &done["result"][1]);
    assert!(refused["failed"].is_string() && paused["state"] == "Disabled", "{done}");
    console.stop();
}

/// When letters were sent that are old: 2023-11-14T22:13:20Z.
const OLD_MS: u64 = 1_700_000_000_000;

/// Answers as [`shop`] does, but for so many letters of one cause that no page shows all.
fn crowded(request: &str) -> (u16, String) {
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return shop(request);
    }
    let text = |value: &str| json!({"DataType": "String", "StringValue": value});
    let letter = |n: usize| {
        let attributes = json!({"claimant-outcome": text("rejected"), "claimant-error": text("no price")});
        let system = json!({"SentTimestamp": OLD_MS.to_string()});
        json!({"MessageId": format!("bbbb{n:04}"), "ReceiptHandle": format!("r-{n}"), "Body": "{}", "Attributes": system, "MessageAttributes": attributes})
    };
    (200, json!({ "Messages": (0..2_100).map(letter).collect::<Vec<_>>() }).to_string())
}

#[test]
fn letters_that_were_not_looked_at_are_not_said_to_be_gone() {
    let server = Server::start(crowded);
    let console = Running::start(&server, &["--allow-writes"]);
    let group = console.first_cause();
    let page = console.page(&format!("/dead/{group}?queue=orders-dead&read=true"));
    assert_eq!(page.matches("class=\"letter card\"").count(), 25, "{page}");
    assert!(page.contains("The first 25 letters of this cause; there may be more."), "{page}");
    let path = format!("/dead/{group}?queue=orders-dead&edit=none");
    let (status, page) = console.ask("GET", &path, "text/html", "");
    assert!(status == 404 && page.contains("It is not among the 2,") && !page.contains("discarded."), "{page}");
    let page = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    assert!(
        page.contains("It is not among the 2,") && page.contains("there may be more: claimant dead show"),
        "{page}"
    );
    console.stop();
}

/// Answers as [`shop`] does, of letters that SQS does not count yet.
fn counted_late(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    (status, answer.replace(r#""ApproximateNumberOfMessages":"2""#, r#""ApproximateNumberOfMessages":"0""#))
}

/// Answers as [`shop`] does, and refuses to be received from after the first round.
fn refused_later(request: &str) -> (u16, String) {
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let is_later = request.contains("AmazonSQS.ReceiveMessage") && ROUND.fetch_add(1, Ordering::SeqCst) >= 8;
    if is_later { shop("") } else { shop(request) }
}

#[test]
fn letters_that_were_read_are_shown() {
    for (answers, refused) in [(counted_late as fn(&str) -> _, false), (refused_later, true)] {
        let server = Server::start(answers);
        let console = Running::start(&server, &[]);
        let page = console.page("/dead?read=true");
        assert!(page.contains("2 letters of orders") && page.contains("order # has no price"), "{page}");
        assert_eq!(page.contains("sqs:ReceiveMessage"), refused, "{page}");
        assert!(!page.contains("No dead letters"), "{page}");
        console.stop();
    }
}

/// Whether this is a receive from a queue whose letters are hidden, as they are while they are read.
fn finds_none(request: &str, hidden: &AtomicBool) -> bool {
    if request.contains("AmazonSQS.ChangeMessageVisibility") {
        hidden.store(false, Ordering::SeqCst);
    }
    request.contains("AmazonSQS.ReceiveMessage") && hidden.swap(true, Ordering::SeqCst)
}

/// Answers as [`shop`] does, of one more dead-letter queue, which may not be read.
fn two_dead(request: &str) -> (u16, String) {
    let url = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
    let is = |name: &str| request.contains("lost-dead") && request.contains(&format!("AmazonSQS.{name}"));
    if is("GetQueueUrl") {
        return (200, json!({"QueueUrl": url("lost-dead")}).to_string());
    }
    if is("ListDeadLetterSourceQueues") {
        return (200, json!({"queueUrls": [url("orders")]}).to_string());
    }
    if is("GetQueueAttributes") {
        return (200, json!({"Attributes": {}}).to_string());
    }
    if is("ReceiveMessage") {
        return shop("");
    }
    static HIDDEN: AtomicBool = AtomicBool::new(false);
    if finds_none(request, &HIDDEN) { (200, json!({}).to_string()) } else { shop(request) }
}

#[test]
fn a_message_is_looked_for_in_each_queue_that_can_be_read() {
    let server = Server::start(two_dead);
    let queue = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
    let (lost, dead) = (queue("lost-dead"), queue("orders-dead"));
    let console = Running::of(&server, &["--table", "locks", "--queue", &lost, "--queue", &dead]);
    let page = console.page(&format!("/messages/{REJECTED}?read=true"));
    assert!(page.contains("It is in the dead-letter queue orders-dead"), "{page}");
    let page = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    for said in ["It is not among those that were read: 2 letters", "The dead letters of lost-dead were not all read"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    console.stop();
}

/// To receive the letters of one queue hides none of another.
#[test]
fn the_letters_of_one_queue_are_read_where_that_was_asked_for() {
    let server = Server::start(two_dead);
    let queue = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
    let (lost, dead) = (queue("lost-dead"), queue("orders-dead"));
    let console = Running::of(&server, &["--table", "locks", "--queue", &lost, "--queue", &dead]);
    let page = console.page("/dead");
    let button = "name=\"queue\" value=\"orders-dead\"";
    assert!(page.contains(button) && page.contains("Read its letters"), "{page}");
    let page = console.page("/dead?queue=orders-dead&read=true");
    assert!(page.contains("order # has no price") && !page.contains(button), "{page}");
    assert!(page.contains("Read the letters"), "{page}");
    let received = |request: &&String| request.contains("AmazonSQS.ReceiveMessage") && request.contains("lost-dead");
    assert_eq!(server.requests.lock().unwrap().iter().filter(received).count(), 0);
    for wrong in ["/dead?queue=none&read=true", "/dead?queue=&read=true"] {
        let (status, said) = console.ask("GET", wrong, "application/json", "");
        assert_eq!(status, 400, "{wrong}: {said}");
    }
    console.stop();
}

/// Answers as [`shop`] does, of a table in which each page of records has one that claimant did not write.
fn with_foreign(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    if !request.contains("DynamoDB_20120810.Scan") {
        return (status, answer);
    }
    let mut page: Value = serde_json::from_str(&answer).unwrap();
    page["Items"].as_array_mut().unwrap().push(json!({"id": {"S": "elsewhere"}}));
    (status, page.to_string())
}

#[test]
fn a_search_that_meets_records_of_another_form_is_read_on() {
    let server = Server::start(with_foreign);
    let console = Running::start(&server, &[]);
    let page = console.page("/keys?state=parked");
    for said in ["None among the first 2,500 records", "1 of its records is not of the form", "read on"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    let next = page.split_once("<a rel=\"next\" href=\"").unwrap().1.split('"').next().unwrap().replace("&amp;", "&");
    let page = console.page(&next);
    for said in ["o-9", "locks: 2 records are not of the form that claimant writes, and are left out."] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    // At the end of the table nothing is left to read, and not all is known.
    let page = console.page("/keys?text=nothing-like-it&state=completed");
    assert!(page.contains("Not all records are known") && !page.contains("read on"), "{page}");
    console.stop();
}

/// Answers as [`shop`] does, of a function whose store of records is not known.
fn without_store(request: &str) -> (u16, String) {
    let (status, answer) = shop(request);
    (status, answer.replace("CLAIMANT_TABLE", "ELSEWHERE"))
}

#[test]
fn what_is_known_of_a_message_is_shown_where_no_store_answers() {
    let server = Server::start(without_store);
    let console = Running::start(&server, &["--logs"]);
    for (path, all) in [
        (format!("/messages/{DONE}"), ["placed", "Whether its id is a key is not known: "]),
        (format!("/messages/{REJECTED}?read=true"), ["It is in the dead-letter queue", "Its record was not read: "]),
    ] {
        let page = console.page(&path);
        for said in all.iter().chain(&["name it with --table NAME"]) {
            assert!(page.contains(said), "{path}: {said} is not in {page}");
        }
    }
    console.stop();
}

/// Answers as [`shop`] does, of dead letters that SQS moves on when they are received too often, and that are hidden while they are read.
fn moving_on(request: &str) -> (u16, String) {
    static HIDDEN: AtomicBool = AtomicBool::new(false);
    if finds_none(request, &HIDDEN) {
        return (200, json!({}).to_string());
    }
    let is_dead = request.contains("AmazonSQS.GetQueueAttributes") && request.contains("orders-dead");
    if !is_dead || !request.contains("\"All\"") {
        return shop(request);
    }
    let arn = "arn:aws:sqs:eu-west-1:123456789012:orders-later";
    let policy = json!({"deadLetterTargetArn": arn, "maxReceiveCount": 3}).to_string();
    (200, json!({"Attributes": {"ApproximateNumberOfMessages": "2", "RedrivePolicy": policy}}).to_string())
}

/// To look at a letter is to receive it: a page that is led to by an act, or loaded again, does not do that by itself.
#[test]
fn letters_of_a_cause_are_read_where_that_was_asked_for() {
    let server = Server::start(moving_on);
    let console = Running::start(&server, &["--allow-writes"]);
    let careful = "Careful: SQS moves its letters on after 3 receives";
    let causes = console.page("/dead?read=true");
    assert!(causes.contains(careful) && causes.contains("queue=orders%2Ddead&amp;read=true\">order #"), "{causes}");
    let cause = format!("/dead/{}?queue=orders-dead", console.first_cause());

    let before = asked(&server, &RECEIVES);
    let page = console.page(&cause);
    for said in [careful, "Read the letters", "hidden from other readers", "<h1>Dead letters of one cause"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    assert!(!page.contains("Nothing left") && !page.contains("Discard all"), "{page}");
    let (_, json) = console.ask("GET", &cause, "application/json", "");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["read"], &json["letters"]), (&json!(false), &json!([])), "{json}");
    assert_eq!(asked(&server, &RECEIVES), before, "nothing was received");
    let page = console.page(&format!("{cause}&read=true"));
    assert!(page.contains(careful) && page.contains("Edit and send"), "{page}");
    assert!(asked(&server, &RECEIVES) > before);

    // To be edited, a letter is received once more, and a person is warned; to leave it as it is receives none.
    let edit = page.split("href=\"").find(|link| link.split('"').next().unwrap().contains("edit=")).unwrap();
    let page = console.page(&edit.split('"').next().unwrap().replace("&amp;", "&"));
    assert!(page.contains(careful) && page.contains("<textarea"), "{page}");
    let (before, _) = page.split_once("\">Leave it as it is").unwrap_or_else(|| panic!("{page}"));
    let leave = before.rsplit("href=\"").next().unwrap().replace("&amp;", "&");
    let before = asked(&server, &RECEIVES);
    assert!(console.page(&leave).contains("Read the letters"), "{leave}");
    assert_eq!(asked(&server, &RECEIVES), before, "{leave}");

    // A message that is not among the letters that were looked at may have been moved on.
    let page = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    for said in [
        "It is not among the dead letters: 2 letters",
        "SQS moves letters of orders-dead on to orders-later after 3 receives",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }

    // What may be no id at all is not said to be gone.
    let page = console.page("/messages/48213377?read=true");
    let said = "A letter whose id begins with 48213377 is not among the dead letters: 2 letters";
    assert!(page.contains(said) && page.contains("If it is a key: “Look for its key” finds it."), "{page}");
    assert!(!page.contains("Where it is now is not known"), "{page}");

    // What an act does not find may have been moved on; and it leads to a page that does not read.
    let head = format!("POST /dead/redrive HTTP/1.1\r\nhost: {}\r\naccept: text/html", console.url);
    let group = cause.split(['/', '?']).nth(2).unwrap();
    let (head, _) = console.answer(&head, &format!("queue=orders-dead&group={group}&id=none"));
    let place = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_else(|| panic!("{head}"));
    let before = asked(&server, &RECEIVES);
    let page = console.page(place);
    let said = "it was sent back, discarded, or moved on to orders-later by SQS meanwhile.";
    assert!(page.contains(said) && page.contains("Read the letters"), "{place}: {page}");
    assert_eq!(asked(&server, &RECEIVES), before, "{place}");
    console.stop();
}

/// Whether [`growing`] has its second letter.
static GROWN: AtomicBool = AtomicBool::new(false);

/// Answers as [`shop`] does, of letters that SQS moved, hidden while they are read: one, and later one more, which was sent before it, and which
/// something else reads until then.
fn growing(request: &str) -> (u16, String) {
    static HIDDEN: AtomicBool = AtomicBool::new(false);
    if request.contains("AmazonSQS.ChangeMessageVisibility") {
        HIDDEN.store(false, Ordering::SeqCst);
    }
    if request.contains("AmazonSQS.GetQueueAttributes")
        && request.contains("orders-dead")
        && request.contains("\"All\"")
    {
        // One that is read here, and one that something else reads.
        let hidden = if HIDDEN.load(Ordering::SeqCst) { "2" } else { "1" };
        return (200, json!({"Attributes": {"ApproximateNumberOfMessagesNotVisible": hidden}}).to_string());
    }
    if !request.contains("AmazonSQS.ReceiveMessage") {
        return shop(request);
    }
    if HIDDEN.swap(true, Ordering::SeqCst) {
        return (200, json!({}).to_string());
    }
    let letter = |n: u64| {
        let source = "arn:aws:sqs:eu-west-1:123456789012:orders";
        let system = json!({"SentTimestamp": (OLD_MS - n).to_string(), "DeadLetterQueueSourceArn": source});
        json!({"MessageId": format!("cccc{n:04}"), "ReceiptHandle": format!("r-{n}"), "Body": "{}", "Attributes": system})
    };
    let count = if GROWN.load(Ordering::SeqCst) { 2 } else { 1 };
    (200, json!({ "Messages": (0..count).map(letter).collect::<Vec<_>>() }).to_string())
}

#[test]
fn letters_that_no_page_has_shown_stay() {
    let server = Server::start(growing);
    let console = Running::start(&server, &["--allow-writes"]);
    let group = console.first_cause();
    let page = console.page(&format!("/dead/{group}?queue=orders-dead&read=true"));
    assert!(page.contains("Every letter that is shown here is deleted."), "{page}");
    assert!(page.contains("1 letter is hidden now: something else reads it"), "{page}");
    // Nor is a letter said to be gone that may be the hidden one.
    let (status, other) = console.ask("GET", &format!("/dead/{group}?queue=orders-dead&edit=none"), "text/html", "");
    let says = "It is not among the 1 letter that was read. 1 letter is hidden now";
    assert!(status == 404 && other.contains(says) && !other.contains("any more"), "{other}");
    let other = console.page(&format!("/messages/{NO_LETTER}?read=true"));
    assert!(other.contains(says) && !other.contains("It is not among the dead letters"), "{other}");
    GROWN.store(true, Ordering::SeqCst);
    let forms: Vec<_> = page.split("action=\"/dead/discard\"").skip(1).collect();
    let hidden = forms[0].split("<button").next().unwrap().split("name=\"").skip(1).map(|field| {
        let (name, rest) = field.split_once("\" value=\"").unwrap();
        format!("{name}={}", rest.split('"').next().unwrap())
    });
    let form = hidden.collect::<Vec<_>>().join("&");
    assert!(form.contains("until=") && form.contains("id=cccc0000"), "{form}");
    let (status, done) = console.ask("POST", "/dead/discard", "application/json", &form);
    let done: Value = serde_json::from_str(&done).unwrap_or_else(|e| panic!("{e}: {status} {done}"));
    assert_eq!(done["result"]["done"].as_array().map(Vec::len), Some(1), "{done}");
    std::fs::remove_file(done["result"]["saved"].as_str().unwrap()).unwrap();
    assert!(asked(&server, &["DeleteMessageBatch"]) == 1 && asked(&server, &["\"ReceiptHandle\":\"r-0\""]) > 0);
    let requests = server.requests.lock().unwrap();
    assert!(!requests.iter().any(|request| request.contains("DeleteMessage") && request.contains("\"r-1\"")));
    drop(requests);
    console.stop();
}

/// Whether [`slow`] was asked to send.
static SENDS: AtomicBool = AtomicBool::new(false);

/// Answers as [`shop`] does, after a while where something is sent.
fn slow(request: &str) -> (u16, String) {
    if request.contains("AmazonSQS.SendMessageBatch") {
        SENDS.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(2));
    }
    shop(request)
}

/// A letter that is copied and not deleted would be in both queues.
#[test]
fn an_act_that_is_under_way_ends_before_the_console() {
    let server = Server::start(slow);
    let mut console = Running::start(&server, &["--allow-writes"]);
    let form = "queue=orders-dead&id=aaaa0000-0000-4000-8000-000000000001";
    let (status, page) = thread::scope(|scope| {
        let answer = scope.spawn(|| console.ask("POST", "/dead/redrive", "text/html", form));
        while !SENDS.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        console.interrupt();
        answer.join().unwrap()
    });
    console.ended();
    // No other page comes after it, so this one says it.
    assert!(status == 200 && page.contains("1 dead letter sent back to orders."), "{status} {page}");
    assert_eq!(asked(&server, &["DeleteMessageBatch"]), 1);
}

#[test]
fn a_time_of_another_day_has_its_date() {
    let server = Server::start(crowded);
    let console = Running::start(&server, &[]);
    let causes = console.page("/dead?read=true");
    assert!(causes.contains(">2023-11-14 22:13:20<"), "{causes}");
    console.stop();
}

/// The actions of the policy in the book that is the first or the second.
fn policy(number: usize) -> BTreeSet<String> {
    let book = include_str!("../../../../docs/commands.md").split_once("### The least rights").unwrap().1;
    let policy = book.split("```json").nth(number).unwrap().split("```").next().unwrap();
    let policy: Value = serde_json::from_str(policy).unwrap();
    let statements = policy["Statement"].as_array().unwrap().iter();
    statements.flat_map(|s| s["Action"].as_array().unwrap()).map(|action| action.as_str().unwrap().to_owned()).collect()
}

/// The permission that a request needs.
fn action(request: &str) -> String {
    let target = request.lines().find(|line| line.to_ascii_lowercase().starts_with("x-amz-target:"));
    let path = request.split(' ').nth(1).unwrap();
    let lambda = match request.split(' ').next().unwrap() {
        "PUT" => "UpdateEventSourceMapping",
        _ if path.starts_with("/schedules") => return "scheduler:ListSchedules".to_owned(),
        _ if request.contains("Action=ListStackResources") => return "cloudformation:ListStackResources".to_owned(),
        _ if path.contains("/event-source-mappings/") => "GetEventSourceMapping",
        _ if path.contains("/event-source-mappings") => "ListEventSourceMappings",
        _ => "GetFunction",
    };
    let Some((service, operation)) = target.and_then(|target| target.split_once(':')?.1.trim().split_once('.')) else {
        return format!("lambda:{lambda}");
    };
    let service = match service {
        "AmazonSQS" => "sqs",
        "Logs_20140328" => "logs",
        _ => "dynamodb",
    };
    format!("{service}:{}", operation.trim_end_matches("Batch"))
}

#[test]
fn the_rights_in_the_book_are_those_that_the_pages_need() {
    let asked =
        |server: &Server| -> BTreeSet<String> { server.requests.lock().unwrap().iter().map(|r| action(r)).collect() };
    let server = Server::start(shop);
    let console = Running::start(&server, &["--logs"]);
    for path in ["/", "/keys", "/keys?state=rejected", "/keys/order%23o-9", "/dead?read=true", "/send", "/messages"] {
        console.page(path);
    }
    console.page(&format!("/messages/{REJECTED}?read=true"));
    console.stop();
    assert_eq!(asked(&server), policy(1));

    let server = Server::start(shop);
    let console = Running::start(&server, &["--allow-writes"]);
    for (path, form) in [
        ("/mappings", "function=worker&enabled=false"),
        ("/send", "queue=orders&body=x"),
        ("/keys/order%23o-9", "act=release&why=price+is+there"),
        ("/dead/redrive", "queue=orders-dead&id=aaaa0000-0000-4000-8000-000000000001"),
    ] {
        let (status, done) = console.ask("POST", path, "application/json", form);
        let done: Value = serde_json::from_str(&done).unwrap();
        assert!(status == 200 && done["notice"]["done"] == true, "{path}: {status} {done}");
    }
    console.stop();
    let (mut asked, allowed) = (asked(&server), policy(2));
    // That is for functions whose breakers pause mappings: the book has it beside the policies.
    assert!(asked.remove("scheduler:ListSchedules"));
    assert!(asked.is_superset(&allowed), "{asked:?} lacks some of {allowed:?}");
    let all: BTreeSet<_> = allowed.union(&policy(1)).cloned().collect();
    assert!(asked.is_subset(&all), "{:?}", asked.difference(&all));
}

#[test]
fn outcomes_of_a_stack_are_followed_each_once() {
    let server = Server::start(shop);
    let (_, out, err) = server.claimant(&["tail", "--stack", "shop", "--limit=1", "--json"]);
    let line: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert_eq!((&line["function"], &line["seen"]["message_id"]), (&json!("worker"), &json!(DONE)));
    assert_eq!(line["seen"]["outcomes"], json!({"completed": 1}));
    assert_eq!(asked(&server, &CHANGES) + asked(&server, &RECEIVES), 0);
    let refused = Server::start(|request| if request.contains("Logs_20140328") { shop("") } else { shop(request) });
    let (code, _, err) = refused.claimant(&["tail", "--stack", "shop", "--all"]);
    assert!(code == Some(2) && err.contains("permission for FilterLogEvents"), "{err}");
}

/// Answers as [`shop`] does, of a function that logs the messages of `order`, and then no more of them, and of `stock` only batches; another
/// process of it logs only batches.
fn batches_too(request: &str) -> (u16, String) {
    if !request.contains("Logs_20140328.FilterLogEvents") {
        return shop(request);
    }
    let lines = [
        r#"{"message":"message done","consumer":"order","message_id":"m-1","outcome":"retry"}"#,
        r#"{"message":"message done","consumer":"order","message_id":"m-2","outcome":"completed"}"#,
        r#"{"message":"batch done","consumer":"order","received":1,"duplicate":1}"#,
        r#"{"message":"batch done","consumer":"order","received":2,"retry":1,"completed":1}"#,
        r#"{"message":"batch done","consumer":"stock","received":3,"completed":3}"#,
        r#"{"message":"batch done","consumer":"order","received":4,"completed":4}"#,
    ];
    let event = |(n, line): (usize, &&str)| {
        let (at, process) = (1_900_000_000_000 + n, if line.contains("duplicate") { "other" } else { "s" });
        json!({"eventId": n.to_string(), "timestamp": at, "logStreamName": process, "message": line})
    };
    (200, json!({"events": lines.iter().enumerate().map(event).collect::<Vec<_>>()}).to_string())
}

#[test]
fn a_message_is_followed_once_and_not_in_its_batch_again() {
    let server = Server::start(batches_too);
    let (code, out, err) = server.claimant(&["tail", "--stack", "shop", "--limit=5", "--json"]);
    let seen = |line: &str| {
        let seen = serde_json::from_str::<Value>(line).unwrap()["seen"].take();
        format!("{} {} {}", seen["consumer"], seen["message_id"], seen["outcomes"])
    };
    let shown: Vec<_> = out.lines().map(seen).collect();
    assert_eq!(
        shown,
        [
            r#""order" "m-1" {"retry":1}"#,
            r#""order" "m-2" {"completed":1}"#,
            r#""order" null {"duplicate":1}"#,
            r#""stock" null {"completed":3}"#,
            r#""order" null {"completed":4}"#,
        ],
        "{code:?}: {err}"
    );
}

#[test]
fn what_cannot_be_shown_is_an_error_before_anything_is_served() {
    let nothing = Server::start(|_| (403, json!({"__type": "AccessDeniedException", "message": "no"}).to_string()));
    for (args, says) in [
        (&["--stack", "shop"][..], "cloudformation:ListStackResources"),
        (&["--local=http://127.0.0.1:1"], "no local cloud"),
    ] {
        let (code, out, err) = nothing.claimant(&[&["console"], args].concat());
        assert!(code == Some(2) && err.contains(says), "{args:?}: {err}");
        assert!(out.is_empty(), "{out}");
    }
}

#[test]
fn letters_of_a_queue_that_is_left_out_are_not_passed_over() {
    let server = Server::start(without_parcels);
    let console = Running::start(&server, &[]);
    for (path, is_not_said) in [("/dead", "here has a"), ("/dead?read=true", "There is no dead letter")] {
        let page = console.page(path);
        assert!(page.contains("parcels, which is left out") && !page.contains(is_not_said), "{path}: {page}");
    }
    let (_, dead) = console.ask("GET", "/dead", "application/json", "");
    let dead: Value = serde_json::from_str(&dead).unwrap();
    assert!(dead["left_out"][0].as_str().is_some_and(|one| one.contains("parcels")), "{dead}");
    let page = console.page(&format!("/messages/{DONE}?read=true"));
    assert!(page.contains("No dead-letter queue is known here") && !page.contains("It is not among"), "{page}");
    assert!(page.contains("parcels, which is left out"), "{page}");
    console.stop();
}

/// Answers as [`shop`] does, of a function that reads a queue more, which is gone.
fn with_a_queue_gone(request: &str) -> (u16, String) {
    parcels_gone(request).unwrap_or_else(|| half_closed(request))
}

/// Nor does a command: it says how to name each.
#[test]
fn dead_letters_that_are_not_all_known_are_to_be_named() {
    let server = Server::start(with_a_queue_gone);
    let (code, out, err) = server.claimant(&["dead", "list", "--stack", "shop"]);
    assert!(code == Some(2), "{out}{err}");
    for said in ["with --queue, of orders-dead;", "not among them by its URL, with --queue and without --stack"] {
        assert!(err.contains(said), "{said}: {err}");
    }
}

/// The breaker closes, and nothing is received all the same.
#[test]
fn a_breaker_that_is_released_leaves_its_pause_which_is_said() {
    let server = Server::start(paused_by_gateway);
    let console = Running::start(&server, &["--allow-writes"]);
    for (breaker, paused) in [("gateway", 1), ("mail", 0)] {
        let path = format!("/keys/claimant-breaker%23{breaker}");
        let (status, done) = console.ask("POST", &path, "application/json", "act=release&force=true");
        let done: Value = serde_json::from_str(&done).unwrap_or_else(|e| panic!("{e}: {status} {done}"));
        let said = done["notice"]["text"].as_str().unwrap();
        assert!(done["notice"]["done"] == true && said.contains("the breaker is closed"), "{done}");
        // It names a consumer in the place of a message.
        assert!(!console.page(&path).contains("href=\"/messages/"), "{path}");
        assert_eq!(said.contains("worker from orders is paused, and on again at 2030"), paused == 1, "{done}");
        assert_eq!(done["result"]["paused"].as_array().map(Vec::len), Some(paused), "{done}");
    }
    console.stop();
}

#[test]
fn an_overview_says_that_it_does_not_know_who_paused_a_function() {
    let server = Server::start(off_for_a_reason_not_told);
    let console = Running::start(&server, &[]);
    let (_, overview) = console.ask("GET", "/", "application/json", "");
    let overview: Value = serde_json::from_str(&overview).unwrap();
    assert_eq!(overview["functions"][0]["mappings"][0]["state"], "Disabled", "{overview}");
    let untold = overview["untold"].to_string();
    assert!(untold.contains("Whether a breaker has paused what is off is not known: "), "{untold}");
    assert!(untold.contains("scheduler:ListSchedules"), "{untold}");
    console.stop();
}
