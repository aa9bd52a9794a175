//! The console over a local cloud with the built functions, in this process, and a browser that opens its pages.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use claimant_console::Console;
use claimant_console::source::LocalCloud;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::dynamodb::Item;
use claimant_local::sqs::{Depth, NewMessage};
use claimant_local::workload;
use claimant_servers::repository;
use claimant_tests::browser::{Browser, Page};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cloud::{binaries, start, wait_for};

/// What a function has for a batch; leases are a second longer, so that what a killed process left is taken over in seconds.
const TIMEOUT: Duration = Duration::from_secs(6);

/// A cloud of the project's own template with its functions, its console, and a browser.
pub(super) struct Stage {
    pub(super) cloud: Cloud,
    /// Where the console is, without the last slash.
    pub(super) address: String,
    pub(super) browser: Arc<Browser>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Stage {
    /// Starts it with these functions.
    pub(super) async fn start(functions: &[&str]) -> Self {
        let mut config = CloudConfig::new(repository().unwrap().join("template.yaml"), binaries());
        config.only = functions.iter().map(|name| (*name).to_owned()).collect();
        config.adjust = Arc::new(|stack| {
            stack.functions.iter_mut().for_each(|function| function.timeout = TIMEOUT);
            let queues = stack.queues.iter_mut().filter(|queue| queue.settings.redrive.is_some());
            queues.for_each(|queue| queue.settings.visibility_timeout = TIMEOUT);
        });
        let (cloud, _) = start(config).await;
        workload::show_effects(&cloud);
        let console = Console::new(LocalCloud::open(cloud.view()).await.expect("the cloud answers"));
        let (listener, address) = claimant_console::bind(0).await.expect("there is a port");
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            claimant_console::serve(console, listener, shutdown).await.expect("the console is served");
        });
        let address = address.trim_end_matches('/').to_owned();
        Self { cloud, address, browser: Browser::shared(), stop, served }
    }

    /// Opens a page of the console by its path.
    pub(super) fn open(&self, page: &Page, path: &str) {
        page.open(&format!("{}{path}", self.address));
    }

    /// Clicks what does something, and returns what the page then says became of it.
    pub(super) fn act(&self, page: &Page, wanted: &str) -> String {
        page.eval("window.before_the_act = true");
        page.click(wanted);
        // The answer is a page of its own.
        let answered = "window.before_the_act === undefined && document.readyState === 'complete'";
        page.until(&format!("the answer to {wanted}"), answered);
        let said = page.text(".notice, .error");
        assert!(!said.is_empty(), "nothing was said after {wanted}: {}", page.text("main"));
        said
    }

    /// Sends a body to a queue; returns the message's id.
    pub(super) fn send(&self, queue: &str, body: &str) -> String {
        self.cloud.sqs().send(queue, NewMessage::new(body)).expect("the queue is there").message_id
    }

    /// Sends an order, whose mail goes to this address.
    pub(super) fn order(&self, id: &str, address: &str) -> String {
        self.send("OrderQueue", &Self::body_of(id, address))
    }

    /// Returns the body of an order.
    pub(super) fn body_of(id: &str, address: &str) -> String {
        let items = json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
        json!({ "order_id": id, "customer_email": address, "items": items, "currency": "EUR" }).to_string()
    }

    /// Returns how many messages a queue holds.
    pub(super) fn depth(&self, queue: &str) -> usize {
        let Depth { visible, in_flight, delayed } = self.cloud.sqs().depth(queue).expect("the queue is there");
        visible + in_flight + delayed
    }

    /// Returns how many messages were ever sent to a queue.
    pub(super) fn sent(&self, queue: &str) -> u64 {
        self.cloud.sqs().counters(queue).expect("the queue is there").sent
    }

    /// Returns how many mails were sent.
    pub(super) fn mails(&self) -> usize {
        self.cloud.mailbox().mails().len()
    }

    /// Returns how many mails an order has.
    pub(super) fn mails_of(&self, order: &str) -> usize {
        let mails = self.cloud.mailbox().mails();
        mails.iter().filter(|mail| mail.header("X-Claimant-Key") == Some(order)).count()
    }

    /// Waits until nothing is left to do.
    pub(super) async fn drained(&self) {
        wait_for("the queues to drain", || self.cloud.drained().expect("the queues are there")).await;
    }

    /// Returns the record of a key of the lock table.
    pub(super) fn record(&self, id: &str) -> Option<Item> {
        self.records(id).into_iter().find(|item| item.text("id") == Some(id))
    }

    /// Returns the records of the lock table whose ids begin with this.
    pub(super) fn records(&self, prefix: &str) -> Vec<Item> {
        let mut items = self.cloud.dynamodb().items("LockTable").expect("the table is there");
        items.retain(|item| item.text("id").is_some_and(|id| id.starts_with(prefix)));
        items
    }

    /// Asks the console, as a program that says of itself what it likes; returns the status, the head and the body.
    pub(super) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let authority = self.address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(authority).expect("the console listens");
        let mut head = format!("{method} {path} HTTP/1.0\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {authority}\r\n");
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        write!(stream, "{head}\r\n{body}").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, head.to_lowercase(), body.to_owned())
    }

    /// Returns a page as JSON.
    pub(super) fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.ask("GET", path, &[("accept", "application/json")], "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"))
    }

    /// Does something as a program does, and returns what became of it.
    pub(super) fn post(&self, path: &str, fields: &Value) -> Value {
        let headers = [("accept", "application/json"), ("content-type", "application/json")];
        let (status, _, body) = self.ask("POST", path, &headers, &fields.to_string());
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"))
    }

    /// Ends all of it in order.
    pub(super) async fn end(self) {
        let Self { cloud, browser, stop, served, .. } = self;
        drop(browser);
        stop.send(()).expect("it is served");
        served.await.expect("it ends well");
        cloud.stop().await;
    }
}
