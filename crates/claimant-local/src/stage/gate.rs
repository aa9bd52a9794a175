//! A gate before DynamoDB's endpoint and other servers: what it holds does not arrive, or is never answered, so that a test can kill the
//! process at exactly that point.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Error;
use crate::sync::lock;

/// Bytes carried at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// What stands before the operation's name in a request to DynamoDB.
const TARGET: &[u8] = b"DynamoDB_20120810.";

/// No rule has this number: the gate starts with it, open.
const NOTHING: u64 = 0;

/// What does not come through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Requests: they have no effect.
    Requests,
    /// Answers: their requests have their effect, and the function never learns of it.
    Answers,
}

/// Carries connections to an endpoint, byte by byte, and holds the requests or answers that match its rule. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    rule: watch::Sender<Rule>,
    /// How many requests or answers the rule has held.
    held: watch::Sender<u32>,
    /// The operations of DynamoDB that came since the rule is there.
    came: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Rule {
    /// How many rules there were before it.
    number: u64,
    /// What is held, and of which operation; `None` while the gate is open.
    what: Option<(Hold, String)>,
}

impl Gate {
    /// From now on holds this operation, such as `TransactWriteItems`, or a text of a request to another server, until the gate is [open](Self::open).
    pub fn hold(&self, what: Hold, operation: &str) {
        self.0.held.send_replace(0);
        lock(&self.0.came).clear();
        self.set(Some((what, operation.to_owned())));
    }

    /// Waits until something is held: a request before it arrived, or an answer that is there.
    pub async fn holds(&self) {
        // OK to be an error: there is always a sender, this gate's.
        let _ = self.0.held.subscribe().wait_for(|held| *held > 0).await;
    }

    /// Returns the operations of DynamoDB that came since [`hold`](Self::hold), held or not, by their names.
    #[must_use]
    pub fn came(&self) -> Vec<String> {
        lock(&self.0.came).iter().cloned().collect()
    }

    /// Loses what is held, with its connection, and lets everything through again.
    pub fn open(&self) {
        self.set(None);
    }

    /// Carries what comes to `listener` to the endpoint at `to`. Connections end when this is dropped.
    pub(super) async fn serve(self, listener: TcpListener, to: SocketAddr) -> Result<(), Error> {
        let mut connections = JoinSet::new();
        loop {
            let accepted = listener.accept().await;
            let (client, _) = accepted.map_err(|e| Error::new("the stage's gate stopped").caused_by(e))?;
            let gate = self.clone();
            // A connection that breaks is its two ends' own affair.
            connections.spawn(async move { gate.carry(client, to).await.unwrap_or_default() });
            while connections.try_join_next().is_some() {}
        }
    }

    /// Carries one connection, with one request at a time, until an end closes it or the gate opens for what it holds.
    async fn carry(&self, client: TcpStream, to: SocketAddr) -> io::Result<()> {
        let server = TcpStream::connect(to).await?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let held_answers = AtomicU64::new(NOTHING);
        let requests = async {
            let (mut chunk, mut seen) = (vec![0; CHUNK_BYTES], Vec::new());
            loop {
                let count = from_client.read(&mut chunk).await?;
                if count == 0 {
                    return Ok(());
                }
                match self.rule_for(&mut seen, &chunk[..count]) {
                    // Without its last bytes a request is none.
                    Some((Hold::Requests, rule)) => return self.keep(rule).await,
                    Some((Hold::Answers, rule)) => held_answers.store(rule, Ordering::Relaxed),
                    None => {}
                }
                to_server.write_all(&chunk[..count]).await?;
            }
        };
        let answers = async {
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                let count = from_server.read(&mut chunk).await?;
                if count == 0 {
                    return Ok(());
                }
                match held_answers.load(Ordering::Relaxed) {
                    NOTHING => {}
                    rule => return self.keep(rule).await,
                }
                to_client.write_all(&chunk[..count]).await?;
            }
        };
        tokio::select! {
            ended = requests => ended,
            ended = answers => ended,
        }
    }

    /// What the rule says of the request whose bytes so far end in `chunk`, and the rule's number. `seen` keeps as many of
    /// them as an operation's name can reach back.
    fn rule_for(&self, seen: &mut Vec<u8>, chunk: &[u8]) -> Option<(Hold, u64)> {
        let rule = self.0.rule.borrow();
        let (hold, operation) = rule.what.as_ref()?;
        lock(&self.0.came).extend(operation_in(chunk));
        seen.extend_from_slice(chunk);
        let found = seen.windows(operation.len()).any(|window| window == operation.as_bytes());
        seen.drain(..seen.len().saturating_sub(operation.len() - 1));
        found.then_some((*hold, rule.number))
    }

    /// Waits until this rule is over.
    async fn keep(&self, number: u64) -> io::Result<()> {
        self.0.held.send_modify(|held| *held += 1);
        // OK to be an error: there is always a sender, this gate's.
        let _ = self.0.rule.subscribe().wait_for(|rule| rule.number != number).await;
        Ok(())
    }

    fn set(&self, what: Option<(Hold, String)>) {
        self.0.rule.send_modify(|rule| *rule = Rule { number: rule.number + 1, what });
    }
}

/// The operation of DynamoDB that begins in these bytes of a request.
fn operation_in(chunk: &[u8]) -> Option<String> {
    let at = chunk.windows(TARGET.len()).position(|window| window == TARGET)? + TARGET.len();
    let name = chunk[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric());
    Some(name.map(|byte| char::from(*byte)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;
    use std::time::Duration;

    use super::*;

    /// An endpoint that answers each request, which ends with `!`, with how many it has got.
    async fn endpoint() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let requests = Arc::new(AtomicU8::new(0));
            while let Ok((mut stream, _)) = listener.accept().await {
                let requests = Arc::clone(&requests);
                tokio::spawn(async move {
                    while let Ok(byte) = stream.read_u8().await {
                        if byte == b'!' {
                            let count = requests.fetch_add(1, Ordering::SeqCst) + 1;
                            stream.write_all(&[count]).await.unwrap();
                        }
                    }
                });
            }
        });
        address
    }

    async fn ask(gate: SocketAddr, parts: &[&str]) -> io::Result<u8> {
        let mut stream = TcpStream::connect(gate).await?;
        for part in parts {
            stream.write_all(part.as_bytes()).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stream.read_u8().await
    }

    #[tokio::test]
    async fn what_is_held_has_no_effect_or_no_answer_until_the_gate_opens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, gate) = (listener.local_addr().unwrap(), Gate::default());
        tokio::spawn(gate.clone().serve(listener, endpoint().await));
        assert_eq!(ask(at, &["Commit!"]).await.unwrap(), 1);
        for (hold, parts, had_effect) in [
            (Hold::Requests, &["a Commit!"][..], 0),
            (Hold::Requests, &["a Com", "mit!"], 0),
            (Hold::Answers, &["a Commit!"], 1),
        ] {
            let before = ask(at, &["Look!"]).await.unwrap();
            gate.hold(hold, "Commit");
            let held = async {
                gate.holds().await;
                assert_eq!(ask(at, &["Look!"]).await.unwrap(), before + had_effect + 1, "others pass: {parts:?}");
                gate.open();
            };
            let (answer, ()) = tokio::join!(ask(at, parts), held);
            assert!(answer.is_err(), "{hold:?} {parts:?}");
        }
    }
}
