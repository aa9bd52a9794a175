//! A worker outside Lambda: a process that receives from a queue by itself until it is told to stop, and works on requests besides.
//!
//! ```text
//! ord-1 is packed
//! in the queue: 0 messages
//! ord-2 is packed
//! by a request: completed
//! the same again: duplicate
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message as Received, MessageSystemAttributeName as System};
use claimant::engine::{Engine, InvocationTime, Message, NoQueue, Outcome};
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, HandlerError};
use claimant_local::sqs::QueueSettings;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinError;
use tokio::time::sleep;

/// For how long SQS hides what it hands out: all work on it is over by then.
const HIDDEN_S: i32 = 60;

/// How long before that a report is there, so that there is time to delete.
const MARGIN: Duration = Duration::from_secs(5);

/// How long a request is worked on.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// How long an empty queue is waited at, in one request.
const WAIT_S: i32 = 20;

/// How long to wait after a request to SQS that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest that SQS hides a message.
const HIDDEN_MAX_S: u128 = 43_200;

type Failure = Box<dyn Error + Send + Sync>;

/// Receives from a queue and works on what comes.
struct Worker {
    engine: Arc<Engine>,
    client: Client,
    queue_url: String,
}

impl Worker {
    /// Works until it is told to stop, and then ends what it has begun. A receive that is under way is dropped: what SQS handed to it comes
    /// back later.
    async fn run(&self, mut stop: watch::Receiver<bool>) {
        loop {
            let received = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                received = self.receive() => received,
            };
            let worked = match received {
                Ok(received) => self.work(&received).await,
                Err(failure) => Err(failure),
            };
            if let Err(failure) = worked {
                eprintln!("the queue: {failure}");
                sleep(PAUSE).await;
            }
        }
    }

    async fn receive(&self) -> Result<Vec<Received>, Failure> {
        let receive = self.client.receive_message().queue_url(&self.queue_url).max_number_of_messages(10);
        let receive = receive.wait_time_seconds(WAIT_S).visibility_timeout(HIDDEN_S);
        let answer = receive.message_system_attribute_names(System::All).send().await?;
        Ok(answer.messages.unwrap_or_default())
    }

    async fn work(&self, received: &[Received]) -> Result<(), Failure> {
        let batch = received.iter().map(message).collect::<Result<Vec<_>, _>>()?;
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(Duration::from_secs(HIDDEN_S.unsigned_abs().into())), MARGIN);
        let report = self.engine.process(&batch, time, &NoQueue).await;
        // One message can be there twice: where one copy failed, it failed.
        let failed = report.failures();
        for (received, entry) in received.iter().zip(report.entries()) {
            if !failed.contains(&&entry.message_id) {
                self.delete(received).await?;
            } else if let Some(after) = entry.visible_after {
                self.show_again(received, after).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, received: &Received) -> Result<(), Failure> {
        let delete = self.client.delete_message().queue_url(&self.queue_url);
        delete.set_receipt_handle(received.receipt_handle.clone()).send().await?;
        Ok(())
    }

    async fn show_again(&self, received: &Received, after: Duration) -> Result<(), Failure> {
        let seconds = i32::try_from(after.as_millis().div_ceil(1_000).min(HIDDEN_MAX_S))?;
        let change = self.client.change_message_visibility().queue_url(&self.queue_url).visibility_timeout(seconds);
        change.set_receipt_handle(received.receipt_handle.clone()).send().await?;
        Ok(())
    }
}

/// A message as the engine takes it.
fn message(received: &Received) -> Result<Message, claimant::Error> {
    let count = received.attributes().and_then(|all| all.get(&System::ApproximateReceiveCount));
    let message = Message::new(received.message_id().unwrap_or_default(), received.body().unwrap_or_default())?;
    Ok(message.with_receive_count(count.and_then(|count| count.parse().ok()).unwrap_or_default()))
}

/// Works on requests, such as those of an HTTP service.
struct Desk {
    engine: Arc<Engine>,
    /// Each request under way has a clone.
    open: mpsc::Sender<()>,
}

impl Desk {
    /// Works on one request. In a task of its own: where whoever asked has gone, and this future is dropped, the work goes on. It would be
    /// cancelled otherwise, and its key be busy until the deadline.
    async fn handle(&self, request: Message) -> Result<Outcome, JoinError> {
        let (engine, open) = (Arc::clone(&self.engine), self.open.clone());
        let work = async move {
            let now = engine.now();
            let time = InvocationTime::new(now, now.plus(REQUEST_MAX), Duration::ZERO);
            let mut report = engine.process(&[request], time, &NoQueue).await.entries().to_vec();
            drop(open);
            report.remove(0).outcome
        };
        tokio::spawn(work).await
    }
}

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn pack(order: Order, _: Context) -> Result<(), HandlerError> {
    println!("{} is packed", order.order_id);
    Ok(())
}

/// On a store of your own in place of the one in memory. Its messages are dead-lettered after five receives.
fn engine() -> Result<Arc<Engine>, claimant::Error> {
    let packing = Consumer::new("packing", MemoryStore::new(), pack).key(|order: &Order| &order.order_id);
    Ok(Arc::new(Engine::with_defaults(packing)?.receives_max(5)))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("orders", QueueSettings::default())?;
    let queue_url = sqs.queue_url("orders");
    for _ in 0..2 {
        client.send_message().queue_url(&queue_url).message_body(r#"{"order_id": "ord-1"}"#).send().await?;
    }

    let engine = engine()?;
    let (stop, stopped) = watch::channel(false);
    let worker = Worker { engine: Arc::clone(&engine), client, queue_url };
    let working = tokio::spawn(async move { worker.run(stopped).await });
    while sqs.depth("orders")?.visible + sqs.depth("orders")?.in_flight > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    println!("in the queue: {} messages", sqs.messages("orders")?.len());

    let (open, mut closed) = mpsc::channel(1);
    let desk = Desk { engine, open };
    for (what, id) in [("by a request", "r-1"), ("the same again", "r-2")] {
        let outcome = desk.handle(Message::new(id, r#"{"order_id": "ord-2"}"#)?).await?;
        println!("{what}: {}", outcome.word());
    }

    // In a program of your own, when `tokio::signal` tells it of a SIGTERM.
    stop.send_replace(true);
    working.await?;
    drop(desk);
    // Nobody sends: it ends when the last request is over.
    closed.recv().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::sync::Notify;

    use super::*;

    /// An engine whose handler says that it has begun, and then waits for the second one.
    fn slow(begun: &Arc<Notify>, goes_on: &Arc<Notify>) -> Arc<Engine> {
        let (begun, goes_on) = (Arc::clone(begun), Arc::clone(goes_on));
        let pack = move |_: Order, _: Context| {
            let (begun, goes_on) = (Arc::clone(&begun), Arc::clone(&goes_on));
            async move {
                begun.notify_one();
                goes_on.notified().await;
                Ok::<_, HandlerError>(())
            }
        };
        let packing = Consumer::new("packing", MemoryStore::new(), pack).key(|order: &Order| &order.order_id);
        Arc::new(Engine::with_defaults(packing).unwrap())
    }

    fn order(id: &str) -> Message {
        Message::new(id, r#"{"order_id": "ord-1"}"#).unwrap()
    }

    /// Drops a future once this was notified.
    async fn dropped_at(begun: &Notify, future: impl Future<Output = ()>) {
        tokio::select! {
            () = begun.notified() => {}
            () = future => panic!("its handler waits"),
        }
    }

    #[tokio::test]
    async fn what_is_asked_for_by_somebody_who_goes_is_done() {
        let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (open, mut closed) = mpsc::channel(1);
        let desk = Desk { engine: slow(&begun, &goes_on), open };
        dropped_at(&begun, async { drop(desk.handle(order("r-1")).await) }).await;
        let again = desk.handle(order("r-2")).await.unwrap();
        assert_eq!(again.word(), "busy", "it is under way");
        goes_on.notify_one();
        let engine = Arc::clone(&desk.engine);
        drop(desk);
        assert_eq!(closed.recv().await, None);
        let (open, _) = mpsc::channel(1);
        assert_eq!(Desk { engine, open }.handle(order("r-3")).await.unwrap().word(), "duplicate");
    }

    /// What the task is for: the future alone takes its work with it, and the key stays busy.
    #[tokio::test]
    async fn a_future_that_is_dropped_leaves_its_key_busy() {
        let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let engine = slow(&begun, &goes_on);
        let time = || InvocationTime::new(engine.now(), engine.now().plus(REQUEST_MAX), Duration::ZERO);
        let batch = [order("r-1")];
        dropped_at(&begun, async { drop(engine.process(&batch, time(), &NoQueue).await) }).await;
        goes_on.notify_one();
        let report = engine.process(&[order("r-2")], time(), &NoQueue).await;
        assert_eq!(report.entries()[0].outcome.word(), "busy");
    }

    /// Nothing more is received, and what has begun is done.
    #[tokio::test]
    async fn a_worker_ends_what_it_has_begun() {
        let (sqs, client) = crate::support::sqs().await.unwrap();
        sqs.create_queue("orders", QueueSettings::default()).unwrap();
        let queue_url = sqs.queue_url("orders");
        client.send_message().queue_url(&queue_url).message_body(order("m").body()).send().await.unwrap();
        let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let worker = Worker { engine: slow(&begun, &goes_on), client: client.clone(), queue_url: queue_url.clone() };
        let (stop, stopped) = watch::channel(false);
        let mut working = Box::pin(worker.run(stopped));
        dropped_at(&begun, working.as_mut()).await;
        stop.send_replace(true);
        client.send_message().queue_url(&queue_url).message_body(order("m").body()).send().await.unwrap();
        assert!(poll_fn(|cx| Poll::Ready(working.as_mut().poll(cx).is_pending())).await);
        goes_on.notify_one();
        working.await;
        let depth = sqs.depth("orders").unwrap();
        assert_eq!((depth.visible, depth.in_flight), (1, 0));
    }

    /// One that failed comes back when its backoff is over, and not when it is visible anyway.
    #[tokio::test]
    async fn what_failed_is_shown_again() {
        let (sqs, client) = crate::support::sqs().await.unwrap();
        sqs.create_queue("orders", QueueSettings::default()).unwrap();
        let queue_url = sqs.queue_url("orders");
        client.send_message().queue_url(&queue_url).message_body(order("m").body()).send().await.unwrap();
        let fail = |_: Order, _: Context| async {
            Err::<(), _>(HandlerError::retry("away").after(Duration::from_secs(1_000)))
        };
        let packing = Consumer::new("packing", MemoryStore::new(), fail).key(|order: &Order| &order.order_id);
        let worker = Worker { engine: Arc::new(Engine::with_defaults(packing).unwrap()), client, queue_url };
        worker.work(&worker.receive().await.unwrap()).await.unwrap();
        let hidden = sqs.in_flight("orders").unwrap();
        assert!(hidden[0].visible_in > Duration::from_secs(2 * HIDDEN_S.unsigned_abs() as u64), "{hidden:?}");
    }
}
