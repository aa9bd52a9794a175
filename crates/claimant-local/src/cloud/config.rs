//! What a local cloud is started from, and where its endpoints are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::lambda::LogSink;
use crate::stack::Stack;
use crate::{gateway, mailbox};

/// What a local cloud is started from.
#[derive(Clone)]
pub struct CloudConfig {
    /// The SAM template.
    pub template: PathBuf,
    /// Values for the template's parameters, beside their defaults.
    pub parameters: BTreeMap<String, String>,
    /// The functions' programs.
    pub binaries: Binaries,
    /// Where DynamoDB keeps its file; in memory where `None`. Queues, mails and S3's objects are always in memory.
    pub data: Option<PathBuf>,
    /// The ports to listen on.
    pub ports: Ports,
    /// The functions to run, by name, binary or logical id; all where empty.
    pub only: Vec<String>,
    /// How long slow answers take.
    pub delays: Delays,
    /// Takes the functions' log lines.
    pub logs: LogSink,
    /// What is changed of the template before it is started, such as times.
    pub adjust: Arc<dyn Fn(&mut Stack) + Send + Sync>,
    /// Where the functions find DynamoDB, instead of at this cloud's own endpoint: a line to it that fails, or another
    /// one, which has the template's tables already.
    pub dynamodb_url: Option<String>,
}

impl CloudConfig {
    /// Everything at its default: all functions, in memory, free ports, no logs.
    pub fn new(template: impl Into<PathBuf>, binaries: impl Into<PathBuf>) -> Self {
        Self {
            template: template.into(),
            parameters: BTreeMap::new(),
            binaries: Binaries::in_directory(binaries),
            data: None,
            ports: Ports::default(),
            only: Vec::new(),
            delays: Delays { mail: mailbox::SLOW_DELAY, charge: gateway::SLOW_DELAY },
            logs: Arc::new(|_, _| {}),
            adjust: Arc::new(|_| {}),
            dynamodb_url: None,
        }
    }
}

/// Where the functions' programs are, and when.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// The directory that holds the binaries, by their names or as `sam build` and cargo-lambda lay them out; `None` where they are
    /// only searched for.
    pub directory: Option<PathBuf>,
    /// Whether to look for a binary that is not there also beside the template: for `bootstrap` in the function's `CodeUri` and
    /// in `.aws-sam/build`, and for what cargo and cargo-lambda built. The newest that this machine can run is taken.
    pub search: bool,
    /// Whether a function without a program waits for one, and its messages with it; otherwise it is an error. It is found by
    /// [`watch`](Self::watch).
    pub wait: bool,
    /// Whether new builds of running functions are picked up; their queues, tables and ports stay.
    pub watch: bool,
}

impl Binaries {
    /// Binaries that are all in this directory, and stay as they are.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), search: false, wait: false, watch: false }
    }
}

/// How long slow answers take.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    /// The mailbox's, to a mail to a `slow…` address.
    pub mail: Duration,
    /// The gateway's, to a charge of a `slow…` reference.
    pub charge: Duration,
}

/// The ports of the endpoints on 127.0.0.1; 0 takes a free one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ports {
    /// DynamoDB's.
    pub dynamodb: u16,
    /// SQS's.
    pub sqs: u16,
    /// SES's.
    pub ses: u16,
    /// EventBridge Scheduler's.
    pub scheduler: u16,
    /// The payment gateway's.
    pub gateway: u16,
    /// S3's, where the template has a bucket.
    pub s3: u16,
    /// The control endpoint's.
    pub control: u16,
}

/// The base addresses of the endpoints.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// DynamoDB's.
    pub dynamodb: String,
    /// SQS's.
    pub sqs: String,
    /// SES's; `/_claimant/mails` under it lists what was received.
    pub ses: String,
    /// EventBridge Scheduler's.
    pub scheduler: String,
    /// The payment gateway's; `/_claimant/charges` under it lists what was charged.
    pub gateway: String,
    /// S3's, where the template has a bucket.
    pub s3: Option<String>,
    /// The control endpoint's: what the cloud holds, for the commands that operate it.
    pub control: String,
}

/// Returns why a service cannot listen on this port of 127.0.0.1, and how to fix it with the `option` that sets the port.
#[must_use]
pub fn cannot_listen(service: &str, option: &str, port: u16, why: ErrorKind) -> String {
    let fix = match why {
        ErrorKind::AddrInUse => {
            format!(": stop the process that uses that port, or give another port with {option} (0 for a free one)")
        }
        ErrorKind::PermissionDenied => format!(": give another port with {option} (0 for a free one)"),
        _ => String::new(),
    };
    format!("{service} cannot listen on port {port} of 127.0.0.1{fix}")
}
