//! An account that a server on loopback plays.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The answer of a server that closes the connection instead.
pub(crate) const CLOSE: (u16, String) = (0, String::new());

/// A server that answers every request by its operation, and keeps the requests, each before its answer.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(answer: fn(&str) -> (u16, String)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&requests);
        // It ends with the test's process.
        thread::spawn(move || {
            for connection in listener.incoming() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || while serve(connection.as_ref().unwrap(), answer, &kept).is_some() {});
            }
        });
        Self { url, requests }
    }

    /// Runs the command in this account; returns its exit code, standard output and standard error.
    pub(crate) fn claimant(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claimant"));
        let Output { status, stdout, stderr } = command.args(args).envs(self.variables()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    }

    /// Runs the command in this account, and ends it as Ctrl-C does once such a request has come; returns the same.
    pub(crate) async fn interrupted(&self, args: &[&str], once: &str) -> (Option<i32>, String, String) {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_claimant"));
        command.args(args).envs(self.variables()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let process = command.spawn().unwrap();
        let is_asked = async {
            while !self.requests.lock().unwrap().iter().any(|request| request.contains(once)) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, is_asked).await.unwrap();
        let id = process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        let Output { status, stdout, stderr } = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    }

    pub(crate) fn variables(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_ENDPOINT_URL", &self.url),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            // As where tests run beside a local cloud.
            ("CLAIMANT_LOCAL_URL", ""),
        ]
    }
}

/// Answers a request of a connection; nothing once it is closed.
fn serve(mut connection: &TcpStream, answer: fn(&str) -> (u16, String), kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = format!("{head}\n{}", String::from_utf8_lossy(&body));
    kept.lock().unwrap().push(request.clone());
    let (status, mut body) = answer(&request);
    if let (200, true, Ok(mut said)) =
        (status, request.contains("ReturnConsumedCapacity"), serde_json::from_str::<Value>(&body))
    {
        // Any success has it, by which it is known for DynamoDB's.
        said["ConsumedCapacity"] = json!({});
        body = said.to_string();
    }
    if status == CLOSE.0 {
        return None;
    }
    write!(connection, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok()
}
