//! A stage for the tests of one function: its real binary behind the Lambda runtime API, and the endpoints it uses.
//!
//! Every stage has DynamoDB, with a lock table, and SQS, with a dead-letter queue where one is asked for; a test adds its
//! function's tables, variables and endpoints. All of it is on 127.0.0.1, in memory, and ends with the [`Stage`]. Unlike the
//! [`cloud`](crate::cloud) it has no template and no event source mapping: the test itself delivers, what and as often
//! as it likes.
//!
//! | module | holds |
//! | --- | --- |
//! | `config` | [`StageConfig`]: what a stage is made of |
//! | `gate` | [`Gate`]: requests to DynamoDB or a database, or their answers, that do not arrive |

mod config;
mod gate;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::dynamodb::DynamoDb;
use crate::journal::Journal;
use crate::lambda::{Function, FunctionConfig, Invocation};
use crate::sqs::{AttributeValue, QueueSettings, Received, Sqs};
use crate::sync::lock;

pub use config::{LOCK_TABLE, StageConfig};
pub use gate::{Gate, Hold};

/// Between two deliveries of what failed.
const REDELIVERY_PAUSE: Duration = Duration::from_millis(50);

/// A function and the world it works on. Dropping it kills the function's processes and closes the endpoints.
pub struct Stage {
    /// The function.
    pub function: Function,
    /// Its tables.
    pub dynamodb: DynamoDb,
    /// What stands before them, and before the servers that the test has put behind it.
    pub gate: Gate,
    sqs: Sqs,
    dead_letters: Option<String>,
    logs: Logs,
    // Dropped with the stage, which ends them.
    _endpoints: JoinSet<Result<(), Error>>,
}

/// What the function wrote, line by line.
type Logs = Arc<Mutex<Vec<String>>>;

impl Stage {
    /// Makes the tables, opens the endpoints and starts nothing else: the process starts with the first event.
    ///
    /// # Errors
    /// When there is no binary, a table or queue cannot be made, or 127.0.0.1 has no free port.
    pub async fn start(config: StageConfig) -> Result<Self, Error> {
        Self::starting(config).await
    }

    /// In a box, so that the endpoints are compiled here, and not in each test that starts one.
    fn starting(config: StageConfig) -> BoxFuture<'static, Result<Self, Error>> {
        Box::pin(Self::all_started(config))
    }

    async fn all_started(config: StageConfig) -> Result<Self, Error> {
        let StageConfig { executable, timeout, tables, variables, endpoints, gated, dead_letters } = config;
        let (dynamodb, sqs, gate) = (DynamoDb::in_memory()?, Sqs::new(), Gate::default());
        for table in &tables {
            dynamodb.create_table(table)?;
        }
        let mut usual = config::usual_variables();
        let mut running = JoinSet::new();

        let (behind, before, queues) = (listen().await?, listen().await?, listen().await?);
        let tables_at = behind.local_addr().map_err(no_port)?;
        usual.push(("AWS_ENDPOINT_URL_DYNAMODB".to_owned(), url(&before)?));
        usual.push(("AWS_ENDPOINT_URL_SQS".to_owned(), url(&queues)?));
        sqs.set_endpoint(&url(&queues)?);
        running.spawn(dynamodb.clone().serve(behind, std::future::pending()));
        running.spawn(gate.clone().serve(before, tables_at));
        running.spawn(sqs.clone().serve(queues, std::future::pending()));
        for (variable, serve) in endpoints {
            let listener = listen().await?;
            usual.push((variable, url(&listener)?));
            running.spawn(serve(listener));
        }
        for (variable, server, url) in gated {
            let listener = listen().await?;
            usual.push((variable, url(listener.local_addr().map_err(no_port)?)));
            running.spawn(gate.clone().serve(listener, server));
        }
        if let Some(name) = &dead_letters {
            sqs.create_queue(name, QueueSettings { fifo: name.ends_with(".fifo"), ..QueueSettings::default() })?;
            usual.push(("CLAIMANT_DEAD_LETTER_QUEUE_URL".to_owned(), sqs.queue_url(name)));
        }

        let logs = Logs::default();
        let sink = Arc::clone(&logs);
        let function = Function::new(FunctionConfig {
            name: executable.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            program: executable.into(),
            timeout,
            memory_mb: 128,
            // A later value of a variable counts.
            environment: usual.into_iter().chain(variables).collect(),
            concurrency: 1,
            logs: Arc::new(move |_, line| lock(&sink).push(line.to_owned())),
            journal: Journal::off(),
        })?;
        Ok(Self { function, dynamodb, gate, sqs, dead_letters, logs, _endpoints: running })
    }

    /// Hands an event to the function.
    pub async fn invoke(&self, event: &Value) -> Invocation {
        self.function.invoke(event.to_string().into_bytes()).await
    }

    /// The ids that the answer to an event reports failed, in its order.
    ///
    /// # Errors
    /// When there is no answer, or none that Lambda would read as a partial batch response: with the function's logs.
    pub async fn failures(&self, event: &Value) -> Result<Vec<String>, Error> {
        let answer = self.invoke(event).await;
        failed_ids(&answer).ok_or_else(|| {
            Error::new(format!("the function answered with {answer:?}, see its logs:\n{}", self.logged()))
        })
    }

    /// Delivers an event again and again, as a queue does that has no dead-letter queue, until nothing of it fails. Returns how
    /// often it was delivered.
    ///
    /// # Errors
    /// As [`failures`](Self::failures), and when something still fails after this long.
    pub async fn deliver_until_done(&self, event: &Value, within: Duration) -> Result<u32, Error> {
        let (start, mut deliveries) = (Instant::now(), 0);
        loop {
            let failures = self.failures(event).await?;
            deliveries += 1;
            if failures.is_empty() {
                return Ok(deliveries);
            }
            if start.elapsed() > within {
                return Err(Error::new(format!("{failures:?} still fail after {within:?}:\n{}", self.logged())));
            }
            sleep(REDELIVERY_PAUSE).await;
        }
    }

    /// Kills the function's processes in whatever they do, as a sandbox that is lost. The next event starts another one.
    pub fn kill(&self) {
        for id in self.function.pids() {
            self.function.kill(id);
        }
    }

    /// Delivers an event and kills the process as soon as the [gate](Gate) holds this operation, which it does until then: with
    /// the requests lost, or with their effect there and their answers lost. What the function did in between stays done.
    ///
    /// # Errors
    /// When the process was not killed, since the function answered without that operation: with those that it asked of DynamoDB.
    pub async fn invoke_and_kill_at(&self, what: Hold, operation: &str, event: &Value) -> Result<(), Error> {
        self.gate.hold(what, operation);
        let kill = async {
            self.gate.holds().await;
            self.kill();
        };
        // One that answers without the operation is not waited for.
        let mut invocation = std::pin::pin!(self.invoke(event));
        let (answer, killed) = tokio::select! {
            answer = &mut invocation => (answer, false),
            () = kill => (invocation.await, true),
        };
        self.gate.open();
        match answer {
            Invocation::Crashed { .. } if killed => Ok(()),
            answer if killed => Err(Error::new(format!("the process was killed at {operation:?}, and {answer:?}"))),
            answer => Err(Error::new(format!(
                "no request with {operation:?} came, so nothing was killed; those to DynamoDB were {:?}; the invocation came to {answer:?}, \
                 see the logs:\n{}",
                self.gate.came(),
                self.logged()
            ))),
        }
    }

    /// Takes the messages out of the dead-letter queue: the ids that they had, and why they are there.
    ///
    /// # Errors
    /// When the stage has no dead-letter queue, or something is in it that claimant did not send.
    pub async fn dead_letters(&self) -> Result<Vec<(String, String)>, Error> {
        let queue = self.dead_letters.as_ref().ok_or_else(|| Error::new("the stage has no dead-letter queue"))?;
        let letters = self.sqs.receive(queue, usize::MAX, Duration::ZERO).await?;
        for letter in &letters {
            self.sqs.delete(queue, &letter.receipt_handle)?;
        }
        let texts = letters.iter().map(|letter| Some((attribute(letter, "message-id")?, attribute(letter, "error")?)));
        let texts: Option<_> = texts.collect();
        texts.ok_or_else(|| Error::new("a dead letter is without claimant's attributes"))
    }

    /// Empties the lock table, as if every window were over and DynamoDB had deleted the records.
    ///
    /// # Errors
    /// When the lock table is gone already.
    pub fn forget_claims(&self) -> Result<(), Error> {
        self.dynamodb.delete_table(LOCK_TABLE)?;
        self.dynamodb.create_table(&config::lock_table()).map(drop)
    }

    /// Ends the function's processes, and returns everything that they wrote, a line each. Before that, lines of an
    /// invocation that has been answered can still be on their way.
    pub async fn stop(self) -> String {
        self.function.stop().await;
        self.logged()
    }

    fn logged(&self) -> String {
        lock(&self.logs).join("\n")
    }
}

/// The ids of a partial batch response; `None` where the answer is none.
fn failed_ids(answer: &Invocation) -> Option<Vec<String>> {
    let Invocation::Response(answer) = answer else { return None };
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let failures = answer["batchItemFailures"].as_array()?.iter();
    failures.map(|failure| failure["itemIdentifier"].as_str().map(str::to_owned)).collect()
}

/// One of the attributes that claimant adds to a dead letter.
fn attribute(letter: &Received, name: &str) -> Option<String> {
    match &letter.message_attributes.get(&format!("claimant-{name}"))?.value {
        AttributeValue::Text(text) => Some(text.clone()),
        AttributeValue::Binary(_) => None,
    }
}

async fn listen() -> Result<TcpListener, Error> {
    TcpListener::bind("127.0.0.1:0").await.map_err(no_port)
}

fn url(listener: &TcpListener) -> Result<String, Error> {
    Ok(format!("http://{}", listener.local_addr().map_err(no_port)?))
}

fn no_port(error: std::io::Error) -> Error {
    Error::new("127.0.0.1 has no free port for an endpoint of the stage").caused_by(error)
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("function", &self.function.name()).finish_non_exhaustive()
    }
}
