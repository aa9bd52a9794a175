//! Contents that are larger than the bodies that they were packed in.

use std::time::Duration;

use claimant_core::limits::UNPACKED_BATCH_MAX_BYTES;
use claimant_core::{
    BoxFuture, Context, Decoder, Engine, Envelope, FetchError, Fingerprint, HandlerError, InvocationTime, MemoryStore,
    Message, NoQueue, PayloadSource, Pointer, Rejection, Room, Router, Routes, Timestamp, decoded_by,
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

/// Opens a content that holds itself.
struct Same;

impl Envelope for Same {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        Ok(vec![message])
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

/// Where no message points to.
struct Nowhere;

impl PayloadSource for Nowhere {
    fn pointer(&self, _: &Message) -> Result<Option<Pointer>, Rejection> {
        Ok(None)
    }

    fn fetch<'a>(&'a self, _: &'a Pointer, _: &'a Room, _: Duration) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::NoRoom)))
    }

    fn room_bytes(&self) -> usize {
        0
    }

    fn concurrency(&self) -> usize {
        1
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_unpacks_to_is_bounded_and_the_rest_comes_back() {
    let most = UNPACKED_BATCH_MAX_BYTES >> 20;
    let consumer = || decoded_by(Length).consumer("c", MemoryStore::new(), nothing);
    let engine = || Engine::with_defaults(consumer().envelope(Lines).envelope(Zeros)).unwrap();
    let router = || {
        let routes = Routes::by(|_| Some("all".to_owned())).envelope(Lines).envelope(Zeros);
        Router::new(routes.on("all", consumer()), 10).unwrap()
    };
    // What is around a pointer is opened before it is known that there is none.
    let pointing = || {
        let consumer = consumer().envelope(Lines).envelope(Zeros).large_payloads(Nowhere).envelope(Same);
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
    let time = |now: Timestamp| InvocationTime::new(now, now.plus(TIMEOUT), Duration::from_millis(500));
    for (sizes, wanted) in rows {
        let message = |(place, (mib, receives)): (usize, &(usize, u32))| {
            Message::new(format!("m-{place}"), mib.to_string()).unwrap().with_receive_count(*receives)
        };
        let batch: Vec<_> = sizes.iter().enumerate().map(message).collect();
        for engine in [engine(), pointing()] {
            let report = engine.process(&batch, time(engine.now()), &NoQueue).await;
            assert_eq!(words(&report), wanted, "{sizes:?}");
        }
        let router = router();
        let report = router.process(&batch, time(router.now()), &NoQueue).await;
        assert_eq!(words(report.all()), wanted, "{sizes:?}, by routes");
    }
    // Of a group, nothing overtakes what waits.
    let ordered = [most, 1, 0].map(|mib| Message::new(format!("o-{mib}"), mib.to_string()).unwrap());
    let (router, ordered) = (router(), ordered.map(|message| message.with_ordered_group("g")));
    let report = router.process(&ordered, time(router.now()), &NoQueue).await;
    assert_eq!(words(report.all()), "completed not_started blocked");
    // No other batch could have room for all of these.
    let body = [(most / 2).to_string(), (most / 2 + 1).to_string()].join("\n");
    let batch = [Message::new("m-1", body).unwrap(), Message::new("m-2", "1\n2").unwrap()];
    let engine = engine();
    let report = engine.process(&batch, time(engine.now()), &NoQueue).await;
    assert_eq!(words(&report), "rejected completed");
}

/// Takes its time, and the thread.
struct Slow;

impl Envelope for Slow {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        std::thread::sleep(Duration::from_millis(30));
        Ok(vec![message])
    }
}

#[tokio::test]
async fn unpacking_takes_a_part_of_the_time_and_the_rest_comes_back() {
    let batch: Vec<_> = (0..100).map(|n| Message::new(format!("m-{n}"), "1").unwrap()).collect();
    let consumer = || decoded_by(Length).consumer("c", MemoryStore::new(), nothing);
    for routes in [
        Routes::by(|_| Some("all".to_owned())).on("all", consumer().envelope(Slow)),
        Routes::by(|_| Some("all".to_owned())).on("all", consumer().envelope(Slow).large_payloads(Nowhere)),
        Routes::by(|_| Some("all".to_owned())).envelope(Slow).on("all", consumer()),
    ] {
        let router = Router::new(routes, 10).unwrap();
        let timeout = Duration::from_secs(2);
        let time = InvocationTime::new(router.now(), router.now().plus(timeout), Duration::from_millis(500));
        let start = std::time::Instant::now();
        let report = router.process(&batch, time, &NoQueue).await;
        assert!(start.elapsed() < timeout, "{:?}", start.elapsed());
        let words = words(report.all());
        assert!(words.starts_with("completed ") && words.ends_with(" not_started"), "{words}");
    }
}
