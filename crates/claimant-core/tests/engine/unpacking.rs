//! Contents that are larger than the bodies that they were packed in.

use std::time::Duration;

use claimant_core::limits::UNPACKED_BATCH_MAX_BYTES;
use claimant_core::{
    Context, Decoder, Engine, Envelope, Fingerprint, HandlerError, MemoryStore, Message, NoQueue, Rejection, Schedule,
    decoded_by,
};

use super::{TIMEOUT, words};

/// Unpacks a body that says how many MiB it holds.
struct Zeros;

impl Envelope for Zeros {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let text = std::str::from_utf8(message.content()).unwrap_or_default();
        let mib: usize = text.parse().map_err(|_| Rejection::new("the body is no number"))?;
        Ok(vec![message.unpacked(vec![0; mib << 20])])
    }
}

/// Opens a body of several such numbers.
struct Lines;

impl Envelope for Lines {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        Ok(message.body().lines().map(|line| message.clone().unpacked(line)).collect())
    }
}

/// Takes how much it is, and looks at none of it.
struct Length;

impl Decoder<usize> for Length {
    fn decode(&self, content: &[u8], _: &Message) -> Result<usize, Rejection> {
        Ok(content.len())
    }

    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        Fingerprint::of_bytes(&content.len().to_be_bytes())
    }
}

async fn nothing(_: usize, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_unpacks_to_is_bounded_and_the_rest_comes_back() {
    let most = UNPACKED_BATCH_MAX_BYTES >> 20;
    let engine = || {
        let consumer = decoded_by(Length).consumer("c", MemoryStore::new(), nothing).envelope(Lines).envelope(Zeros);
        Engine::with_defaults(consumer).unwrap()
    };
    let rows: [(&[(usize, u32)], &str); 4] = [
        // One always has room.
        (&[(most + 1, 1), (0, 1)], "completed completed"),
        (&[(most / 2, 1), (most / 2, 1), (1, 1), (0, 1)], "completed completed not_started completed"),
        // Those with the most receives come first.
        (&[(most, 1), (most, 1), (most, 2)], "not_started not_started completed"),
        (&[(1, 1), (most, 3), (1, 2)], "not_started completed not_started"),
    ];
    let schedule =
        |engine: &Engine| Schedule::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    for (sizes, wanted) in rows {
        let message = |(place, (mib, receives)): (usize, &(usize, u32))| {
            Message::new(format!("m-{place}"), mib.to_string()).unwrap().with_receive_count(*receives)
        };
        let batch: Vec<_> = sizes.iter().enumerate().map(message).collect();
        let engine = engine();
        let report = engine.process(&batch, schedule(&engine), &NoQueue).await;
        assert_eq!(words(&report), wanted, "{sizes:?}");
    }
    // No other batch could have room for all of these.
    let body = [(most / 2).to_string(), (most / 2 + 1).to_string()].join("\n");
    let batch = [Message::new("m-1", body).unwrap(), Message::new("m-2", "1\n2").unwrap()];
    let engine = engine();
    let report = engine.process(&batch, schedule(&engine), &NoQueue).await;
    assert_eq!(words(&report), "rejected completed");
}
