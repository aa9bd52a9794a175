//! Large payloads: the producer puts what SQS would not take into S3, and the message points to it.
//!
//! The key and the fingerprint are the payload's: a copy with another pointer, or with none, is a duplicate.
//!
//! ```text
//! in the queue: a pointer of fewer than 200 bytes
//! indexing scan-7: 3 pages
//! m-1 completed
//! m-2 duplicate, m-3 rejected
//! ```

use claimant::engine::{Engine, Message};
use claimant::memory::MemoryStore;
use claimant::payloads::PayloadSource;
use claimant::producer::{Outgoing, Producer};
use claimant::store::Store;
use claimant::{AttributeValue, Consumer, Context, HandlerError, Key};
use claimant::s3::S3Payloads;
use claimant_local::sqs::QueueSettings;
use claimant_test::TestMessage;

#[derive(serde::Deserialize)]
struct Scan {
    scan_id: String,
    pages: Vec<String>,
}

async fn index(scan: Scan, cx: Context) -> Result<(), HandlerError> {
    println!("indexing {}: {} pages", cx.key(), scan.pages.len());
    Ok(())
}

fn consumer(store: impl Store, payloads: impl PayloadSource) -> Consumer<Scan> {
    Consumer::new("indexing", store, index).key(|scan| &scan.scan_id).large_payloads(payloads)
}

/// A scan of 400 KB.
fn scan() -> String {
    serde_json::json!({ "scan_id": "scan-7", "pages": vec!["x".repeat(133_000); 3] }).to_string()
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("scans", QueueSettings::default())?;
    let (_s3, client_of_s3) = crate::support::s3("payloads").await?;
    let payloads = || S3Payloads::new(client_of_s3.clone(), "payloads");

    let producer = Producer::new(client, sqs.queue_url("scans")).large_payloads(payloads());
    // Otherwise SQS's own limit of 1 MiB counts.
    producer.large_over_bytes(262_144).send(Outgoing::new(Key::new("scan-7")?, scan())).await?;
    let sent = sqs.messages("scans")?.remove(0);
    assert!(sent.body.len() < 200);
    println!("in the queue: a pointer of fewer than 200 bytes");

    let engine = Engine::with_defaults(consumer(MemoryStore::new(), payloads()))?;
    let size = AttributeValue::number(scan().len());
    let batch = [
        Message::new("m-1", sent.body)?.with_attribute("ExtendedPayloadSize", size),
        // Sent by a producer that has no limit but SQS's.
        Message::new("m-2", scan())?,
        // Any bucket may be named in a message. Only that of the settings is read.
        TestMessage::s3_pointer("another-bucket", "scan-7", 400_000).message(3),
    ];
    crate::support::deliver_all(&engine, &batch[..1]).await?;
    crate::support::deliver_all(&engine, &batch[1..]).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{MemoryPayloads, Scenario, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_scan_is_indexed_once_wherever_its_payload_is() {
        for scenario in Scenario::all() {
            let payloads = MemoryPayloads::new("payloads").with("a", scan()).with("b", scan());
            let pointer = |key| TestMessage::s3_pointer("payloads", key, 400_000);
            let queue = TestQueue::new(consumer(MemoryStore::new(), payloads));
            queue.play(&scenario, &[pointer("a"), pointer("b"), TestMessage::text(scan())]).await.assert_done();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_there_is_rejected() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer(MemoryStore::new(), MemoryPayloads::new("payloads")));
            let played = queue.play(&scenario, &[TestMessage::s3_pointer("payloads", "c", 1)]).await;
            played.assert_dead_lettered("the payload is not in its bucket");
        }
    }
}
