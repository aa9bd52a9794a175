//! Keys that look alike are different records.

use claimant_core::key::KEY_MAX_BYTES;
use claimant_core::{Key, RecordId};

use super::examiner::{Examiner, Finding, ensure};
use super::scene::{answers, consumer, granted, record, request, settle, token};
use crate::script::{done, failed};

/// A longer key is shown by its end.
const SHOWN_MAX_BYTES: usize = 40;

pub(super) async fn check(examiner: &mut Examiner) {
    let finding = ensure(Key::new("").is_err(), || "it is a key".into());
    examiner.hold(10, "an empty key is refused before it gets to a store", finding);
    for (name, alike) in families() {
        for batched in [false, true] {
            let company = if batched { ", batched" } else { "" };
            let finding = told_apart(examiner, &alike, batched).await;
            examiner.hold(10, format!("keys are told apart by {name}{company}"), finding);
        }
    }
}

/// Keys that some store, collation, encoding or protocol would take for one another.
fn families() -> Vec<(&'static str, Vec<String>)> {
    let strings = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    // Just below the length up to which a record id shows its key, where a prefix index or a short column cuts it.
    let long = |length: usize| {
        let body = "k".repeat(length);
        vec![body.clone(), format!("{body}k"), format!("{body}K"), format!("{body}kl")]
    };
    let longest = KEY_MAX_BYTES - 64;
    vec![
        ("case", strings(&["key", "KEY", "Key", "ſ", "s", "S", "k", "\u{212a}", "ı", "i", "I", "İ"])),
        ("accents", strings(&["e", "é", "e\u{301}", "è", "ê", "É", "o", "ö", "ø", "oe", "œ"])),
        ("ligatures and expansions", strings(&["ß", "ss", "SS", "ẞ", "ﬁ", "fi", "æ", "ae", "ij", "ĳ"])),
        ("width and kana", strings(&["A", "Ａ", "1", "１", "¹", "は", "ハ", "ﾊ", "ば", "ぱ"])),
        ("spaces", strings(&["a", "a ", " a", "a  ", "a\t", "a\n", "a\r\n", "a\u{a0}", "a\u{3000}", " ", "  "])),
        (
            "characters that are ignored",
            strings(&["ab", "a\u{200d}b", "a\u{ad}b", "a\u{feff}b", "a-b", "a\u{2010}b", "a'b"]),
        ),
        (
            "NUL and control characters",
            strings(&["x", "x\0", "\0x", "\0", "x\0y", "x\u{1}", "x\u{7f}", "x\u{1a}", "x\\0"]),
        ),
        (
            "code points beyond 16 bits",
            strings(&["🦀", "🦞", "😀", "?", "\u{fffd}", "\u{10ffff}", "\u{1f1e9}\u{1f1ea}"]),
        ),
        (
            "separators",
            strings(&["a#b", "a~b", "a:b", "a/b", "a|b", "a.b", "{a}b", "a{b}", "{}", "a", "a#", "#a", "##"]),
        ),
        (
            "quotes and wildcards",
            strings(&["%", "_", "*", "?", "[a]", "'", "''", "\"", "\\", "\\\\", "$1", "`", "; --", "{\"S\":\"a\"}"]),
        ),
        ("numbers", strings(&["1", "01", "1.0", "+1", "1e0", "0x1", " 1", "true", "null", "-0", "0"])),
        ("their end after 60 bytes", long(60)),
        ("their end after 180 bytes", long(180)),
        ("their end after 250 bytes", long(250)),
        ("their end after 340 bytes", long(340)),
        ("their end after 2,000 bytes", long(longest)),
    ]
}

/// Each key is claimed as a fresh one, each record shows its own claim, and what ends one of them ends no other.
async fn told_apart(examiner: &Examiner, alike: &[String], batched: bool) -> Finding {
    let store = examiner.store.as_ref();
    let token = token();
    let key = |text: &String| Key::new(format!("{}{text}", token.as_str())).expect("within the bounds");
    let requests: Vec<_> = alike.iter().map(|text| request(&RecordId::new(&consumer(), &key(text)), 0)).collect();
    if batched {
        // That one was granted is seen from its record.
        answers(store, &requests).await?;
    }
    let mut claims = Vec::new();
    for (n, request) in requests.iter().enumerate() {
        let claim = granted(store, request).await.map_err(|e| format!("key {n} of {}: {e}", shown(alike)))?;
        ensure(claim.fence.get() == 1, || format!("key {n} of {} has fence {}", shown(alike), claim.fence))?;
        claims.push(claim);
    }
    for (n, claim) in claims.iter().enumerate() {
        let ending = if n % 2 == 0 { done() } else { failed() };
        let record = record(store, &claim.id).await?;
        ensure(record.owner == claim.owner, || format!("key {n} of {} shows another claim", shown(alike)))?;
        settle(store, claim, ending.clone(), 5).await.map_err(|e| format!("key {n} of {}: {e}", shown(alike)))?;
    }
    for (n, claim) in claims.iter().enumerate() {
        let record = record(store, &claim.id).await?;
        let ending = if n % 2 == 0 { done() } else { failed() };
        ensure(record.owner == claim.owner && record.status == ending.status(), || {
            format!("key {n} of {} has another one's ending: {record:?}", shown(alike))
        })?;
    }
    Ok(())
}

/// The keys, of long ones the ends, in which they differ.
fn shown(alike: &[String]) -> String {
    let shown = alike.iter().map(|key| match key.len() {
        0..=SHOWN_MAX_BYTES => format!("{key:?}"),
        length => format!("\"…{}\" ({length} bytes)", &key[length - 4..]),
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}
