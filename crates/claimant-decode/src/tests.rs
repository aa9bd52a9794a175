//! Consumers of what is packed: what counts as the same work.

use std::time::Duration;

use claimant_core::decode::Text;
use claimant_core::{
    AttributeValue, Consumer, Context, Engine, HandlerError, InvocationTime, MemoryStore, Message, NoQueue, decoded_by,
};

use crate::gzip::tests::packed;
use crate::{Base64, Gzip};

async fn print(_: String, cx: Context) -> Result<(), HandlerError> {
    if cx.key().is_empty() { Err(HandlerError::terminal("no key")) } else { Ok(()) }
}

fn consumer() -> Consumer<String> {
    decoded_by(Text)
        .consumer("printing", MemoryStore::new(), print)
        .key_of_attribute("page")
        .envelope(Base64::standard())
        .envelope(Gzip::new())
}

fn message(id: &str, content: &[u8], page: Option<AttributeValue>) -> Message {
    use ::base64::Engine as _;
    let body = ::base64::engine::general_purpose::STANDARD.encode(content);
    let message = Message::new(id, body).expect("a short id");
    page.into_iter().fold(message, |message, page| message.with_attribute("page", page))
}

#[tokio::test(flavor = "current_thread")]
async fn what_counts_is_what_was_unpacked() {
    let engine = Engine::with_defaults(consumer()).unwrap();
    let (once, text) = (packed(b"a page"), AttributeValue::text("p-1"));
    // The time in the header of gzip.
    let mut later = once.clone();
    later[4] = 7;
    let page = |id, content: &[u8]| message(id, content, Some(text.clone()));
    let batch = [
        page("m-1", &once),
        page("m-2", &later),
        page("m-3", &packed(b"another page")),
        message("m-4", &once, Some(AttributeValue::number(1))),
        message("m-5", &once, None),
        message("m-6", &once, Some(AttributeValue::bytes("secret"))),
        page("m-7", b"secret"),
        message("m-8", &packed(b"\xff"), Some(AttributeValue::text("p-8"))),
    ];
    let now = engine.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    let report = engine.process(&batch, time, &NoQueue).await;
    let outcomes: Vec<_> = report.entries().iter().map(|entry| format!("{:?}", entry.outcome)).collect();
    let wanted = [
        "Completed",
        "Duplicate",
        "another payload",
        "Completed",
        "the attribute `page` is missing",
        "the attribute `page` is a Binary, and not a String or a Number",
        "the decoded Base64 is not gzip, is cut off or damaged (at byte ",
        "the unpacked gzip is not UTF-8 (from byte 0 on)",
    ];
    for (outcome, wanted) in outcomes.iter().zip(wanted) {
        assert!(outcome.contains(wanted) && !outcome.contains("secret"), "{outcome}, not {wanted}");
    }
}
