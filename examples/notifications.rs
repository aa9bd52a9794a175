//! S3 notifications: each record of a message is an event with a key of its own, and the message is done when all are. The message
//! that S3 sends when a notification is set up is no work.
//!
//! ```text
//! thumbnail of photos/cat 1.jpg
//! thumbnail of photos/dog.jpg failed
//! m-1 retry, m-2 empty
//! thumbnail of photos/dog.jpg
//! m-1 completed
//! m-3 duplicate
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use claimant::engine::Engine;
use claimant::envelope::{S3, S3Record};
use claimant::memory::MemoryStore;
use claimant::{Consumer, Context, Handler, HandlerError};
use claimant_test::{S3Object, TestMessage};

/// Makes thumbnails, but the first one of the dog fails.
#[derive(Default)]
struct Thumbnails {
    failed: AtomicBool,
}

impl Handler<S3Record> for Thumbnails {
    type Output = ();

    async fn handle(&self, object: S3Record, _: Context) -> Result<(), HandlerError> {
        let name = format!("{}/{}", object.bucket, object.key);
        if object.key == "dog.jpg" && !self.failed.swap(true, Ordering::Relaxed) {
            println!("thumbnail of {name} failed");
            return Err(HandlerError::retry("out of memory"));
        }
        println!("thumbnail of {name}");
        Ok(())
    }
}

/// Without a rule for keys, the key is the object's id: its bucket, key and version.
fn consumer() -> Consumer<S3Record> {
    Consumer::new("thumbnails", MemoryStore::new(), Thumbnails::default()).envelope(S3).concurrency(1)
}

/// One message with two events.
fn both() -> TestMessage {
    TestMessage::s3(&["cat 1.jpg", "dog.jpg"].map(|key| S3Object::created("photos", key)))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let engine = Engine::with_defaults(consumer())?;
    let both = both();
    let test = TestMessage::s3_test_event("photos");
    crate::support::deliver_all(&engine, &[both.message(1), test.message(2)]).await?;
    // The message comes back. What was done of it is not done again.
    crate::support::deliver_all(&engine, &[both.message(1)]).await?;
    // S3 sends a notification more than once, too.
    crate::support::deliver_all(&engine, &[both.sent_again().message(3)]).await
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_object_gets_its_thumbnail() {
        for scenario in Scenario::all() {
            let queue = TestQueue::new(consumer());
            queue.play(&scenario, &[both(), TestMessage::s3_test_event("photos")]).await.assert_done();
        }
    }
}
