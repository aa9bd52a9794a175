//! A JSON text has the fingerprint of its value, however it is written; and none where it is no JSON.

use claimant_testkit::fuzz::{hold, json};
use proptest::prelude::*;
use serde_json::Value;

use crate::Fingerprint;
use crate::decode::of_content;

/// Returns the fingerprint of a text by the tree of its value.
fn by_tree(text: &str) -> Option<Fingerprint> {
    serde_json::from_str::<Value>(text).ok().map(|value| Fingerprint::of_json(&value))
}

/// JSON texts, written in any way; some with half a character, which is none.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ab]",
        "\\PC",
        Just("\\u0061".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\n".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\\ud800".to_owned()),
        Just("ß".to_owned()),
        Just("[{".to_owned()),
        Just("]},:".to_owned()),
    ];
    let string = prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat())).boxed();
    let number = prop_oneof!["-?(0|[1-9][0-9]{0,2})", "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",];
    let literal = prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(str::to_owned);
    let leaf = prop_oneof![literal, number, string.clone()];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let space = "[ \t\r\n]{0,2}";
        let item = (space, inner, space).prop_map(|(before, value, behind)| format!("{before}{value}{behind}"));
        let item = item.boxed();
        let field = (space, string.clone(), space, item.clone());
        let field = field.prop_map(|(before, name, behind, value)| format!("{before}{name}{behind}:{value}"));
        prop_oneof![
            (space, prop::collection::vec(item, 1..6))
                .prop_map(|(space, items)| format!("{space}[{}]", items.join(","))),
            (space, prop::collection::vec(field, 1..6))
                .prop_map(|(space, fields)| format!("{space}{{{}}}", fields.join(","))),
            space.prop_map(|space| format!("[{space}]")),
            space.prop_map(|space| format!("{{{space}}}")),
        ]
    })
}

#[test]
fn fingerprints_of_any_texts() {
    // What is spoilt is most often no JSON, or another one.
    let fault = (any::<prop::sample::Index>(), 0..3_u8, "[\\[\\]{}:,\"\\\\0-9eE.+ntfu -]");
    let inputs = (texts(), prop::collection::vec(fault, 0..3));
    hold("fingerprints of any texts", file!(), inputs, |(text, faults)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, kind, piece) in faults {
            let at = at.index(chars.len() + 1);
            match kind {
                0 => chars.splice(at..at, piece.chars()),
                1 => chars.splice(at..chars.len().min(at + 1), piece.chars()),
                _ => chars.splice(at..chars.len().min(at + 1), "".chars()),
            };
        }
        let text: String = chars.into_iter().collect();
        assert_eq!(Fingerprint::of_json_text(&text), by_tree(&text), "{text}");
    });
}

/// Nested as deep as a text may be, and wide.
#[test]
fn fingerprints_of_large_texts() {
    let nested = |depth: usize| {
        ["[|]", "{\"a\":|}"].map(|of| {
            let (open, close) = of.split_once('|').expect("it is there");
            format!("{}0{}", open.repeat(depth), close.repeat(depth))
        })
    };
    let names = |name: fn(u32) -> String| {
        let fields: Vec<_> =
            (0..1_000_u32).map(|n| format!("\"{}\":[{n}]", name(n.wrapping_mul(2_654_435_761) % 700))).collect();
        format!("{{{}}}", fields.join(","))
    };
    let wide = [names(|n| n.to_string()), names(|n| format!("\\n{n}")), format!("[{}0]", "[],".repeat(1_000))];
    for text in nested(127).into_iter().chain(nested(128)).chain(wide) {
        assert_eq!(Fingerprint::of_json_text(&text), by_tree(&text));
    }
}

#[test]
fn fingerprints_of_texts() {
    let choices = || prop::collection::vec(any::<u8>(), 1..16);
    hold("fingerprints of JSON texts", file!(), (json(), choices(), choices()), |(value, first, second)| {
        let written = [first, second].map(|choices| {
            let mut text = String::new();
            write(&value, &mut choices.iter().copied().cycle(), &mut text);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            assert_eq!(Fingerprint::of_json_text(&text), Some(Fingerprint::of_json(&value)));
            text
        });
        assert_eq!(of_content(written[0].as_bytes()), of_content(written[1].as_bytes()));
    });
}

/// The value as text, with white space and the order of fields as chosen.
fn write(value: &Value, choices: &mut impl Iterator<Item = u8>, text: &mut String) {
    let mut choose = |bound: usize| usize::from(choices.next().expect("it never ends")) % bound;
    let spaces: [&str; 4] = std::array::from_fn(|_| ["", " ", "\n", "\t\r "][choose(4)]);
    let turn = choose(5);
    text.push_str(spaces[0]);
    match value {
        Value::Array(items) => {
            text.push('[');
            for (n, item) in items.iter().enumerate() {
                text.push_str(if n == 0 { "" } else { "," });
                write(item, choices, text);
            }
            text.push_str(&format!("{}]", spaces[1]));
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            let turn = turn.min(fields.len());
            fields.rotate_left(turn);
            text.push_str(&format!("{{{}", spaces[1]));
            for (n, (name, value)) in fields.into_iter().enumerate() {
                text.push_str(if n == 0 { "" } else { "," });
                text.push_str(&format!("{}{}{}:", spaces[2], Value::from(name.as_str()), spaces[3]));
                write(value, choices, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
    text.push_str(spaces[3]);
}
