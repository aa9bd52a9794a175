//! Messages at a time of their own: scheduling again makes no second one, and another message under its key is a conflict.
//!
//! ```text
//! ord-1: Ok(Created)
//! ord-1 again: Ok(AlreadyThere)
//! ord-1 at another time: Err(Conflict)
//! ord-2: Ok(Created)
//! ord-2, paid: Ok(Deleted)
//! tomorrow: {"order_id": "ord-1"}
//! ```

use std::time::Duration;

use claimant::producer::{Outgoing, Scheduled, Scheduler, SendError, SendErrorKind};
use claimant::{Clock, Key, SystemClock, Timestamp};
use claimant_local::sqs::QueueSettings;

/// Schedules the reminder of an order.
async fn remind(scheduler: &Scheduler, order_id: &str, at: Timestamp) -> Result<Scheduled, SendErrorKind> {
    let key = Key::new(format!("remind/{order_id}")).expect("it is short");
    let body = format!(r#"{{"order_id": "{order_id}"}}"#);
    scheduler.schedule(Outgoing::new(key, body), at).await.map_err(|error: SendError| error.kind())
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, _) = crate::support::sqs().await?;
    sqs.create_queue("reminders", QueueSettings::default())?;
    let (service, client) = crate::support::scheduler(&sqs).await?;
    let role = "arn:aws:iam::000000000000:role/reminders";
    let scheduler = Scheduler::new(client, sqs.queue_url("reminders"), role);

    // When the reminder is due is a fact of the order: each try asks for the same time.
    let tomorrow = SystemClock.now().plus(Duration::from_secs(86_400));
    println!("ord-1: {:?}", remind(&scheduler, "ord-1", tomorrow).await);
    println!("ord-1 again: {:?}", remind(&scheduler, "ord-1", tomorrow).await);
    let later = tomorrow.plus(Duration::from_secs(60));
    println!("ord-1 at another time: {:?}", remind(&scheduler, "ord-1", later).await);

    println!("ord-2: {:?}", remind(&scheduler, "ord-2", tomorrow).await);
    let cancelled = scheduler.cancel(&Key::new("remind/ord-2")?).await;
    println!("ord-2, paid: {:?}", cancelled.map_err(|error| error.kind()));

    // Here the time comes when it is called.
    service.run_due(tomorrow.plus(Duration::from_secs(1)).as_millis());
    for message in sqs.messages("reminders")? {
        println!("tomorrow: {}", message.body);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claimant::memory::MemoryStore;
    use claimant::{Consumer, Context, HandlerError};
    use claimant_test::{TestMessage, TestQueue};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Order {
        order_id: String,
    }

    /// Whoever scheduled it how often: what arrives is one piece of work, for a consumer that keys by the same field.
    #[tokio::test]
    async fn a_reminder_that_is_scheduled_twice_is_one() {
        let (sqs, _) = crate::support::sqs().await.unwrap();
        sqs.create_queue("reminders", QueueSettings::default()).unwrap();
        let (service, client) = crate::support::scheduler(&sqs).await.unwrap();
        let role = "arn:aws:iam::000000000000:role/reminders";
        let scheduler = Scheduler::new(client, sqs.queue_url("reminders"), role);
        let tomorrow = SystemClock.now().plus(Duration::from_secs(86_400));
        for _ in 0..2 {
            remind(&scheduler, "ord-1", tomorrow).await.unwrap();
        }
        service.run_due(tomorrow.plus(Duration::from_secs(1)).as_millis());
        let sent: Vec<_> = sqs.messages("reminders").unwrap().iter().map(|sent| TestMessage::text(&sent.body)).collect();
        let mail = |_: Order, _: Context| async { Ok::<_, HandlerError>(()) };
        let consumer = Consumer::new("reminding", MemoryStore::new(), mail).key(|order: &Order| &order.order_id);
        let queue = TestQueue::new(consumer);
        queue.send(&sent);
        assert_eq!(queue.drain().await.outcomes(), ["m-1: completed"]);
    }
}
