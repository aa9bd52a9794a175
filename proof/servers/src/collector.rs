//! An OpenTelemetry collector for tests, and the spans that it was sent.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::guard::{Program, Server};
use crate::programs::{data_directory, local, not_installed, on_port, repository, words};

/// Rotel, a collector in Rust, as `make tools` installs it into the `.tools` of this repository. It takes OTLP over HTTP, and writes
/// what it was sent to its log.
#[derive(Debug)]
pub struct Collector {
    server: Server,
    log: Receiver<String>,
    lines: Vec<String>,
}

/// A span as the collector shows it; ids in hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectedSpan {
    /// Its trace.
    pub trace_id: String,
    /// Its own id.
    pub id: String,
    /// Its parent's id; empty where it has none.
    pub parent_id: String,
    /// Its name.
    pub name: String,
    /// Such as `SPAN_KIND_CONSUMER`.
    pub kind: String,
    /// Such as `STATUS_CODE_UNSET`.
    pub status: String,
    /// The values as the collector shows them, such as `Str(a)` and `Int(1)`.
    pub attributes: BTreeMap<String, String>,
    /// The traces and ids of the spans that it is linked to.
    pub links: Vec<(String, String)>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// When it is not installed or does not start.
    pub fn start() -> io::Result<Self> {
        let program = repository()?.join(".tools/bin/rotel-agent");
        if !program.exists() {
            return Err(not_installed("the collector (rotel)"));
        }
        let start = |port: &str| {
            let data = data_directory("collector", None)?;
            let address = local(port);
            let mut command = words(&program, &["start", "--otlp-http-endpoint", &address]);
            // It has no switch for gRPC: another free port is the system's to give.
            let options = ["--otlp-grpc-endpoint", "127.0.0.1:0", "--exporter", "blackhole", "--batch-timeout", "20ms"];
            let shown = ["--debug-log", "traces", "--debug-log-verbosity", "detailed"];
            command.extend(options.iter().chain(&shown).map(Into::into));
            let program = Program { command, data, user: None, stop: "KILL" };
            program.start_and_read(|line| line.contains("Starting Rotel").then(|| address.clone()))
        };
        let (server, log) = on_port(None, start)?;
        Ok(Self { server, log, lines: Vec::new() })
    }

    /// Returns the URL that takes spans.
    #[must_use]
    pub fn traces_url(&self) -> String {
        format!("http://{}/v1/traces", self.server.address)
    }

    /// Returns all spans that it was sent, once they are enough; or those that there are after this long.
    pub fn spans(&mut self, enough: impl Fn(&[CollectedSpan]) -> bool, within: Duration) -> Vec<CollectedSpan> {
        let deadline = Instant::now() + within;
        loop {
            // A span is many lines: the last one is whole once no more come.
            while let Ok(line) = self.log.recv_timeout(Duration::from_millis(50)) {
                self.lines.push(line);
            }
            let spans = spans(&self.lines);
            if enough(&spans) || Instant::now() > deadline {
                return spans;
            }
        }
    }
}

/// Returns the spans in these lines of its log.
fn spans(lines: &[String]) -> Vec<CollectedSpan> {
    let (mut spans, mut in_attributes) = (Vec::<CollectedSpan>::new(), false);
    for line in lines {
        if line.starts_with("Span #") {
            spans.push(CollectedSpan::default());
            in_attributes = false;
        }
        let Some(span) = spans.last_mut() else { continue };
        match line.as_str() {
            "Attributes:" => in_attributes = true,
            "Links:" | "Events:" => in_attributes = false,
            _ => {}
        }
        let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once(':')) else { continue };
        let value = value.trim().to_owned();
        match name.trim() {
            "Trace ID" => span.trace_id = value,
            "Parent ID" => span.parent_id = value,
            "ID" => span.id = value,
            "Name" => span.name = value,
            "Kind" => span.kind = value,
            "Status code" => span.status = value,
            "-> Trace ID" => span.links.push((value, String::new())),
            "-> ID" => {
                if let Some(link) = span.links.last_mut() {
                    link.1 = value;
                }
            }
            name if in_attributes => {
                if let Some(name) = name.strip_prefix("-> ") {
                    span.attributes.insert(name.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    spans
}
