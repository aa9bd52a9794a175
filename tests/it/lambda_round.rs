//! One round the way of `make watch` and `make invoke`: `cargo lambda watch` beside the local cloud, and events sent to it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use claimant_servers::repository;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

/// How long anything may take that the test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `cargo lambda watch` writes when it is about to listen.
const STARTING: &str = "starting Runtime server";

/// `scripts/watch`, which ends with this value.
struct Watch {
    child: Child,
    port: u16,
    lines: Receiver<String>,
    log: String,
}

fn script(name: &str) -> Command {
    let mut command = Command::new(repository().unwrap().join("scripts").join(name));
    // What cargo tells this test of its package would have build scripts run again.
    let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars().filter(|(name, _)| own(name)) {
        command.env_remove(name);
    }
    command
}

impl Watch {
    /// Starts it on a free port and returns it once it listens.
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = script("watch");
        command.arg("--ignore-changes").env("WATCH_PORT", port.to_string());
        let child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // OK to fail: that means the test is over. What is still written must be read nevertheless.
            BufReader::new(reader).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let mut watch = Self { child, port, lines, log: String::new() };
        let deadline = Instant::now() + PATIENCE;
        while !watch.log.contains(STARTING) {
            let line = watch.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            writeln!(watch.log, "{}", line.expect("cargo lambda watch starts")).unwrap();
        }
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "cargo lambda watch does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        watch
    }

    /// Sends a function a sample event by `scripts/invoke`.
    fn invoke(&self, function: &str, event: &str) -> Output {
        script("invoke").args([function, event]).env("WATCH_PORT", self.port.to_string()).output().unwrap()
    }

    /// What the local cloud has at this path of the endpoint that it printed as this variable.
    async fn get(&self, variable: &str, path: &str) -> Value {
        let variable = format!("export {variable}=");
        let endpoint = self.log.lines().find_map(|line| line.strip_prefix(&variable)).expect("it is printed");
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<&[u8]>>();
        let response = client.get(format!("{endpoint}{path}").parse().unwrap()).await.unwrap();
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // OK to fail, here and below: then it has ended already.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        if std::thread::panicking() {
            self.log.extend(self.lines.try_iter().map(|line| line + "\n"));
            eprintln!("the log of scripts/watch:\n{}", self.log);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An order and a payment, and the same again, are one mail and one charge. A gift card finds its tables, whose names only the
/// template has.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo lambda and the built binaries: make test"]
async fn what_is_delivered_twice_through_cargo_lambda_is_done_once() {
    let watch = Watch::start();
    for (function, event) in [("order-confirmation", "order"), ("payment", "payment"), ("gift-card", "gift-card")] {
        for delivery in ["first", "second"] {
            let output = watch.invoke(function, event);
            assert!(output.status.success(), "the {delivery} of {function}: {}", text(&output.stderr));
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(answer["batchItemFailures"], json!([]), "the {delivery} of {function}: {answer}");
        }
    }

    // cargo lambda watch would not answer.
    let unknown = watch.invoke("no-such-function", "order");
    assert!(!unknown.status.success(), "no-such-function was invoked");
    let (said, expected) = (text(&unknown.stderr), "no function no-such-function: there are ");
    assert!(said.contains(expected) && said.contains("order-confirmation"), "{said}");

    let mails = watch.get("AWS_ENDPOINT_URL_SESV2", "/_claimant/mails").await;
    assert_eq!((&mails["received"], &mails["attempts"]), (&json!(1), &json!(1)), "one order is one mail");
    let charges = watch.get("GATEWAY_URL", "/_claimant/charges").await;
    assert_eq!((&charges["charged"], &charges["requests"]), (&json!(1), &json!(1)), "one payment is one charge");
}
