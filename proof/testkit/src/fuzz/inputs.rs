//! Texts that are nearly right, and JSON values.

use std::fmt;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

/// At how many places an input is spoilt at most.
const FAULTS_MAX: usize = 6;

/// How often a piece is repeated at most: often enough to nest deeper than any decoder goes.
const REPEATS_MAX: usize = 300;

/// Pieces that have upset decoders before.
const PIECES: [&str; 32] = [
    "null",
    "true",
    "0",
    "-0",
    "-1",
    "1e400",
    "0.1",
    "18446744073709551616",
    "\"\"",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    ",",
    ":",
    "\u{feff}",
    "\0",
    " ",
    "\n",
    "é",
    "🦀",
    "{\"a\":",
    "\"messageId\":",
    "\"order_id\":",
    "\"Records\":",
    "secret@example.com",
];

/// Bytes that print as text where a test fails.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// One way in which an input is spoilt. Places are parts of its length, whatever that is by then.
#[derive(Debug, Clone)]
enum Fault {
    Flip(Index, u8),
    Insert(Index, &'static str),
    InsertAny(Index, Vec<u8>),
    Remove(Index, Index),
    Repeat(Index, Index, usize),
    /// The piece is put in the place of a JSON value's worth of text.
    Replace(Index, &'static str),
    /// What follows is taken from another input.
    Splice(Index, Index, Vec<u8>),
}

/// The files of this directory below `tests`, each one an input.
///
/// # Panics
/// When there are none: a target without a corpus would go unnoticed.
#[must_use]
pub fn corpus(directory: &str) -> Vec<Vec<u8>> {
    // Cargo runs the tests of a crate in its directory.
    let path = Path::new("../../tests").join(directory);
    let files = std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("a listed file").path()).collect();
    // The order of a directory differs between machines; with it, a kept seed would give another input on another machine.
    paths.sort();
    assert!(!paths.is_empty(), "{} has no files", path.display());
    paths.iter().map(|path| std::fs::read(path).expect("a file of the corpus is readable")).collect()
}

/// Inputs of the corpus as they are and spoilt in a few places, and some that are nothing but chance.
pub fn spoilt(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Bytes> {
    let fault = prop_oneof![
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Fault::Flip(at, bit)),
        (any::<Index>(), select(PIECES.as_slice())).prop_map(|(at, piece)| Fault::Insert(at, piece)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..8)).prop_map(|(at, any)| Fault::InsertAny(at, any)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, length)| Fault::Remove(at, length)),
        (any::<Index>(), any::<Index>(), 1..REPEATS_MAX).prop_map(|(at, length, n)| Fault::Repeat(at, length, n)),
        (any::<Index>(), select(PIECES.as_slice())).prop_map(|(at, piece)| Fault::Replace(at, piece)),
        (any::<Index>(), any::<Index>(), select(corpus.clone())).prop_map(|(at, from, o)| Fault::Splice(at, from, o)),
    ];
    let near = (select(corpus), prop::collection::vec(fault, 0..=FAULTS_MAX));
    prop_oneof![
        9 => near.prop_map(|(bytes, faults)| Bytes(faults.iter().fold(bytes, |bytes, fault| fault.in_bytes(bytes)))),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes),
    ]
}

impl Fault {
    fn in_bytes(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let place = |index: &Index, length: usize| index.index(length + 1);
        match self {
            Self::Flip(at, bit) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Flip(..) => {}
            Self::Insert(at, piece) => {
                let at = place(at, bytes.len());
                bytes.splice(at..at, piece.bytes());
            }
            Self::InsertAny(at, any) => {
                let at = place(at, bytes.len());
                bytes.splice(at..at, any.iter().copied());
            }
            Self::Remove(at, length) => {
                let at = place(at, bytes.len());
                // Mostly little, so that something is left.
                let length = place(length, (bytes.len() - at).min(64));
                bytes.drain(at..at + length);
            }
            Self::Repeat(at, length, times) => {
                let at = place(at, bytes.len());
                let piece = bytes[at..at + place(length, (bytes.len() - at).min(16))].repeat(*times);
                bytes.splice(at..at, piece);
            }
            Self::Replace(at, piece) => {
                let at = place(at, bytes.len());
                let ends = |b: &u8| matches!(b, b',' | b'}' | b']');
                let from = bytes[..at].iter().rposition(|b| *b == b':').map_or(at, |colon| colon + 1);
                let to = bytes[from..].iter().position(ends).map_or(bytes.len(), |length| from + length);
                bytes.splice(from..to, piece.bytes());
            }
            Self::Splice(at, from, other) => {
                bytes.truncate(place(at, bytes.len()));
                bytes.extend_from_slice(&other[place(from, other.len())..]);
            }
        }
        bytes
    }
}

/// JSON values, small ones, so that two of them are at times the same; no number is a negative zero, which is equal to zero.
pub fn json() -> impl Strategy<Value = Value> {
    let name = || prop_oneof!["[ab]{0,2}", "\\PC{0,4}"];
    let number = prop_oneof![
        (-2..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-999..1_000_i32).prop_map(|n| Value::from(if n == 0 { 0.0 } else { f64::from(n) / 8.0 })),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        name().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
