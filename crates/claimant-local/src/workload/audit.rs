//! Business events for `audit`: each copy of an event comes another way, as if its producer, a topic and a bus had all sent it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plan::{Fate, Piece, Plan, Random, Repeat, Request};
use super::sample::{Effect, Look, Sample, Seen, variable_of};
use crate::cloud::Services;
use crate::stack::FunctionSpec;

/// One event in this many is about an object in a bucket.
const EVENTS_PER_OBJECT: u32 = 5;
/// One event in this many has no type, and is refused.
const EVENTS_PER_REFUSED: u32 = 20;
/// What happens, in turn.
const TYPES: [&str; 3] = ["order.placed", "order.paid", "order.sent"];
const CREATED: &str = "ObjectCreated:Put";
const BUCKET: &str = "invoices";

/// How an event comes.
type Form = fn(&str, usize) -> String;

/// The ways of a business event: as it is (a raw topic sends just this), in a topic's envelope, in a bus's, in both.
const EVENT_FORMS: [Form; 4] = [plain, in_sns, in_eventbridge, in_both];
/// The ways of what a bucket says.
const OBJECT_FORMS: [Form; 2] = [plain, in_sns];

/// The variable that names where a function keeps them.
const KEPT_IN: &str = "AUDIT_TABLE";

/// The sample for `audit`.
pub(super) struct Audit;

impl Sample for Audit {
    fn function(&self) -> &'static str {
        "audit"
    }

    fn effects(&self) -> &'static str {
        "rows"
    }

    fn kept_in(&self) -> &'static [&'static str] {
        &[KEPT_IN]
    }

    fn all_well(&self, _: &FunctionSpec) -> &'static str {
        "Every event got exactly one row, whichever ways it came."
    }

    fn plan(&self, request: Request, _: &FunctionSpec) -> Plan {
        let mut plan = request.plan(event, &[empty_envelope, no_id]);
        wrap(&mut plan);
        plan
    }

    /// Every row, by the type it has.
    fn look<'a>(&'a self, services: &'a Services, function: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move {
            let rows = services.dynamodb.items(variable_of(function, KEPT_IN)?)?;
            let row = |row: &crate::dynamodb::Item| {
                let (key, what) = (row.text("event_id")?.to_owned(), row.text("type")?.to_owned());
                Some(Effect { key, what })
            };
            let effects: Vec<_> = rows.iter().filter_map(row).collect();
            let tries = effects.len() as u64;
            Ok(Seen { effects, tries, ..Seen::default() })
        })
    }
}

fn event(i: u32, number: u64, random: &mut Random) -> (Piece, Repeat) {
    let (key, body, effect) = if i % EVENTS_PER_OBJECT == 3 {
        let (object, version) = (format!("2026/invoice {number}.pdf"), format!("v-{number}"));
        (format!("{CREATED} {BUCKET}/{object}@{version}"), notification(&object, &version), CREATED)
    } else {
        let refused = i % EVENTS_PER_REFUSED == 9;
        let (key, kind) = (format!("evt-{number}"), if refused { "" } else { TYPES[i as usize % TYPES.len()] });
        let body = json!({ "event_id": key, "type": kind, "amount_cents": 100 * (1 + random.below(90)) });
        (key, body, kind)
    };
    let fate = if effect.is_empty() { Fate::Refused } else { Fate::Done };
    let piece = Piece { group: key.clone(), key, body: body.to_string(), effect: effect.to_owned(), fate, copies: 1 };
    (piece, Repeat::Usual)
}

/// Puts each copy of an event into another form than the one before it. What is refused stays as it is, to be known again among the
/// dead letters.
fn wrap(plan: &mut Plan) {
    let good = plan.pieces.iter().filter(|piece| piece.fate == Fate::Done);
    let first = good.enumerate().map(|(place, piece)| {
        let forms = if piece.effect == CREATED { &OBJECT_FORMS[..] } else { &EVENT_FORMS[..] };
        (piece.body.as_str(), (place, forms))
    });
    let mut next: BTreeMap<_, _> = first.collect();
    for (place, message) in plan.messages.iter_mut().enumerate() {
        if let Some((form, forms)) = next.get_mut(message.body.as_str()) {
            message.body = forms[*form % forms.len()](&message.body, place);
            *form += 1;
        }
    }
}

fn plain(event: &str, _: usize) -> String {
    event.to_owned()
}

/// A notification of a topic. Each publication has an id and a time of its own.
fn in_sns(event: &str, place: usize) -> String {
    json!({
        "Type": "Notification",
        "MessageId": format!("00000000-0000-5000-8000-{place:012}"),
        "TopicArn": "arn:aws:sns:us-east-1:000000000000:events",
        "Message": event,
        "Timestamp": format!("2026-11-22T10:{:02}:{:02}.000Z", place / 60 % 60, place % 60),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": "https://sns.us-east-1.amazonaws.com/EXAMPLE.pem",
        "UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe",
    })
    .to_string()
}

/// An event of a bus.
fn in_eventbridge(event: &str, place: usize) -> String {
    let detail: Value = serde_json::from_str(event).unwrap_or_default();
    json!({
        "version": "0",
        "id": format!("00000000-0000-4000-8000-{place:012}"),
        "detail-type": detail["type"],
        "source": "shop.orders",
        "account": "000000000000",
        "time": format!("2026-11-22T10:{:02}:{:02}Z", place / 60 % 60, place % 60),
        "region": "us-east-1",
        "resources": [],
        "detail": detail,
    })
    .to_string()
}

/// An event of a bus whose target is a topic.
fn in_both(event: &str, place: usize) -> String {
    in_sns(&in_eventbridge(event, place), place)
}

/// What a bucket says of a new object. Keys are encoded as in forms.
fn notification(object: &str, version: &str) -> Value {
    let key = object.replace('/', "%2F").replace(' ', "+");
    json!({ "Records": [{
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": "2026-11-22T10:00:00.000Z",
        "eventName": CREATED,
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": { "name": BUCKET, "arn": format!("arn:aws:s3:::{BUCKET}") },
            "object": { "key": key, "size": 1024, "eTag": "d41d8cd98f00b204e9800998ecf8427e", "versionId": version, "sequencer": "0055AED6DCD90281E5" },
        },
    }] })
}

/// A topic's envelope with nothing in it.
fn empty_envelope(number: u64) -> String {
    json!({ "Type": "Notification", "MessageId": number.to_string(), "TopicArn": "arn:aws:sns:us-east-1:000000000000:events" })
        .to_string()
}

fn no_id(number: u64) -> String {
    in_eventbridge(&json!({ "type": TYPES[0], "number": number }).to_string(), 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn copies_come_different_ways() {
        let mut plan = Request::after(std::iter::empty(), 60, 7).plan(event, &[empty_envelope, no_id]);
        let plain: Vec<_> = plan.messages.iter().map(|message| message.body.clone()).collect();
        wrap(&mut plan);
        let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (before, after) in plain.iter().zip(&plan.messages) {
            ways.entry(before).or_default().push(&after.body);
        }
        for piece in plan.pieces.iter().filter(|piece| piece.fate == Fate::Done) {
            let ways = &ways[piece.body.as_str()];
            let form = |body: &&str| (body.contains("Notification"), body.contains("detail"));
            let forms: BTreeSet<_> = ways.iter().map(form).collect();
            let forms_max = if piece.effect == CREATED { OBJECT_FORMS.len() } else { EVENT_FORMS.len() };
            assert_eq!((ways.len(), forms.len()), (piece.copies as usize, ways.len().min(forms_max)), "{}", piece.key);
        }
        let count = |word: &str| plan.messages.iter().filter(|message| message.body.contains(word)).count();
        assert!(count("detail-type") > 20 && count("Notification") > 20 && count("aws:s3") > 10);
    }
}
