//! What the pages of dead letters, sending, effects, faults and the doctor show and do, on a local cloud, over HTTP.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where they stand, as tests do")]

use std::collections::BTreeMap;
use std::time::Duration;

use claimant_console::source::LocalCloud;
use claimant_console::{Console, bind, serve};
use claimant_core::{Clock as _, ConsumerName, Key, RecordId, SystemClock};
use claimant_local::cloud::{Binaries, Cloud, CloudConfig};
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A function whose program is never built, its queue, and a dead-letter queue.
const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Parameters: {Stage: {Type: String, Default: to be given, AllowedValues: [dev, prod]}}
Resources:
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Dead: {Type: AWS::SQS::Queue}
  Points: {Type: AWS::SQS::Queue, Properties: {QueueName: Points.fifo, FifoQueue: true}}
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
      Environment: {Variables: {CLAIMANT_TABLE: !Ref Locks}}
      Events: {Orders: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}}
";

const SAMPLES: &str = r#"{"queue": "Orders", "samples": [
    {"title": "An <b>order</b>", "body": {"z": 1.50, "order_id": "ord-{n}"}},
    {"title": "Not JSON", "body": "</textarea><script>alert(1)</script>"}]}"#;

/// The most bytes of a page.
const PAGE_MAX: usize = 1 << 20;

struct World {
    _directory: TempDir,
    cloud: Cloud,
    address: String,
    stop: watch::Sender<bool>,
    server: JoinSet<()>,
}

impl World {
    async fn start() -> Self {
        Self::of("").await
    }

    /// Starts it with more resources.
    async fn of(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let template = directory.path().join("template.yaml");
        std::fs::write(&template, format!("{TEMPLATE}{more}")).unwrap();
        std::fs::create_dir(directory.path().join("samples")).unwrap();
        std::fs::write(directory.path().join("samples/orders.json"), SAMPLES).unwrap();
        let config = CloudConfig::new(&template, directory.path());
        let binaries = Binaries { wait: true, search: true, ..config.binaries.clone() };
        let parameters = [("Stage".to_owned(), "dev".to_owned())].into();
        let cloud = Cloud::start(CloudConfig { binaries, parameters, ..config }).await.unwrap();
        claimant_local::workload::show_effects(&cloud);
        let (listener, _) = bind(0).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let console = Console::new(LocalCloud::open(cloud.view()).await.unwrap());
        let (stop, mut stopped) = watch::channel(false);
        let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        let mut server = JoinSet::new();
        server.spawn(async move { serve(console, listener, stopped).await.unwrap() });
        Self { _directory: directory, cloud, address, stop, server }
    }

    /// Puts a copy in the dead-letter queue, as a function does.
    fn letter(&self, error: &str, body: &str) {
        self.letter_of(error, body, &[]);
    }

    /// Puts a copy in the dead-letter queue that has these attributes, too.
    fn letter_of(&self, error: &str, body: &str, more: &[(&str, &str)]) {
        self.letter_in("Dead", (error, body), more);
    }

    fn letter_in(&self, queue: &str, (error, body): (&str, &str), more: &[(&str, &str)]) {
        let said = [
            ("claimant-error", error),
            ("claimant-outcome", "rejected"),
            ("claimant-consumer", "order"),
            ("claimant-record", "order#<7>"),
        ];
        let attributes = said.iter().chain(more).map(|(name, value)| text(name, value)).collect();
        let message = NewMessage { message_attributes: attributes, ..NewMessage::new(body) };
        self.cloud.sqs().send(queue, message).unwrap();
    }

    /// Writes the record of a key that was completed two seconds ago.
    async fn completed(&self, id: &str) {
        self.completed_by("o", id).await;
    }

    async fn completed_by(&self, owner: &str, id: &str) {
        let now_ms = SystemClock.now().as_millis();
        let number = |ms: u64| json!({ "N": ms.to_string() });
        let item = json!({
            "id": { "S": id }, "status": { "S": "COMPLETED" }, "owner": { "S": owner }, "fence": number(1),
            "lease_until": number(now_ms), "attempts": number(1), "message_id": { "S": "m" },
            "fingerprint": { "B": format!("{}=", "A".repeat(43)) }, "created_at": number(now_ms - 2_000),
            "updated_at": number(now_ms - 2_000), "completed_at": number(now_ms - 2_000),
            "expires_at": number(now_ms / 1_000 + 3_600),
        });
        let url = &self.cloud.endpoints().dynamodb;
        aws(url, "DynamoDB_20120810.PutItem", &json!({ "TableName": "Locks", "Item": item })).await;
    }

    async fn gone(&self, id: &str) {
        let url = &self.cloud.endpoints().dynamodb;
        let delete = json!({ "TableName": "Locks", "Key": { "id": { "S": id } } });
        aws(url, "DynamoDB_20120810.DeleteItem", &delete).await;
    }

    fn bodies(&self, queue: &str) -> Vec<String> {
        self.cloud.sqs().messages(queue).unwrap().into_iter().map(|message| message.body).collect()
    }

    /// Asks; returns the status, and the head and body of the answer.
    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
    }

    /// Returns a page as a browser gets it.
    async fn html(&self, path: &str) -> String {
        let (status, _, page) = self.ask("GET", path, "Accept: text/html\r\n", "").await;
        assert_eq!(status, 200, "{path}: {page}");
        assert!(page.len() < PAGE_MAX, "{path} has {} bytes", page.len());
        page
    }

    /// Sends a form as a browser does; returns where it leads.
    async fn form(&self, path: &str, fields: &str) -> String {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let (status, head, answer) = self.ask("POST", path, form, fields).await;
        assert_eq!(status, 303, "{answer}");
        head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().to_owned()
    }

    async fn json(&self, path: &str) -> Value {
        let (status, _, page) = self.ask("GET", path, "Accept: application/json\r\n", "").await;
        assert_eq!(status, 200, "{path}: {page}");
        serde_json::from_str(&page).unwrap()
    }

    async fn post(&self, path: &str, fields: &Value) -> (u16, Value) {
        let headers = "Accept: application/json\r\nContent-Type: application/json\r\n";
        let (status, _, answer) = self.ask("POST", path, headers, &fields.to_string()).await;
        (status, serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}")))
    }

    /// Sends a form as a browser does; returns what its notice says, and whether it says so in red.
    async fn notice(&self, path: &str, fields: &str) -> (String, bool) {
        let page = self.html(&self.form(path, fields).await).await;
        let notice = page.split_once(r#" class="notice"#).unwrap_or_else(|| panic!("{page}")).1;
        (notice.split_once("</p>").unwrap().0.rsplit('>').next().unwrap().to_owned(), notice.starts_with(" refused"))
    }

    /// Returns what a page that is open gets when it asks for its live part again.
    async fn redrawn(&self, path: &str) -> (u16, String) {
        let (status, _, page) = self.ask("GET", path, "HX-Request: true\r\n", "").await;
        (status, page)
    }

    /// Stops the console as soon as this is so.
    async fn stop_once(&self, is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.stop.send_replace(true);
    }

    async fn group(&self) -> String {
        let dead = self.json("/dead").await;
        format!("/dead/{}?queue=Dead", dead["queues"][0]["causes"][0]["group"].as_str().unwrap())
    }
}

fn text(name: &str, value: &str) -> (String, MessageAttribute) {
    let value = AttributeValue::Text(value.to_owned());
    (name.to_owned(), MessageAttribute { data_type: "String".to_owned(), value })
}

/// Returns a message of this group.
fn grouped(group: &str, message: NewMessage) -> NewMessage {
    let id = message.deduplication_id.clone().unwrap_or_else(|| message.body.clone());
    NewMessage { group_id: Some(group.to_owned()), deduplication_id: Some(id), ..message }
}

/// Asks an endpoint of the cloud in the AWS JSON protocol.
async fn aws(url: &str, action: &str, request: &Value) {
    let (host, request) = (url.trim_start_matches("http://"), request.to_string());
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = request.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nX-Amz-Target: {action}\r\nContent-Type: application/x-amz-json-1.0\r\nAuthorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\nX-Amz-Date: 20260101T000000Z\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{request}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Returns text as a browser sends it in a form.
fn typed(text: &str) -> String {
    percent_encoding::utf8_percent_encode(&text.replace('\n', "\r\n"), percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_sent() {
    let world = World::start().await;
    let page = world.html("/send").await;
    assert!(page.contains("An &lt;b&gt;order&lt;/b&gt;") && !page.contains("<b>order"), "{page}");
    assert!(page.contains("&quot;z&quot;: 1.50,"), "{page}");
    let page = world.html("/send?queue=Orders&sample=1").await;
    assert!(page.contains("&lt;/textarea&gt;&lt;script&gt;") && !page.contains("<script>alert"), "{page}");

    let (status, done) =
        world.post("/send", &json!({"queue": "Orders", "body": "{\"id\": \"{n}\"}", "preset": "bulk"})).await;
    assert_eq!((status, &done["result"]["sent"]), (200, &json!(40)), "{done}");
    let bodies = world.bodies("Orders");
    let different: std::collections::BTreeSet<_> = bodies.iter().collect();
    assert_eq!((bodies.len(), different.len()), (40, 20));

    let place = world.form("/send", "queue=Orders&body=x%0D%0Ay&copies=2&envelope=sns").await;
    assert!(place.contains("sent=") && place.contains("notice="), "{place}");
    let page = world.html(&place).await;
    assert!(page.contains("2 messages sent to Orders.") && page.contains("href=\"/messages/"), "{page}");
    assert!(world.bodies("Orders")[41].contains(r#""Message":"x\ny""#));
    // A program means each byte that it sends.
    world.post("/send", &json!({"queue": "Orders", "body": "a\r\nb"})).await;
    assert_eq!(world.bodies("Orders").last().unwrap(), "a\r\nb");
    for (fields, wanted) in [
        (json!({"queue": "Orders"}), "no empty body"),
        (json!({"queue": "Nowhere", "body": "x"}), "has no queue Nowhere"),
        (json!({"queue": "Orders", "body": "x", "envelope": "s3", "count": 0}), "count is a whole number"),
    ] {
        let (status, refused) = world.post("/send", &fields).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(wanted), "{refused}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_shown_as_text_and_acted_on() {
    let world = World::start().await;
    assert!(world.html("/dead").await.contains("No dead letters"));
    for n in 0..4 {
        world.letter(&format!("order {n} has <i>no</i> price"), &format!("<script>alert({n})</script>"));
    }
    let page = world.html("/dead").await;
    assert!(page.contains("order # has &lt;i&gt;no&lt;/i&gt; price") && !page.contains("<i>"), "{page}");
    let group = world.group().await;
    let page = world.html(&group).await;
    assert!(page.contains("&lt;script&gt;alert(3)") && !page.contains("<script>alert"), "{page}");
    let letters = world.json(&group).await["letters"].clone();
    let id = |n: usize| letters[n]["message_id"].as_str().unwrap().to_owned();
    assert_eq!((letters.as_array().unwrap().len(), &letters[0]["receives"]), (4, &json!(0)));

    let (status, done) = world.post("/dead/redrive", &json!({"queue": "Dead", "id": id(0)})).await;
    assert_eq!((status, &done["notice"]["text"]), (200, &json!("1 dead letter sent back to Orders.")));
    let edited = json!({"queue": "Dead", "id": id(1), "body": "{\"price\": 1}", "to": "Orders"});
    assert!(world.html(&format!("{group}&edit={}", id(1))).await.contains("<textarea"));
    assert_eq!(world.post("/dead/redrive", &edited).await.0, 200);
    assert_eq!(world.bodies("Orders"), ["<script>alert(0)</script>", "{\"price\": 1}"]);
    let (status, _, _) = world.ask("GET", &format!("{group}&edit={}", id(1)), "", "").await;
    assert_eq!(status, 404);
    let (_, again) = world.post("/dead/redrive", &edited).await;
    assert_eq!(again["notice"]["done"], json!(false), "{again}");

    let fingerprint = letters[0]["group"].as_str().unwrap();
    let (_, done) = world.post("/dead/discard", &json!({"queue": "Dead", "group": fingerprint})).await;
    let said = done["notice"]["text"].as_str().unwrap();
    let path = said.split_once("saved in ").unwrap().1.trim_end_matches('.');
    assert_eq!(done["result"]["saved"], json!(path));
    let saved = std::fs::read_to_string(path).unwrap();
    assert!(
        said.starts_with("2 dead letters discarded") && saved.lines().count() == 2 && saved.contains("alert(3)"),
        "{said}"
    );
    std::fs::remove_file(path).unwrap();
    assert!(world.bodies("Dead").is_empty());
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_gone_takes_no_other_from_the_overview() {
    let world = World::start().await;
    let url = &world.cloud.endpoints().sqs;
    let queue = format!("{}/000000000000/Orders", url.trim_end_matches('/'));
    aws(url, "AmazonSQS.DeleteQueue", &json!({ "QueueUrl": queue })).await;
    let overview = world.json("/").await;
    assert_eq!(overview["untold"], json!(["The queue Orders is gone."]));
    let names: Vec<_> = overview["queues"].as_array().unwrap().iter().map(|queue| &queue["name"]).collect();
    assert_eq!(names, ["Dead", "Points.fifo"]);
    let (_, page) = world.redrawn("/").await;
    for said in ["The queue Orders is gone.", ">Outcomes<", ">Invocations<"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    world.cloud.stop().await;
}

/// Two functions that copy what they give up on to a queue of their own, beside what SQS moves.
const COPIED: &str = "
  Lost: {Type: AWS::SQS::Queue}
  Given: {Type: AWS::SQS::Queue}
  Parcels:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Lost.Arn, maxReceiveCount: 5}}
  Returns: {Type: AWS::SQS::Queue}
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

/// Where none is found, that is not that there is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_table_that_is_not_there_is_told_among_the_keys() {
    let confirm =
        TEMPLATE.split_once("  Confirm:").unwrap().1.replace("Orders", "Parcels").replace("!Ref Locks", "Lokcs");
    let world = World::of(&format!("  Parcels: {{Type: AWS::SQS::Queue}}\n  Pack:{confirm}")).await;
    for path in ["/keys", "/keys?text=7"] {
        let page = world.html(path).await;
        assert!(page.contains("Pack has CLAIMANT_TABLE=Lokcs, and there is no such table."), "{page}");
        assert!(page.contains("Not all records are known") && !page.contains("No key has been claimed yet"), "{page}");
    }
    world.cloud.stop().await;
}

/// `claimant dead list` has that of the letter, and a timeline that of the message.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_has_its_own_id_beside_that_of_its_message() {
    let world = World::start().await;
    world.letter_of("no price", "a", &[("claimant-message-id", "12345678-1111-4111-8111-111111111111")]);
    let group = world.group().await;
    let own = world.json(&group).await["letters"][0]["message_id"].as_str().unwrap().to_owned();
    let page = world.html(&group).await;
    assert!(
        page.contains(&format!("title=\"{own}\">letter {}</span>", &own[..8])) && page.contains(">12345678</a>"),
        "{page}"
    );
    world.cloud.stop().await;
    // One that SQS moved has one id.
    let world = World::start().await;
    world.letter("no price", "a");
    let page = world.html(&world.group().await).await;
    assert!(page.contains("class=\"letter card\"") && !page.contains(">letter "), "{page}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_a_function_copied_to_another_queue_count_and_go_back() {
    let world = World::of(COPIED).await;
    world.letter_in("Given", ("no price", "{}"), &[]);
    let page = world.html("/").await;
    let row = page.split("<tr").find(|row| row.contains(">Parcels<")).unwrap();
    assert!(row.contains(r#"<a class="bad" href="/dead">1</a>"#), "{row}");
    let dead = world.json("/dead").await;
    let given = dead["queues"].as_array().unwrap().iter().find(|queue| queue["name"] == "Given").unwrap();
    assert_eq!(given["of"], json!(["Parcels"]), "{dead}");
    let group = given["causes"][0]["group"].as_str().unwrap().to_owned();
    let page = world.html(&format!("/dead/{group}?queue=Given")).await;
    assert!(page.contains("Every letter of this cause goes back to Parcels,"), "{page}");
    let said = world.notice("/dead/redrive", &format!("queue=Given&group={group}")).await;
    assert_eq!(said, ("1 dead letter sent back to Parcels.".to_owned(), false));
    world.cloud.stop().await;

    // Of two, none is guessed.
    let second = COPIED.split_once("  Pack:").unwrap().1.replace("Parcels", "Returns").replace("pack", "take");
    let world = World::of(&format!("{COPIED}  Take:{second}")).await;
    world.letter_in("Given", ("no price", "{}"), &[]);
    let page = world.html(&format!("/dead/{group}?queue=Given")).await;
    assert!(page.contains("They may belong to any of Parcels, Returns: "), "{page}");
    assert!(
        !page.contains("Send all back") && !page.contains(">Send back<") && page.contains("Edit and send"),
        "{page}"
    );
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_letters_are_pages_of_less_than_a_mebibyte() {
    let world = World::start().await;
    let body = "\"".repeat(5_000);
    for n in 0..300_u32 {
        // Half of one cause, the others each of its own.
        let error = if n % 2 == 0 { "no price".to_owned() } else { format!("{:a<900}", "x".repeat(n as usize)) };
        world.letter(&error, &body);
    }
    let dead = world.json("/dead").await;
    assert_eq!(
        (&dead["queues"][0]["letters"], dead["queues"][0]["causes"].as_array().unwrap().len()),
        (&json!(300), 100)
    );
    world.html("/dead").await;
    let group = world.group().await;
    let letter = &world.json(&group).await["letters"][0];
    assert_eq!((letter["body"].as_str().unwrap().len(), &letter["cut_from"]), (4_096, &json!(5_000)));
    let whole = world.html(&format!("{group}&edit={}", letter["message_id"].as_str().unwrap())).await;
    assert!(whole.contains(&"&quot;".repeat(5_000)), "a letter that is edited is whole");
    let (mut seen, mut next) = (0, Some(group.clone()));
    while let Some(path) = next.take() {
        world.html(&path).await;
        let page = world.json(&path).await;
        seen += page["letters"].as_array().unwrap().len();
        next = page["next"].as_u64().map(|after| format!("{group}&after={after}"));
    }
    assert_eq!(seen, 150);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_letters_with_long_attributes_are_pages_of_less_than_a_mebibyte() {
    let world = World::start().await;
    let long = "\"".repeat(40_000);
    for n in 0..500_u32 {
        world.letter_of("no price", &n.to_string(), &[("token", &long), ("tenant", "t-1")]);
    }
    assert!(world.html("/dead").await.contains("500"));
    let group = world.group().await;
    let page = world.html(&group).await;
    assert!(page.contains("The first 200 of 40,000 bytes") && page.contains("t-1"), "{page}");
    let letters = world.json(&group).await["letters"].clone();
    assert_eq!(letters[0]["attributes"], json!([["tenant", "t-1", null], ["token", "\"".repeat(200), 40_000]]));
    let whole = world.html(&format!("{group}&edit={}", letters[0]["message_id"].as_str().unwrap())).await;
    assert!(whole.contains(&"&quot;".repeat(40_000)), "of a letter that is edited all is shown");
    world.cloud.stop().await;
}

/// Behind the letters that a page looks at, as before them.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_of_a_later_page_is_edited() {
    let world = World::start().await;
    for n in 0..2_100 {
        world.letter("no price", &n.to_string());
    }
    let group = world.group().await;
    let (mut path, mut page) = (group.clone(), world.json(&group).await);
    while let Some(next) = page["next"].as_u64() {
        path = format!("{group}&after={next}");
        page = world.json(&path).await;
    }
    let drawn = world.html(&path).await;
    let edit = drawn.split("href=\"").find(|link| link.contains("edit=")).unwrap().split('"').next().unwrap();
    let edited = world.html(&edit.replace("&amp;", "&")).await;
    assert!(edited.contains("<textarea") && edited.contains(&path.replace('&', "&amp;")), "{edited}");
    // What was typed is there again where it was refused.
    let hidden = |name: &str| {
        let (_, value) = edited.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}"));
        value.split('"').next().unwrap()
    };
    let names = ["queue", "id", "group", "after"];
    let form = names.map(|name| format!("{name}={}", typed(hidden(name)))).join("&");
    let again = world.html(&world.form("/dead/redrive", &format!("{form}&to=Points.fifo&body=typed")).await).await;
    assert!(again.contains("typed</textarea>") && again.contains("role=\"alert\""), "{again}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_does_not_follow_says_so() {
    let world = World::start().await;
    world.completed("order#1").await;
    for (path, is_still) in [("/keys", true), ("/send", true), ("/doctor", true), ("/messages", false), ("/", false)] {
        let page = world.html(path).await;
        assert_eq!(page.contains("This page stays as it is"), is_still, "{path}: {page}");
    }
    // Nor does it have times that would have to move.
    let page = world.html("/keys").await;
    assert!(page.contains("order#1") && page.contains("<time ") && !page.contains(" ago"), "{page}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_faults_and_findings_are_shown() {
    let world = World::start().await;
    assert!(world.html("/effects").await.contains("Nothing was done yet"));
    assert!(world.html("/faults").await.contains("No fault acts"));
    let (status, begun) = world.post("/faults", &json!({"act": "refuse", "of": "mail", "times": 3})).await;
    assert_eq!((status, &begun["result"]["times"]), (200, &json!(3)), "{begun}");
    let page = world.html("/faults").await;
    assert!(page.contains("waits to act 3 times more") && page.contains("End it"), "{page}");
    // Drawn again, a button stays that of its own fault, and says which that is.
    let id = &begun["result"]["id"];
    for said in [format!("id=\"fault-{id}\""), format!("aria-label=\"End it (fault {id}, refuses mails)\"")] {
        assert!(page.contains(&said), "{said} is not in {page}");
    }
    let (_, ended) = world.post("/faults/end", &json!({"id": begun["result"]["id"]})).await;
    assert!(ended["result"][0]["ended_ms"].is_u64(), "{ended}");
    let (status, refused) = world.post("/faults", &json!({"act": "refuse", "of": "table"})).await;
    assert!(status == 400 && refused["error"].as_str().unwrap().contains("give mail or gateway"), "{refused}");
    let findings = world.json("/doctor").await["findings"].as_array().unwrap().len();
    let page = world.html("/doctor").await;
    assert!(findings > 0 && page.matches("Fix: ").count() == findings, "{page}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_edited_keeps_its_line_ends() {
    let world = World::start().await;
    let lines = "a\r\nb\rc\nd";
    // As a browser sends what a textarea shows.
    let untouched = "body=a%0D%0Ab%0D%0Ac%0D%0Ad";
    for _ in 0..3 {
        world.letter("no price", lines);
    }
    let group = world.group().await;
    let letters = world.json(&group).await["letters"].clone();
    let id = |n: usize| letters[n]["message_id"].as_str().unwrap().to_owned();
    let fields = |n: usize, body: &str| format!("queue=Dead&id={}&to=Orders&{body}", id(n));
    world.form("/dead/redrive", &fields(0, untouched)).await;
    world.form("/dead/redrive", &fields(1, &untouched.replace("=a", "=x"))).await;
    // A program means what it sends, also where it does not say what it accepts.
    let json = "Content-Type: application/json\r\n";
    let same_lines = json!({"queue": "Dead", "id": id(2), "to": "Orders", "body": "a\r\nb\nc\nd"}).to_string();
    assert_eq!(world.ask("POST", "/dead/redrive", json, &same_lines).await.0, 303);
    assert_eq!(world.bodies("Orders"), [lines, "x\nb\nc\nd", "a\r\nb\nc\nd"]);

    // So with a message that is sent again.
    let message = world.cloud.sqs().messages("Orders").unwrap()[0].message_id.clone();
    let page = world.html(&format!("/send?message={message}")).await;
    assert!(page.contains(&format!(r#"name="message" value="{message}""#)), "{page}");
    for body in [untouched, &untouched.replace("0Ad", "0Ae")] {
        world.form("/send", &format!("queue=Orders&message={message}&{body}")).await;
    }
    // A program may leave the queue out; and it may mean a change of white space or line ends alone.
    for body in ["a\nb\nc\nd", " a"] {
        assert_eq!(world.post("/send", &json!({ "message": message, "body": body })).await.0, 200);
    }
    let same_lines = json!({ "message": message, "body": "a\r\nb\nc\nd" }).to_string();
    assert_eq!(world.ask("POST", "/send", json, &same_lines).await.0, 303);
    assert_eq!(world.bodies("Orders")[3..], [lines, "a\nb\nc\ne", "a\nb\nc\nd", " a", "a\r\nb\nc\nd"]);
    world.cloud.stop().await;
}

/// Returns the number of the first form of a page.
fn form_of(page: &str) -> &str {
    page.split_once(r#"name="form" value=""#).unwrap().1.split('"').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_stays_until_it_is_sent_and_is_sent_once() {
    let world = World::start().await;
    let typed = "queue=Points.fifo&body=%3Cb%3E+%22typed%22&count=3&copies=x&shuffle=true&type=t";
    for (wanted, more) in
        [("Copies is a whole number from 1 to 10000.", ""), ("A FIFO queue needs a message group", "&copies=2")]
    {
        let place = world
            .form(
                "/send",
                &format!("{}{more}", typed.replace("&copies=x", if more.is_empty() { "&copies=x" } else { "" })),
            )
            .await;
        let page = world.html(&place).await;
        assert!(page.contains(r#"role="alert""#) && page.contains(wanted), "{page}");
        assert!(page.contains("&lt;b&gt; &quot;typed&quot;</textarea>") && page.contains("<details open>"), "{page}");
        assert!(
            page.contains(r#"value="3""#)
                && page.contains("checked")
                && page.contains(r#"<option value="Points.fifo" selected>"#),
            "{page}"
        );
    }
    assert!(world.bodies("Points.fifo").is_empty());
    // A click that came twice counts once; a page that is drawn anew has a form of its own.
    let page = world.html("/send").await;
    let fields = format!("queue=Orders&body=once&form={}", form_of(&page));
    world.form("/send", &fields).await;
    let again = world.html(&world.form("/send", &fields).await).await;
    assert!(again.contains("1 message sent to Orders.") && again.contains("once</textarea>"), "{again}");
    assert_eq!(world.bodies("Orders"), ["once"]);
    world.form("/send", &format!("queue=Orders&body=more&form={}", form_of(&again))).await;
    assert_eq!(world.bodies("Orders"), ["once", "more"]);
    // So with a dead letter that SQS does not take back.
    world.letter("no price", "{}");
    let group = world.group().await;
    let id = world.json(&group).await["letters"][0]["message_id"].as_str().unwrap().to_owned();
    let fingerprint = group.split(['/', '?']).nth(2).unwrap();
    let fields = format!("queue=Dead&id={id}&group={fingerprint}&body=typed&to=Points.fifo");
    let page = world.html(&world.form("/dead/redrive", &fields).await).await;
    assert!(page.contains("typed</textarea>") && page.contains("role=\"alert\""), "{page}");
    assert!(page.contains(r#"<option value="Points.fifo" selected>"#), "{page}");
    assert_eq!(world.bodies("Dead").len(), 1);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_again_and_edited() {
    let world = World::start().await;
    let body = "{\"id\": \"{n}\", \"x\": \"</script>\u{202e}\u{1f600}\"}";
    world
        .cloud
        .sqs()
        .send(
            "Points.fifo",
            NewMessage {
                group_id: Some("ada".to_owned()),
                deduplication_id: Some("1".to_owned()),
                ..NewMessage::new(body)
            },
        )
        .unwrap();
    let id = world.cloud.sqs().messages("Points.fifo").unwrap()[0].message_id.clone();
    let page = world.html(&format!("/messages/{id}")).await;
    assert!(page.contains(&format!("/send?message={}", id.replace('-', "%2D"))), "{page}");
    let (status, done) = world.post("/send", &json!({ "message": id })).await;
    assert_eq!((status, &done["result"]["sent"]), (200, &json!(1)), "{done}");
    // Its very bytes, in its group.
    assert_eq!(world.bodies("Points.fifo"), [body, body]);
    let edited = world.html(&format!("/send?message={id}")).await;
    assert!(edited.contains("&quot;&lt;/script&gt;") && edited.contains(r#"value="ada""#), "{edited}");
    let place = world.form("/send", &format!("message={id}&form={}", form_of(&page))).await;
    assert!(place.starts_with("/messages/") && !place.contains(&id), "{place}");
    for (id, wanted) in [("../cloud", "letters, digits and hyphens"), ("00000000-0000", "no message of this id")] {
        let (status, refused) = world.post("/send", &json!({ "message": id })).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(wanted), "{refused}");
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_is_shown_as_it_is_or_refused_in_words() {
    let world = World::start().await;
    let long = "\u{1f600}".repeat(64 * 1024);
    for body in ["</textarea><script>alert(1)</script>", "\u{202e}evil", &long] {
        assert_eq!(world.post("/send", &json!({ "queue": "Orders", "body": body })).await.0, 200);
        assert_eq!(world.bodies("Orders").last().unwrap(), body);
        world.letter("odd <b>", body);
    }
    let page = world.html(&world.group().await).await;
    assert!(!page.contains("<script>alert") && !page.contains("<b>"), "{page}");
    for (fields, wanted) in [
        (json!({ "queue": "Orders", "body": "a\u{0}b" }), "Invalid characters found"),
        (json!({ "queue": "Orders", "body": "x".repeat(1 << 20) + "y" }), "has 1048577 bytes"),
        (json!({ "queue": ["a"], "body": 1 }), "has no queue a"),
        (json!({ "queue": "Orders", "body": "x", "count": 1.5 }), "count is a whole number"),
        (json!({ "queue": "Orders", "body": "x", "count": 10_000, "copies": 2 }), "10000 messages"),
        (json!({ "queue": "Orders", "body": "x", "delay": -1 }), "delay is a whole number"),
    ] {
        let (_, answer) = world.post("/send", &fields).await;
        let text = answer.to_string();
        assert!(text.contains(wanted) && !text.contains(r#""sent":1"#), "{text}");
    }
    for body in [json!([1, { "a": "b" }]), json!(["a", "b"]), json!([])] {
        assert_eq!(world.post("/send", &json!({ "queue": "Orders", "body": body })).await.0, 200);
        assert_eq!(*world.bodies("Orders").last().unwrap(), body.to_string());
    }
    for (path, body) in [("/send", "[]"), ("/send", "{"), ("/dead/redrive", "\"x\""), ("/faults", "null")] {
        let headers = "Accept: application/json\r\nContent-Type: application/json\r\n";
        let (status, _, answer) = world.ask("POST", path, headers, body).await;
        assert!(status == 400 && answer.contains("error"), "{path} {body}: {answer}");
    }
    for (path, status) in [
        ("/dead/%3Cscript%3E?queue=Dead", 400),
        ("/dead/abcd?queue=%00", 400),
        ("/dead/abcd", 400),
        ("/dead/redrive", 303),
        ("/faults/end", 303),
        ("/send?sample=-1", 400),
        ("/send?draft=1&sample=99&queue=%F0%9F", 200),
        ("/messages/%2F..%2F%00", 404),
    ] {
        let (answered, _, page) = world.ask("GET", path, "Accept: text/html\r\n", "").await;
        assert!(answered == status && !page.contains("<script>a"), "{path}: {answered} {page}");
    }
    for (path, wanted) in
        [("/keys/%ff%fe", "no UTF-8"), ("/messages?queue=nope", "has no queue \\\"nope\\\": it has Dead")]
    {
        let (status, _, answer) = world.ask("GET", path, "Accept: application/json\r\n", "").await;
        assert!(status == 400 && answer.starts_with(r#"{"error""#) && answer.contains(wanted), "{path}: {answer}");
    }
    // Keys that differ in white space look different.
    world.completed("order#a \t").await;
    // Nor is what was copied from a page not found.
    for path in ["/keys", "/keys?text=%24%27order%23a%20%5Ct%27", "/keys/order%23a%20%09"] {
        assert!(world.html(path).await.contains(r">$'order#a \t'</"), "{path}");
    }
    // Nor is a key that its consumer hashes.
    let hashed = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new("b").unwrap());
    world.completed(hashed.as_str()).await;
    assert!(world.html("/keys/order%23b").await.contains(hashed.as_str()));
    let (status, answer) = world.post("/keys/order%23b", &json!({ "act": "forget", "force": true })).await;
    assert_eq!((status, answer["result"]["record"].as_str()), (200, Some(hashed.as_str())), "the record that is shown");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_function_that_does_not_read_says_so() {
    let world = World::start().await;
    world.post("/send", &json!({ "queue": "Orders", "body": "x" })).await;
    let id = world.json("/messages").await["messages"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/messages/{}", &id[..8]);
    let (_, head, _) = world.ask("GET", &path, "", "").await;
    assert!(head.contains(&format!("location: /messages/{}", id.replace('-', "%2D"))), "{head}");
    for (is_on, why) in
        [(false, "Confirm, which reads Orders, is paused."), (true, "Confirm, which reads Orders, has no program yet.")]
    {
        world.post("/mappings", &json!({ "function": "Confirm", "enabled": is_on })).await;
        assert_eq!(world.json(&format!("/messages/{id}")).await["says"][1], why);
        assert!(world.html("/").await.contains(&format!("Messages wait. {why}")), "{why}");
    }
    assert!(world.html(&format!("/messages/{id}")).await.contains("None is known before its function reads it."));
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_gone_hides_no_other() {
    let world = World::start().await;
    world.letter("no price", "{}");
    let group = world.group().await;
    let url = format!("{}/000000000000/Dead", world.cloud.endpoints().sqs);
    aws(&world.cloud.endpoints().sqs, "AmazonSQS.DeleteQueue", &json!({ "QueueUrl": url })).await;
    let page = world.html("/dead").await;
    assert!(page.contains("role=\"alert\"") && page.contains("there is no queue at"), "{page}");
    assert!(world.json("/dead").await["queues"][0]["problem"].is_string());
    let (status, _, page) = world.ask("GET", &group, "Accept: text/html\r\n", "").await;
    assert!(status == 400 && page.contains("there is no queue at"), "{page}");
    let place = world.form("/dead/discard", "queue=Dead&group=abcd").await;
    assert!(place.starts_with("/dead/abcd?queue=Dead&notice="), "{place}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_another_reader_holds_is_not_said_to_be_gone() {
    let world = World::start().await;
    world.letter("no price", "{}");
    let group = world.group().await;
    let id = world.json(&group).await["letters"][0]["message_id"].clone();
    let of_group = json!({ "queue": "Dead", "group": group.split(['/', '?']).nth(2) });
    let _held = world.cloud.sqs().receive("Dead", 1, std::time::Duration::ZERO).await.unwrap();
    for (act, fields) in [
        ("/dead/redrive", json!({ "queue": "Dead", "id": id })),
        ("/dead/discard", json!({ "queue": "Dead", "id": id })),
        ("/dead/discard", of_group),
    ] {
        let (status, done) = world.post(act, &fields).await;
        assert_eq!((status, &done["notice"]["done"]), (200, &json!(false)), "{done}");
        let said = done["notice"]["text"].as_str().unwrap();
        assert!(said.contains("1 letter is hidden") && !said.contains("discarded meanwhile"), "{said}");
    }
    assert_eq!(world.bodies("Dead"), ["{}"]);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_stays_open_takes_no_other_forms_away() {
    let world = World::start().await;
    let page = world.html("/send").await;
    let fields = format!("queue=Orders&body=once&form={}", form_of(&page));
    for _ in 0..1_001 {
        let (status, _, _) = world.ask("GET", "/faults", "HX-Request: true\r\n", "").await;
        assert_eq!(status, 200);
    }
    for _ in 0..2 {
        world.form("/send", &fields).await;
    }
    assert_eq!(world.bodies("Orders"), ["once"]);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_turns_the_direction_of_a_page() {
    let world = World::start().await;
    world.letter("evil \u{202e}error", "\u{202e}body");
    let group = world.group().await;
    let (id, is_turned) = (world.json(&group).await["letters"][0]["message_id"].clone(), '\u{202e}');
    for page in [world.html("/dead").await, world.html(&group).await] {
        assert!(page.contains("evil \\u{202e}error") && !page.contains(is_turned), "{page}");
    }
    // What is sent back stays as it is.
    let edited = world.html(&format!("{group}&edit={}", id.as_str().unwrap())).await;
    assert_eq!(edited.matches(is_turned).count(), 1, "{edited}");
    assert!(edited.contains("\n\u{202e}body</textarea>"), "{edited}");
    world.cloud.stop().await;
}

/// Reads of a stream of events what comes within a second; returns it, and whether the stream ended.
async fn heard(stream: &mut TcpStream) -> (String, bool) {
    let (mut heard, mut some) = (Vec::new(), [0; 1_024]);
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
    loop {
        match tokio::time::timeout_at(until, stream.read(&mut some)).await {
            Ok(Ok(0)) => return (String::from_utf8(heard).unwrap(), true),
            Ok(read) => heard.extend(&some[..read.unwrap()]),
            Err(_) => return (String::from_utf8(heard).unwrap(), false),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_pages_that_are_open_leave_a_browser_its_connections() {
    let world = World::start().await;
    let listen = async || {
        let mut stream = TcpStream::connect(&world.address).await.unwrap();
        let request = format!("GET /live HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", world.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let mut streams = Vec::new();
    for _ in 0..7 {
        streams.push(listen().await);
        // What happened before the stream was there is seen at once, also where nothing happens after it.
        let (said, _) = heard(streams.last_mut().unwrap()).await;
        assert!(said.contains("event: changed"), "{said}");
    }
    let mut open = 0;
    for stream in &mut streams {
        open += usize::from(!heard(stream).await.1);
    }
    assert_eq!(open, 3);
    let (said, ended) = heard(&mut listen().await).await;
    assert!(ended && said.contains("event: changed") && said.contains("retry: 3000"), "{said}");
    // A page that is left makes room.
    drop(streams);
    world.cloud.sqs().send("Orders", NewMessage::new("x")).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert!(!heard(&mut listen().await).await.1);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_on_a_letter_hits_none_that_its_page_did_not_show() {
    let world = World::start().await;
    world.letter("no price", "a");
    let group = world.group().await;
    let letter = world.json(&group).await["letters"][0].clone();
    let (id, fingerprint) = (letter["message_id"].as_str().unwrap(), letter["group"].as_str().unwrap());
    // Sent back with another body, it was given up on again, for the same cause and for another.
    world.post("/dead/redrive", &json!({ "queue": "Dead", "id": id, "body": "b" })).await;
    let earlier = [("claimant-first-message-id", id), ("claimant-redrives", "1")];
    world.letter_of("no price", "b", &earlier);
    world.letter_of("no stock", "c", &earlier);
    for (act, fields) in [
        ("/dead/discard", json!({ "queue": "Dead", "id": id, "group": fingerprint })),
        ("/dead/redrive", json!({ "queue": "Dead", "id": id, "group": fingerprint })),
        ("/dead/discard", json!({ "queue": "Dead", "id": id })),
    ] {
        let (status, done) = world.post(act, &fields).await;
        assert_eq!((status, &done["notice"]["done"]), (200, &json!(false)), "{act} {done}");
    }
    assert_eq!((world.bodies("Dead"), world.bodies("Orders")), (vec!["b".into(), "c".into()], vec!["b".to_owned()]));
    assert_eq!(world.ask("GET", &format!("{group}&edit={id}"), "", "").await.0, 404);

    // All of a cause are those that were there when its page was drawn.
    let page = world.html(&group).await;
    let until = page.split_once(r#"name="until" value=""#).unwrap().1.split('"').next().unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.letter("no price", "later");
    let all = format!("queue=Dead&group={fingerprint}&until={until}&form={}", form_of(&page));
    let said = world.notice("/dead/redrive", &all).await;
    assert_eq!(said, ("1 dead letter sent back to Orders.".to_owned(), false));
    assert_eq!(world.bodies("Dead"), ["c", "later"]);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_names_nothing_does_not_mean_all() {
    let world = World::start().await;
    world.completed("order#1").await;
    world.letter("no price", "a");
    let group = world.group().await;
    let fingerprint = group.split(['/', '?']).nth(2).unwrap();
    for id in [json!([]), json!(null), json!(""), json!([""])] {
        for act in ["/dead/discard", "/dead/redrive"] {
            let (status, refused) = world.post(act, &json!({ "queue": "Dead", "group": fingerprint, "id": id })).await;
            assert!(status == 400 && refused["error"].as_str().unwrap().contains("id names no"), "{id} {refused}");
        }
    }
    for (fields, wanted) in
        [("id=", "Id names no letter"), ("until=", "Until names nothing"), ("to=", "Choose the queue")]
    {
        let said = world.notice("/dead/redrive", &format!("queue=Dead&group={fingerprint}&{fields}")).await;
        assert!(said.0.starts_with(wanted) && said.1, "{said:?}");
    }
    assert_eq!(world.bodies("Dead"), ["a"]);

    // So with what else would mean more, or something else.
    for _ in 0..2 {
        assert_eq!(world.post("/faults", &json!({ "act": "refuse", "of": "mail", "times": 3 })).await.0, 200);
    }
    for (path, fields) in [
        ("/dead/discard", json!({ "queue": "Dead", "group": fingerprint, "until": null })),
        ("/faults/end", json!({ "id": null })),
        ("/faults/end", json!({ "id": [] })),
        ("/faults/end", json!({ "id": "" })),
        ("/faults", json!({ "act": "kill", "function": "Confirm", "process": "" })),
    ] {
        let (status, refused) = world.post(path, &fields).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(" names nothing"), "{fields} {refused}");
    }
    let (_, refused) = world.post("/send", &json!({ "queue": "Orders", "body": "x", "message": "" })).await;
    assert_eq!(refused["error"], "message names nothing: fill it in, or leave it out");
    // What is corrected and was not found is not sent as it was.
    let id = world.json(&group).await["letters"][0]["message_id"].clone();
    let sent = world.cloud.sqs().send("Points.fifo", grouped("ada", NewMessage::new("old"))).unwrap().message_id;
    for (path, fields, wanted) in [
        ("/dead/redrive", json!({ "queue": "Dead", "id": id, "body": null }), "fill it in, or leave body out"),
        ("/dead/redrive", json!({ "queue": "Dead", "id": id, "body": "" }), "fill it in, or leave body out"),
        ("/dead/redrive", json!({ "queue": "Dead", "id": id, "to": "" }), "choose the queue"),
        ("/send", json!({ "message": sent, "body": "" }), "fill it in, or leave body out"),
        ("/send", json!({ "message": sent, "body": null }), "fill it in, or leave body out"),
        ("/send", json!({ "message": sent, "queue": null }), "queue names nothing"),
        ("/send", json!({ "body": " " }), "queue is missing"),
    ] {
        let (status, refused) = world.post(path, &fields).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(wanted), "{fields} {refused}");
    }
    assert_eq!(world.bodies("Points.fifo"), ["old"]);

    // Nor is what was meant with a name that is misspelled, or is none of this act.
    for (path, fields, wanted) in [
        ("/dead/discard", json!({ "queue": "Dead", "group": fingerprint, "ids": ["m-1"] }), "ids is no field"),
        ("/dead/redrive", json!({ "queue": "Dead", "group": fingerprint, "sent_until": 1 }), "sent_until is no field"),
        ("/dead/discard", json!({ "queue": "Dead", "group": fingerprint, "body": "x" }), "it takes queue, group, id"),
        ("/faults/end", json!({ "fault": 3 }), "fault is no field of this act: it takes id"),
        ("/faults", json!({ "act": "kill", "function": "Confirm", "pid": 1 }), "pid is no field"),
        ("/keys/order%231", json!({ "act": "forget", "force": true, "dryrun": true }), "dryrun is no field"),
        ("/mappings", json!({ "function": "Confirm", "enabled": false, "dry_run": true }), "dry_run is no field"),
        ("/send", json!({ "queue": "Orders", "body": "x", "dry_run": true }), "dry_run is no field"),
        ("/demo", json!({ "dry_run": true }), "it takes no field"),
        // What is no name may be a body.
        ("/send", json!({ "{\"secret\":1}": "", "queue": "Orders" }), "what was sent is no field"),
    ] {
        let (status, refused) = world.post(path, &fields).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(wanted), "{fields} {refused}");
    }
    assert_eq!((world.bodies("Dead"), world.bodies("Orders").len()), (vec!["a".to_owned()], 0));
    assert_eq!(world.post("/faults/end", &json!({})).await.1["result"].as_array().unwrap().len(), 2);

    // Nor is it guessed what is meant by a word other than true and false.
    for (path, fields) in [
        ("/keys/order%231", json!({ "act": "forget", "force": 1 })),
        ("/keys/order%231", json!({ "act": "forget", "force": "no" })),
        ("/mappings", json!({ "function": "Confirm", "enabled": 1 })),
        ("/mappings", json!({ "function": "Confirm", "enabled": "True" })),
        ("/dead/discard", json!({ "queue": "Dead", "group": fingerprint, "dry_run": "yes" })),
    ] {
        let (status, refused) = world.post(path, &fields).await;
        assert!(
            status == 400 && refused["error"].as_str().unwrap().contains(" is true or false"),
            "{fields} {refused}"
        );
    }
    assert_eq!(world.bodies("Dead"), ["a"]);
    assert!(world.html("/keys/order%231").await.contains("completed"));
    assert_eq!(world.json("/").await["functions"][0]["mappings"][0]["is_on"], true);
    world.cloud.stop().await;
}

/// Nor does one that is `null`, is empty or came elsewhere, where the act would mean more without it.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_not_read_is_refused() {
    let world = World::start().await;
    world.completed("order#1").await;
    world.letter("no price", "a");
    let page = world.group().await;
    let group = page.split(['/', '?']).nth(2).unwrap();
    for _ in 0..2 {
        assert_eq!(world.post("/faults", &json!({ "act": "refuse", "of": "mail", "times": 3 })).await.0, 200);
    }
    let of_group = |name: &str, value: Value| json!({ "queue": "Dead", "group": group, name: value });
    for (path, fields, wanted) in [
        ("/dead/discard", of_group("dry_run", json!(null)), "dry_run names nothing"),
        ("/dead/discard", of_group("dry_run", json!("")), "dry_run names nothing"),
        ("/dead/redrive", of_group("dry_run", json!([])), "dry_run names nothing"),
        ("/keys/order%231", json!({ "act": "forget", "force": true, "dry_run": "" }), "dry_run names nothing"),
        ("/send", json!({ "queue": "Orders", "body": "x", "delay": null }), "delay names nothing"),
        ("/faults", json!({ "act": "kill", "function": "Confirm", "when": "" }), "when names nothing"),
        // Only a letter that is edited has a page that it began on: an act on a cause would be on what is before it, too.
        ("/dead/redrive", of_group("after", json!(1)), "after is no field"),
    ] {
        let (status, refused) = world.post(path, &fields).await;
        assert!(status == 400 && refused["error"].as_str().unwrap().contains(wanted), "{fields} {refused}");
    }
    let cause = format!("queue=Dead&group={group}");
    for (path, form, name) in [
        ("/faults/end?id=1", "", "id"),
        ("/dead/discard?dry_run=true", &*cause, "dry_run"),
        ("/dead/redrive?id=m-1", &*cause, "id"),
        ("/send?dry_run=true", "queue=Orders&body=x", "dry_run"),
        ("/faults?function=Confirm", "act=kill", "function"),
    ] {
        let (status, _, refused) = world.ask("POST", path, "Accept: application/json\r\n", form).await;
        let said = format!("{name} came in the address: send it in the body");
        assert!(status == 400 && refused.contains(&said), "{path}: {refused}");
    }
    // Nor is one of two values taken, and the other not.
    for (path, form, name) in [
        ("/dead/discard", format!("{cause}&dry_run=false&dry_run=true"), "dry_run"),
        ("/dead/discard", format!("{cause}&until=9999999999999&until=1"), "until"),
        ("/dead/redrive", format!("{cause}&queue=Orders"), "queue"),
        ("/dead/redrive", format!("{cause}&id=m-1&body=x&body=y"), "body"),
        ("/send", "queue=Orders&queue=Points.fifo&body=x".to_owned(), "queue"),
        ("/mappings", "function=Confirm&enabled=false&enabled=true".to_owned(), "enabled"),
        ("/keys/order%231", "act=forget&force=true&act=release".to_owned(), "act"),
        ("/faults/end", "id=1&id=2".to_owned(), "id"),
    ] {
        let (status, _, refused) = world.ask("POST", path, "Accept: application/json\r\n", &form).await;
        let said = format!("{name} came several times: send it once");
        assert!(status == 400 && refused.contains(&said), "{path}: {refused}");
    }
    assert_eq!((world.bodies("Dead"), world.bodies("Orders").len()), (vec!["a".to_owned()], 0));
    assert_eq!(world.json("/").await["functions"][0]["mappings"][0]["is_on"], true);
    assert!(world.html("/keys/order%231").await.contains("completed"));
    assert_eq!(world.post("/faults/end", &json!({})).await.1["result"].as_array().unwrap().len(), 2);
    let (_, began) = world.post("/faults", &json!({ "function": "Confirm", "preset": 3 })).await;
    assert_eq!(began["result"]["frozen_s"], 40, "{began}");

    // A person, whose form always has a body, is not told to leave it out; nor is who sends what was not sent before.
    let id = world.json(&page).await["letters"][0]["message_id"].as_str().unwrap().to_owned();
    let (said, is_red) = world.notice("/dead/redrive", &format!("{cause}&id={id}&to=Orders&body=")).await;
    assert!(said == "SQS takes no empty body: fill it in." && is_red, "{said}");
    assert!(world.html(&format!("{page}&edit={id}")).await.contains(r#"autocomplete="off" required>"#));
    let (_, refused) = world.post("/send", &json!({ "queue": "Orders", "body": "" })).await;
    assert_eq!(refused["error"], "SQS takes no empty body: fill it in");
    world.cloud.stop().await;
}

/// Whoever is about to click Pause while a breaker or another person pauses must not resume.
#[tokio::test(flavor = "multi_thread")]
async fn no_button_becomes_that_of_another_act() {
    let world = World::start().await;
    let page = world.html("/").await;
    // The number stays in a page that is drawn again.
    let form = form_of(&page);
    assert!(page.contains(&format!(r#"name="form" value="{form}" hx-morph-skip>"#)), "{page}");
    // Each button in its order, by what it does, its label, and whether it cannot be clicked.
    let buttons = |page: &str| {
        let forms = page.split(r#"action="/mappings""#).skip(1).map(|form| form.split("</form>").next().unwrap());
        let button = |form: &str| {
            let enabled = form.split_once(r#"name="enabled" value=""#).unwrap().1.starts_with("true");
            let (button, label) = form.split_once("<button").unwrap().1.split_once('>').unwrap();
            (enabled, label.trim_end_matches("</button>").to_owned(), button.ends_with(" disabled"))
        };
        forms.map(button).collect::<Vec<_>>()
    };
    let (pause, resume) = ((false, "Pause".to_owned()), (true, "Resume".to_owned()));
    let with = |(enabled, label): &(bool, String), is_off| (*enabled, label.clone(), is_off);
    assert_eq!(buttons(&page), [with(&pause, false), with(&resume, true)]);
    let fields = |enabled, page: &str| format!("function=Confirm&enabled={enabled}&form={}", form_of(page));
    let first = world.notice("/mappings", &fields(false, &page)).await;
    assert!(first.0.starts_with("Confirm gets no more messages") && !first.1, "{first:?}");
    assert_eq!(world.notice("/mappings", &fields(false, &page)).await, first);
    let is_on = async || world.json("/").await["functions"][0]["mappings"][0]["is_on"].clone();
    assert_eq!(is_on().await, false);
    assert_eq!(buttons(&world.redrawn("/").await.1), [with(&pause, true), with(&resume, false)]);
    // Of the other button of one page, which has the number, too.
    let resumed = ("Confirm gets messages again.".to_owned(), false);
    assert_eq!(world.notice("/mappings", &fields(true, &page)).await, resumed);
    assert_eq!(is_on().await, true);
    // What is refused is seen where it was asked for, and to load its address anew leads there.
    let place = world.form("/mappings", "function=Nobody&enabled=false").await;
    assert!(place.starts_with("/?notice=") && world.html(&place).await.contains("no function Nobody"), "{place}");
    let (status, head, _) = world.ask("GET", "/mappings", "Accept: text/html\r\n", "").await;
    assert!(status == 303 && head.contains("location: /\r\n"), "{status} {head}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_drawn_again_goes_on_asking() {
    let world = World::start().await;
    for (path, wanted) in [("/messages/unknown?x=1", 404), ("/dead/abcd1234?queue=Gone", 400)] {
        let (status, page) = world.redrawn(path).await;
        assert_eq!(status, wanted, "{page}");
        let is_live = page.starts_with(r#"<div id="live""#) && page.contains(&format!(r#"hx-get="{path}""#));
        assert!(is_live && page.contains(r#"role="alert""#) && !page.contains("<html"), "{page}");
    }
    world.cloud.stop().await;
}

/// Each letter is then here or there, and who asked is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_is_stopped_ends_a_long_act_in_order() {
    const LETTERS: usize = 2_000;
    let mut world = World::start().await;
    for n in 0..LETTERS {
        world.letter("no price", &n.to_string());
    }
    let group = world.group().await;
    let all = json!({ "queue": "Dead", "group": group.split(['/', '?']).nth(2).unwrap() });
    let stop = world.stop_once(|| world.cloud.sqs().counters("Orders").unwrap().sent > 0);
    let ((status, done), ()) = tokio::join!(world.post("/dead/redrive", &all), stop);
    let said = done["notice"]["text"].as_str().unwrap();
    assert!(status == 200 && done["notice"]["done"] == true && said.contains("The console was stopped: "), "{said}");
    world.server.join_next().await.unwrap().unwrap();
    let sent = done["result"]["done"].as_array().unwrap().len();
    let visible = |queue: &str| world.cloud.sqs().depth(queue).unwrap().visible;
    assert_eq!((visible("Orders"), visible("Dead")), (sent, LETTERS - sent));
    assert!(sent < LETTERS, "{sent} were sent back");
    world.cloud.stop().await;

    // Also where it came to none that was meant.
    let mut world = World::start().await;
    for n in 1..LETTERS {
        world.letter("no price", &n.to_string());
    }
    world.letter("no stock", "last");
    let dead = world.json("/dead").await;
    let causes = dead["queues"][0]["causes"].as_array().unwrap();
    let group = causes.iter().find(|cause| cause["count"] == 1).unwrap_or_else(|| panic!("{dead}"));
    let one = json!({ "queue": "Dead", "group": group["group"] });
    let stop = world.stop_once(|| world.cloud.sqs().depth("Dead").unwrap().in_flight > 0);
    let ((_, done), ()) = tokio::join!(world.post("/dead/redrive", &one), stop);
    let said = done["notice"]["text"].as_str().unwrap();
    assert!(done["notice"]["done"] == false && said.starts_with("The console was stopped before "), "{said}");
    world.server.join_next().await.unwrap().unwrap();
    assert_eq!(world.cloud.sqs().depth("Dead").unwrap().visible, LETTERS);
    world.cloud.stop().await;

    // And a sending.
    let mut world = World::start().await;
    let stop = world.stop_once(|| world.cloud.sqs().counters("Orders").unwrap().sent > 0);
    let many = json!({ "queue": "Orders", "body": "x", "count": 10_000 });
    let ((_, done), ()) = tokio::join!(world.post("/send", &many), stop);
    let (said, sent) = (done["notice"]["text"].as_str().unwrap(), done["result"]["sent"].as_u64().unwrap());
    let wanted =
        format!("{sent} of 10,000 messages sent to Orders. The console was stopped: the others were not sent.");
    assert_eq!((said, done["result"]["left"].as_u64()), (wanted.as_str(), Some(10_000 - sent)));
    world.server.join_next().await.unwrap().unwrap();
    assert_eq!(world.cloud.sqs().depth("Orders").unwrap().visible as u64, sent);
    world.cloud.stop().await;
}

/// Who reads that two were discarded does not look for the third.
#[tokio::test(flavor = "multi_thread")]
async fn letters_that_were_meant_and_not_met_are_told() {
    let world = World::start().await;
    for body in ["a", "b", "c"] {
        world.letter("no price", body);
    }
    let letters = world.json(&world.group().await).await["letters"].clone();
    let ids: Vec<_> = (0..3).map(|n| letters[n]["message_id"].clone()).collect();
    let held = world.cloud.sqs().receive("Dead", 2, Duration::ZERO).await.unwrap();
    let (_, done) = world.post("/dead/redrive", &json!({ "queue": "Dead", "id": ids })).await;
    let said = done["notice"]["text"].as_str().unwrap();
    assert!(
        said.starts_with("1 dead letter sent back to Orders. 2 letters are hidden now: something else reads them"),
        "{said}"
    );
    let missing = "2 letters were not met: sent back or discarded meanwhile, or read by something else.";
    assert!(said.ends_with(missing) && !said.contains("There may be more"), "{said}");
    assert_eq!(done["result"]["missing"].as_array().map(Vec::len), Some(held.len()), "{done}");
    world.cloud.stop().await;
}

/// A FIFO queue and its dead-letter queue.
const IN_ORDER: &str = "
  Given: {Type: AWS::SQS::Queue, Properties: {QueueName: Given.fifo, FifoQueue: true}}
  Lines:
    Type: AWS::SQS::Queue
    Properties: {QueueName: Lines.fifo, FifoQueue: true, RedrivePolicy: {deadLetterTargetArn: !GetAtt Given.Arn, maxReceiveCount: 5}}
";

/// Of a message group SQS shows ten letters, and none behind those that stay.
#[tokio::test(flavor = "multi_thread")]
async fn letters_that_stayed_behind_others_are_told() {
    let world = World::of(IN_ORDER).await;
    for n in 0..16 {
        let error = if n % 2 == 0 { "no price" } else { "no stock" };
        let message_attributes = [text("claimant-outcome", "rejected"), text("claimant-error", error)].into();
        let letter = NewMessage { message_attributes, ..NewMessage::new(n.to_string()) };
        world.cloud.sqs().send("Given.fifo", grouped("default", letter)).unwrap();
    }
    let dead = world.json("/dead").await;
    let causes = dead["queues"][0]["causes"].as_array().unwrap();
    let group = causes.iter().find(|cause| cause["cause"] == "no price").unwrap()["group"].as_str().unwrap();
    let all = world.json(&format!("/dead/{group}?queue=Given.fifo")).await["letters"].clone();
    let id = |n: usize| all[n]["message_id"].as_str().unwrap();
    assert_eq!(all.as_array().unwrap().len(), 8);
    let behind = "There may be more: SQS shows ten of a message group at a time, and none behind those that stay";
    // Of a cause a dry run meets what SQS shows; of what is named and met, there is no more.
    for (of, wanted) in [(json!({ "id": id(0) }), ""), (json!({ "group": group }), behind)] {
        let mut fields = json!({ "queue": "Given.fifo", "dry_run": true });
        fields.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        let said = world.post("/dead/discard", &fields).await.1["notice"]["text"].as_str().unwrap().to_owned();
        assert!(said.contains("would be discarded.") && said.contains("more") != wanted.is_empty(), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
    // Of two that are named, the second is not shown.
    let form = format!("queue=Given.fifo&id={}&id={}", id(0), id(7));
    let (said, is_red) = world.notice("/dead/redrive", &form).await;
    assert!(said.starts_with("1 dead letter sent back to Lines.fifo. ") && said.contains(behind) && !is_red, "{said}");
    assert!(said.contains("1 letter was not met: not reached, sent back or discarded meanwhile, or read by"), "{said}");
    let said = world.notice("/dead/discard", &format!("queue=Given.fifo&group={group}")).await.0;
    assert!(said.starts_with("5 dead letters discarded; saved in ") && said.contains(behind), "{said}");
    std::fs::remove_file(said.split_once("saved in ").unwrap().1.split_once(".jsonl").unwrap().0.to_owned() + ".jsonl")
        .unwrap();
    assert_eq!(world.bodies("Given.fifo").len(), 10);
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let world = World::start().await;
    for n in 0..3 {
        world.letter("no price", &n.to_string());
    }
    let group = world.group().await;
    let fields = json!({ "queue": "Dead", "group": group.split(['/', '?']).nth(2).unwrap(), "dry_run": true });
    for (act, wanted) in [
        ("/dead/redrive", "3 dead letters would be sent back to Orders."),
        ("/dead/discard", "3 dead letters would be discarded."),
    ] {
        let (status, done) = world.post(act, &fields).await;
        assert_eq!((status, &done["notice"]["text"]), (200, &json!(wanted)));
        assert_eq!(done["result"]["dry_run"], true, "{done}");
    }
    assert_eq!((world.bodies("Dead").len(), world.bodies("Orders").len()), (3, 0));
    world.cloud.stop().await;
}

/// What the demonstration needs.
const SHOWN: &str = "
  OrderQueue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: OrderQueue, RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}}
  PaymentQueue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: PaymentQueue, RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}}
  Sample:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: sample}}
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 3
      Events:
        Order: {Type: SQS, Properties: {Queue: !GetAtt OrderQueue.Arn}}
        Payment: {Type: SQS, Properties: {Queue: !GetAtt PaymentQueue.Arn}}
";

/// The second half of a double click did what was wanted, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_click_on_show_me_is_no_failure() {
    let world = World::of(SHOWN).await;
    let clicks = tokio::join!(world.notice("/demo", ""), world.notice("/demo", ""));
    let wanted = ("It takes about ten seconds.".to_owned(), false);
    assert_eq!(clicks, (wanted.clone(), wanted));
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_click_has_the_answer_of_the_first() {
    let world = World::start().await;
    for n in 0..200 {
        world.letter("no price", &n.to_string());
    }
    world.completed("order#1").await;
    let group = world.group().await;
    let fingerprint = group.split(['/', '?']).nth(2).unwrap().to_owned();
    let all = format!("queue=Dead&group={fingerprint}");
    let one = format!("{all}&id={}", world.json(&group).await["letters"][0]["message_id"].as_str().unwrap());
    for (page, path, fields, wanted, is_red) in [
        ("/send", "/send", "queue=Orders&body=x&copies=x", "Copies is a whole number", true),
        ("/send", "/send", "queue=Orders&body=x", "1 message sent to Orders.", false),
        ("/keys/order%231", "/keys/order%231", "act=forget&force=true&version=1//COMPLETED", "order#1: ", false),
        (&group, "/dead/redrive", &one, "1 dead letter sent back to Orders.", false),
        (&group, "/dead/redrive", &all, "199 dead letters sent back to Orders.", false),
    ] {
        let page = world.html(page).await;
        let fields = format!("{fields}&form={}", form_of(&page));
        let (first, second) = tokio::join!(world.notice(path, &fields), world.notice(path, &fields));
        assert!(first.0.starts_with(wanted) && first.1 == is_red, "{first:?}");
        assert_eq!(first, second);
        assert_eq!(first, world.notice(path, &fields).await);
    }
    assert_eq!(world.bodies("Orders").len(), 201);
    world.cloud.stop().await;
}

/// What a page says is drawn again while someone makes up their mind; what its form means is what they looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_drawn_again_means_what_it_was_opened_with_and_says_so() {
    let world = World::start().await;
    // A key that goes on.
    world.completed("order#1").await;
    let (path, gone_on) = ("/keys/order%231", "The key has gone on since this page was opened");
    let opened = world.html(path).await;
    let (_, page) = world.redrawn(&again(&opened)).await;
    assert!(!page.contains(gone_on) && !page.contains(r#"name="version""#), "{page}");
    world.post(path, &json!({ "act": "forget", "force": true })).await;
    let (_, page) = world.redrawn(&again(&page)).await;
    assert!(page.contains(gone_on) && again(&page) == again(&opened), "{page}");
    let anew = world.html(&again(&opened)).await;
    assert!(!anew.contains(gone_on) && again(&anew) != again(&opened), "{anew}");
    // Letters that come.
    world.letter("no price", "first");
    let group = world.group().await;
    let opened = world.html(&group).await;
    let until = |page: &str| hidden(page, r#"name="until" value=""#);
    let came = "1 letter that is shown was sent since this page was opened";
    assert!(!world.redrawn(&again(&opened)).await.1.contains(came));
    while SystemClock.now().as_millis().to_string() == until(&opened) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.letter("no price", "second");
    let (_, page) = world.redrawn(&again(&opened)).await;
    assert!(page.contains(came) && until(&page) == until(&opened) && again(&page) == again(&opened), "{page}");
    let anew = world.html(&group).await;
    assert!(!anew.contains(came) && until(&anew) != until(&opened), "{anew}");
    let fingerprint = group.split(['/', '?']).nth(2).unwrap();
    let discard = format!("queue=Dead&group={fingerprint}&until={}&form={}", until(&page), form_of(&opened));
    let (said, _) = world.notice("/dead/discard", &discard).await;
    assert!(said.starts_with("1 dead letter discarded; saved in "), "{said}");
    assert_eq!(world.bodies("Dead"), ["second"]);
    std::fs::remove_file(said.split_once("saved in ").unwrap().1.trim_end_matches('.')).unwrap();
    world.cloud.stop().await;
}

/// Returns where the live part of a page is asked for again.
fn again(page: &str) -> String {
    hidden(page, r#"hx-get=""#).replace("&amp;", "&")
}

/// Returns what follows this in a page, up to the next quotation mark.
fn hidden(page: &str, before: &str) -> String {
    page.split_once(before).unwrap_or_else(|| panic!("{before}: {page}")).1.split('"').next().unwrap().to_owned()
}

/// Work that was released after a look at one run would be released after the next run, too, which no person has looked at.
#[tokio::test(flavor = "multi_thread")]
async fn an_act_on_a_key_means_the_record_that_its_page_showed() {
    let world = World::start().await;
    world.completed("order#1").await;
    let (path, gone_on) = ("/keys/order%231", "left as it is: the key has gone on since it was looked at, and is ");
    let version = |page: &str| hidden(page, r#"name="version" value=""#);
    let old = world.html(path).await;
    let (shown, read) = (version(&old), world.json(path).await["version"].clone());
    assert_eq!(shown, read);
    let form =
        |act: &str, version: &str, page: &str| format!("act={act}&force=true&version={version}&form={}", form_of(page));
    assert!(!world.notice(path, &form("forget", &shown, &world.html(path).await)).await.1);
    for act in ["release", "reset", "forget"] {
        let page = world.html(&world.form(path, &(form(act, &shown, &old) + "&why=ticket+7")).await).await;
        assert!(page.contains("notice refused") && page.contains(&format!("order#1: {gone_on}FAILED now.")), "{page}");
        // What was typed is there for another click, but for what is to be thought over.
        let typed = [&format!(r#"<option value="{act}" selected>"#), r#" value="ticket 7">"#];
        assert!(typed.iter().all(|typed| page.contains(*typed)) && !page.contains("checked"), "{page}");
        assert_ne!(version(&page), shown);
        let (_, done) = world.post(path, &json!({ "act": act, "version": read })).await;
        assert_eq!(done["result"]["outcome"], "changed", "{done}");
    }
    let now = version(&world.html(path).await);
    let said = world.notice(path, &form("resolve", &now, &old)).await.0;
    assert!(said.contains("its window is over"), "{said}");
    world.completed("order#1").await;
    // A form always says it; a program may mean whatever is there.
    let (status, _, refused) =
        world.ask("POST", path, "Content-Type: application/x-www-form-urlencoded\r\n", "act=forget&force=true").await;
    assert!(status == 400 && refused.contains("version is missing"), "{status} {refused}");
    assert_eq!(world.post(path, &json!({ "act": "forget", "force": true })).await.1["result"]["outcome"], "done");
    // Of a key without a record it means that there is none.
    let absent = "/keys/order%232";
    let none = world.json(absent).await["version"].clone();
    assert_eq!(world.post(absent, &json!({ "act": "forget", "version": none })).await.1["result"]["why"], "absent");
    world.completed("order#2").await;
    assert_eq!(
        world.post(absent, &json!({ "act": "forget", "version": none })).await.1["result"]["outcome"],
        "changed"
    );
    world.cloud.stop().await;
}

/// As within 15 days after `.hashed_keys()` was added, or removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_key_says_that_it_has_a_hashed_record_too_and_means_its_own() {
    let world = World::start().await;
    world.completed("order#1").await;
    let path = "/keys/order%231";
    let before = world.html(path).await;
    assert!(!before.contains("another record") && !before.contains(r#"name="exact""#), "{before}");
    assert_eq!(world.json(path).await["other"], Value::Null);

    let hashed = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new("1").unwrap());
    world.completed(hashed.as_str()).await;
    let link = format!(r#"<a class="id" href="/keys/{}">"#, hashed.as_str().replace('~', "%7E"));
    let page = world.html(path).await;
    assert!(page.contains("The key has another record, which is hashed: ") && page.contains(&link), "{page}");
    assert_eq!(world.json(path).await["other"], json!({ "record": hashed.as_str(), "state": "completed" }));
    let of_hashed = world.html(&format!("/keys/{}", hashed.as_str())).await;
    assert!(!of_hashed.contains("another record") && !of_hashed.contains(r#"name="exact""#), "{of_hashed}");
    let list = world.html("/keys?text=order%231").await;
    assert!(list.contains(&link) && list.contains(r#"href="/keys/order%231""#), "{list}");

    // What was opened before it was there does not say which one is meant.
    let form = |page: &str, more: &str| {
        let version = hidden(page, r#"name="version" value=""#);
        format!("act=forget&force=true&version={version}&form={}{more}", form_of(page))
    };
    let refused = world.html(&world.form(path, &form(&before, "&why=ticket+7")).await).await;
    let says = "order#1: refused: the key has two records, order#1 (completed) and";
    assert!(refused.contains(says) && refused.contains(r#" value="ticket 7">"#), "{refused}");
    let (status, refused) = world.post(path, &json!({ "act": "forget", "force": true })).await;
    assert_eq!(
        (status, &refused["result"]["outcome"], &refused["notice"]["done"]),
        (200, &json!("refused"), &json!(false))
    );
    assert_eq!(refused["result"]["records"], json!(["order#1", hashed.as_str()]), "{refused}");
    let exact = hidden(&page, r#"name="exact" value=""#);
    let (said, is_red) = world.notice(path, &form(&page, &format!("&exact={exact}"))).await;
    assert!(!is_red && said.starts_with("order#1: was COMPLETED; forgotten"), "{said}");
    let status = |read: &Value| read["key"]["found"]["status"].clone();
    let exact = format!("{path}?exact=true");
    let (own, other) = (world.json(&exact).await, world.json(&format!("/keys/{}", hashed.as_str())).await);
    assert_eq!((status(&own), status(&other)), (json!("FAILED"), json!("COMPLETED")));
    // It is over: the text means the other one, and what was opened of it stays of it.
    assert_eq!(world.json(path).await["key"]["record"], json!(hashed.as_str()));
    let is_hashed = "The record of the key is hashed: ";
    let (_, live) = world.redrawn(&again(&page)).await;
    assert!(live.contains(">over<") && live.contains(is_hashed) && !live.contains("another record"), "{live}");
    world.cloud.stop().await;
}

/// One click would act on a record that no one has looked at.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_for_a_record_that_is_gone_is_not_filled_in_for_the_hashed_one() {
    let world = World::start().await;
    let hashed = RecordId::hashed(&ConsumerName::new("order").unwrap(), &Key::new("1").unwrap());
    for is_exact in [true, false] {
        world.completed("order#1").await;
        let alone = world.html("/keys/order%231").await;
        world.completed_by("98765432", hashed.as_str()).await;
        let page = if is_exact { world.html("/keys/order%231").await } else { alone };
        world.gone("order#1").await;
        let (_, live) = world.redrawn(&again(&page)).await;
        assert!(live.contains(">absent<") && live.contains("The record of the key is hashed: "), "{live}");
        let version = hidden(&page, r#"name="version" value=""#);
        let exact = if is_exact { "&exact=true" } else { "" };
        assert_eq!(page.contains(r#"name="exact""#), is_exact);
        let form = format!("act=forget&force=true&why=ticket+7&version={version}&form={}{exact}", form_of(&page));
        let seen = world.html(&world.form("/keys/order%231", &form).await).await;
        assert!(seen.contains("notice refused") && seen.contains("order#1: left as it is"), "{seen}");
        assert!(seen.contains("<h1>order#1</h1>") && !seen.contains("Act on it"), "{seen}");
        world.gone(hashed.as_str()).await;
    }
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_speaks_when_its_state_changes_and_not_each_second() {
    let world = World::start().await;
    world.completed("order#1").await;
    let spoken = async || {
        let (status, _, page) = world.ask("GET", "/keys/order%231", "HX-Request: true\r\n", "").await;
        assert_eq!(status, 200, "{page}");
        let said = page.split_once("Done ").unwrap().1.split_once(" ago").unwrap().0.to_owned();
        let spoken = page
            .split(r#"role="status""#)
            .skip(1)
            // Hidden, until it is not drawn again.
            .filter(|part| !part.starts_with("><p class=\"old\""))
            .map(|part| part.split("</span>").next().unwrap().split("</p>").next().unwrap().to_owned());
        (said, spoken.collect::<Vec<_>>())
    };
    let first = spoken().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = spoken().await;
    assert_ne!(first.0, second.0);
    assert_eq!(first.1, second.1);
    assert!(first.1.iter().any(|spoken| spoken.contains("completed")), "{first:?}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_edited_and_sent() {
    let world = World::start().await;
    // Small values, which in lines would be more than SQS takes; and the most that a browser makes of a body.
    for bytes in [440_000, 800_000] {
        let body = format!("[{}1]", "1,".repeat(bytes / 2));
        let id = world.cloud.sqs().send("Orders", NewMessage::new(&body)).unwrap().message_id;
        let page = world.html(&format!("/send?message={id}")).await;
        let shown = page.split_once("<textarea").unwrap().1.split_once(">\n").unwrap().1;
        let edited = shown.split_once("</textarea>").unwrap().0.replacen('1', "2", 1);
        let fields = format!("queue=Orders&message={id}&form={}&body={}", form_of(&page), typed(&edited));
        assert_eq!(world.notice("/send", &fields).await, ("1 message sent to Orders.".to_owned(), false));
        assert!(world.bodies("Orders").last().unwrap() == &body.replacen('1', "2", 1), "{bytes}");
    }
    let lines = format!("x{}y", "\n".repeat(1_000_000));
    world.form("/send", &format!("queue=Orders&body={}", typed(&lines))).await;
    assert!(world.bodies("Orders").last().unwrap() == &lines);
    // What is larger than any message is refused on a page, or in JSON.
    let more = format!("queue=Orders&body={}", "x".repeat(9 << 20));
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let (status, head, page) = world.ask("POST", "/send", form, &more).await;
    assert!(status == 400 && head.contains("text/html") && page.contains("the form has more than"), "{head}");
    let (status, _, answer) = world.ask("POST", "/send", &format!("{form}Accept: application/json\r\n"), &more).await;
    assert!(status == 400 && answer.starts_with(r#"{"error":"the form has more"#), "{answer}");
    world.cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_again_with_its_attributes() {
    let world = World::start().await;
    let of = |data_type: &str, value| MessageAttribute { data_type: data_type.to_owned(), value };
    let theirs: BTreeMap<_, _> = [
        text("tenant", "t-1"),
        ("count".to_owned(), of("Number.int", AttributeValue::Text("7".to_owned()))),
        ("bytes".to_owned(), of("Binary", AttributeValue::Binary(vec![0, 255, 10]))),
    ]
    .into();
    let mut all = theirs.clone();
    all.extend([text("claimant-redrives", "1")]);
    let message = NewMessage { message_attributes: all, ..NewMessage::new("a") };
    let id = world.cloud.sqs().send("Orders", message).unwrap().message_id;
    let (status, done) = world.post("/send", &json!({ "message": id })).await;
    assert_eq!((status, &done["result"]["sent"]), (200, &json!(1)), "{done}");
    assert!(world.html(&format!("/send?message={id}")).await.contains("attributes of the message that it began with"));
    world.form("/send", &format!("queue=Orders&message={id}&body=b")).await;
    assert_eq!(world.post("/send", &json!({ "message": id, "body": "c" })).await.0, 200);
    let received = world.cloud.sqs().receive("Orders", 10, Duration::ZERO).await.unwrap();
    for (message, (body, is_first)) in received.iter().zip([("a", true), ("a", false), ("b", false), ("c", false)]) {
        assert_eq!((message.body.as_str(), message.message_attributes == theirs), (body, !is_first));
    }
    assert_eq!(received.len(), 4);

    // Where they are no longer kept, nothing is sent without them that was not asked for so.
    let gone = json!({ "queue": "Orders", "message": "00000000-0000", "body": "c" });
    let (status, refused) = world.post("/send", &gone).await;
    let said = refused["error"].as_str().unwrap();
    assert!(status == 400 && said.contains("Without the field message it is sent"), "{refused}");
    let page = world.html(&world.form("/send", "queue=Orders&message=00000000-0000&body=c&delay=7").await).await;
    assert!(
        page.contains("Nothing was sent: the attributes of the message")
            && page.contains("Sent again, as it is here, it is a new message without them.")
            && page.contains("c</textarea>"),
        "{page}"
    );
    assert!(page.contains(r#"name="delay" min="0" max="900" value="7""#), "{page}");
    assert!(!page.contains(r#"name="message""#) && !page.contains("are sent with it, without"), "{page}");
    assert_eq!(world.cloud.sqs().counters("Orders").unwrap().sent, 4);

    // So with its group, which a form always has, and a program leaves out or empty, also where it does not say what it accepts.
    let message = NewMessage { message_attributes: theirs.clone(), ..NewMessage::new("a") };
    let id = world.cloud.sqs().send("Points.fifo", grouped("ada", message)).unwrap().message_id;
    assert_eq!(world.post("/send", &json!({ "message": id, "body": "b" })).await.0, 200);
    let no_group = json!({ "message": id, "body": "d", "group": "" }).to_string();
    assert_eq!(world.ask("POST", "/send", "Content-Type: application/json\r\n", &no_group).await.0, 303);
    let fields = format!("queue=Points.fifo&message={id}&body=c&group=");
    let said = world.notice("/send", &fields).await;
    assert!(said.0.starts_with("A FIFO queue needs a message group") && said.1, "{said:?}");
    assert_eq!(world.bodies("Points.fifo"), ["a", "b", "d"]);
    world.cloud.stop().await;
}

/// What is left out of a page is not said to be less than what is shown.
#[tokio::test(flavor = "multi_thread")]
async fn causes_that_are_not_shown_are_of_so_many_letters_at_most() {
    let world = World::start().await;
    for n in 0..104_u8 {
        let cause: String = [n / 26, n % 26].map(|digit| char::from(b'a' + digit)).iter().collect();
        for body in ["one", "two"] {
            world.letter(&format!("no {cause}"), body);
        }
    }
    let page = world.html("/dead").await;
    assert!(page.contains("… and 4 causes more, of 2 letters at most each."), "{page}");
    world.cloud.stop().await;
}
