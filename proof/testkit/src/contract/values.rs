//! Records read back exactly.

use std::time::Duration;

use claimant_core::fingerprint::FINGERPRINT_MAX_BYTES;
use claimant_core::key::MESSAGE_ID_MAX_BYTES;
use claimant_core::limits::{LEASE_MAX_MS, SKEW_MAX_MS, TIME_MAX_MS, WINDOW_MAX_S};
use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Refusal, Settlement};
use claimant_core::record::{ERROR_MAX_BYTES, RESULT_MAX_BYTES};
use claimant_core::{ClaimAnswer, Fingerprint, MemoryStore, MessageId, Store, Timestamp};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answer, fresh_id, granted, look, request, settle, settlement};
use crate::script::{beside, copy, no_answer};

/// As much as the longest consumer allows: all times that come of it stay below the bound.
const REACH_MS: u64 = WINDOW_MAX_S * 1_000 + LEASE_MAX_MS + SKEW_MAX_MS + 1_000;

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for (name, result) in results() {
        let ending = Ending::Completed { result: Some(result.clone()) };
        examiner.hold(1, format!("a result of {name}"), ended(store.as_ref(), ending, Some(&result)).await);
    }
    for (name, error) in errors() {
        let ending = Ending::Failed { error: error.clone() };
        examiner.hold(1, format!("an error of {name}"), ended(store.as_ref(), ending, None).await);
        let ending = Ending::Rejected { error };
        examiner.hold(1, format!("a rejection of {name}"), ended(store.as_ref(), ending, None).await);
    }
    for (name, message_id) in message_ids() {
        let request = ClaimRequest {
            message_id: MessageId::new(message_id).expect("within the bounds"),
            ..request(&fresh_id("message id"), 0)
        };
        examiner.hold(1, format!("a message id of {name}"), claimed(store.as_ref(), &request).await);
    }
    for byte in [0, 1, b'\'', b'\\', 0x7f, 0x80, 0xff] {
        for length in [32, FINGERPRINT_MAX_BYTES] {
            let fingerprint = Fingerprint::from_stored(&vec![byte; length]).expect("both lengths are stored");
            let request = ClaimRequest { fingerprint, ..request(&fresh_id("fingerprint"), 0) };
            let name = format!("a fingerprint of {length} bytes {byte}");
            examiner.hold(1, name, claimed(store.as_ref(), &request).await);
        }
    }
    for (name, now, lease_ms, policy) in times() {
        let request = ClaimRequest {
            now,
            lease_until: now.plus(Duration::from_millis(lease_ms)),
            policy,
            ..request(&fresh_id("time"), 0)
        };
        examiner.hold(1, format!("times {name}"), claimed(store.as_ref(), &request).await);
    }
}

/// JSON, as long as may be; what a database's own JSON type, a short column or another encoding would change.
fn results() -> Vec<(&'static str, String)> {
    let full = |piece: &str| {
        let body = piece.repeat((RESULT_MAX_BYTES - 2) / piece.len());
        let rest = RESULT_MAX_BYTES - 2 - body.len();
        format!("\"{body}{}\"", "x".repeat(rest))
    };
    vec![
        ("null", "null".into()),
        ("an empty string", "\"\"".into()),
        ("an object with its white space and order", "{ \"b\" : 1.0,\n\t\"a\": 1e2, \"a\": [ ] }".into()),
        ("a large number", "123456789012345678901234567890.10".into()),
        ("escapes", "\"\\u0000 \\ud83e\\udd80 \\/ \\\" \\\\ %s $1 {} ' `\"".into()),
        ("other scripts", "\"ß ẞ é e\u{301} 日本 \u{202e}عربى 🦀\u{200d}🦞 \u{2028}\u{feff}\u{10ffff}\"".into()),
        ("as many bytes as may be", full("x")),
        ("as many bytes as may be, in characters of two", full("é")),
        ("as many bytes as may be, in characters of four", full("🦀")),
        ("as many bytes as may be, in escapes", full("\\\"")),
    ]
}

fn errors() -> Vec<(&'static str, String)> {
    vec![
        ("no text", String::new()),
        ("white space", " \t\r\n ".into()),
        ("odd characters", "\0 \u{1} \u{7f} '; -- \" \\ %s {} é e\u{301} 🦀 \u{fffd}\u{10ffff}".into()),
        ("as many bytes as may be", "x".repeat(ERROR_MAX_BYTES)),
        ("as many bytes as may be, in characters of four", "🦀".repeat(ERROR_MAX_BYTES / 4)),
        ("more bytes than may be, which is cut at a character", format!("x{}", "é".repeat(ERROR_MAX_BYTES))),
    ]
}

fn message_ids() -> Vec<(&'static str, String)> {
    vec![
        ("one character", "m".into()),
        ("spaces", "  m  ".into()),
        ("both cases", "aAbBßẞ".into()),
        ("odd characters", "\0 ' \" \\ % é e\u{301} 🦀 \u{10ffff}".into()),
        ("digits", "007".into()),
        ("as many bytes as may be", "x".repeat(MESSAGE_ID_MAX_BYTES)),
        ("as many bytes as may be, in characters of four", "🦀".repeat(MESSAGE_ID_MAX_BYTES / 4)),
    ]
}

fn times() -> Vec<(&'static str, Timestamp, u64, ClaimPolicy)> {
    let policy = |window_s, skew_ms| ClaimPolicy {
        window: Duration::from_secs(window_s),
        skew: Duration::from_millis(skew_ms),
        ..ClaimPolicy::default()
    };
    let at = Timestamp::from_millis;
    vec![
        ("at zero", at(0), 1, policy(60, 0)),
        ("within the first second", at(1), 998, policy(60, 1)),
        ("of one odd millisecond", at(4_102_444_800_001), 999, policy(61, 333)),
        ("beyond 32 bits of seconds", at((u64::from(u32::MAX) + 7) * 1_000 + 7), 1_001, policy(60, 7)),
        (
            "with the longest window, lease and margin",
            at(4_102_444_799_999),
            LEASE_MAX_MS,
            policy(WINDOW_MAX_S, SKEW_MAX_MS),
        ),
        ("up to the last that is kept", at(TIME_MAX_MS - REACH_MS), LEASE_MAX_MS, policy(WINDOW_MAX_S, SKEW_MAX_MS)),
        ("at the last that is kept", at(TIME_MAX_MS - 120_999), 60_000, policy(60, 0)),
    ]
}

/// Claims, fails and claims again on the store and on the reference: the records are the same, field by field.
async fn claimed(store: &dyn Store, request: &ClaimRequest) -> Finding {
    let reference = MemoryStore::new();
    let claims = [granted(store, request).await?, granted(&reference, request).await?];
    same_record(store, &reference, request).await?;
    for (store, claim) in [store, &reference as &dyn Store].into_iter().zip(&claims) {
        let ending = Ending::Failed { error: "no luck".into() };
        let settlement = Settlement { ending, now: request.now, policy: request.policy };
        let meter = claimant_core::Meter::default();
        let settled = store.settle(copy(claim), &settlement, super::scene::call(&meter)).await;
        ensure(matches!(settled, claimant_core::Settled::Done), || format!("its failure is {settled:?}"))?;
    }
    same_record(store, &reference, request).await?;
    // A second claim with the same token would be its own: another owner.
    let next = ClaimRequest { owner: super::scene::token(), ..request.clone() };
    let seen = format!("{:?}", answer(store, &next).await?);
    let wanted = format!("{:?}", answer(&reference, &next).await?);
    ensure(seen == wanted, || format!("claimed again: {seen}, not {wanted}"))?;
    same_record(store, &reference, request).await
}

async fn same_record(store: &dyn Store, reference: &dyn Store, request: &ClaimRequest) -> Finding {
    let (seen, wanted) = (look(store, &request.id).await?, look(reference, &request.id).await?);
    ensure(seen == wanted, || format!("the record is {seen:?}, not {wanted:?}"))
}

/// Ends a claim on the store and on the reference: the records are the same, and a duplicate is shown the result.
async fn ended(store: &dyn Store, ending: Ending, result: Option<&str>) -> Finding {
    let reference = MemoryStore::new();
    let first = request(&fresh_id("ending"), 0);
    for store in [store, &reference as &dyn Store] {
        let claim = granted(store, &first).await?;
        settle(store, &claim, ending.clone(), 5).await?;
    }
    let (seen, wanted) = (look(store, &first.id).await?, look(&reference, &first.id).await?);
    ensure(seen == wanted, || "the record read back is not the one that was written".into())?;
    if let Some(result) = result {
        let shown = answer(store, &request(&first.id, 6)).await?;
        let so = matches!(&shown, ClaimAnswer::Refused(Refusal::Completed { result: Some(r) }) if r == result);
        ensure(so, || "a duplicate is not shown the result that was written".into())?;
    }
    // The same in one request, after another ending of its kind: the path for many writes by other means.
    let (other, second) = (request(&fresh_id("ending"), 0), request(&fresh_id("ending"), 0));
    let endings = [(granted(store, &other).await?, beside(&ending)), (granted(store, &second).await?, ending)];
    let all = endings.into_iter().map(|(claim, ending)| (claim, settlement(ending, 5))).collect();
    let meter = claimant_core::Meter::default();
    for settled in store.settle_all(all, super::scene::call(&meter)).await {
        if let claimant_core::Settled::Unknown { error, .. } = &settled {
            return Err(no_answer(error));
        }
    }
    let seen = look(store, &second.id).await?.map(|record| (record.status, record.result, record.error));
    let wanted = wanted.map(|record| (record.status, record.result, record.error));
    ensure(seen == wanted, || "in one request, the record read back is not the one that was written".into())
}
