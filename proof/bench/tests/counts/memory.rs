//! What memory a content takes beside its own, by count.

use std::hint::black_box;

use claimant_core::Decoder;
use claimant_core::decode::Json;
use serde::de::IgnoredAny;

const CONTENT_BYTES: usize = 1 << 20;

/// Parts of contents of which a tree takes up to 44 times as much.
const PARTS: [&str; 9] =
    ["[0],", "[],", "{},", "0,", "\"\":0,", "\"\":{},", "\"\\n\":[],", "{\"a\":0},", "[13.37,52.51],"];

#[test]
fn a_fingerprint_takes_at_most_four_times_the_content() {
    for part in PARTS {
        let all = part.repeat(CONTENT_BYTES / part.len());
        let all = all.trim_end_matches(',');
        let content =
            if part.contains("\":") && part.starts_with('"') { format!("{{{all}}}") } else { format!("[{all}]") };
        let fingerprint = || {
            black_box(Decoder::<IgnoredAny>::fingerprint(&Json, content.as_bytes()));
        };
        let times = allocation_counter::measure(fingerprint).bytes_max as f64 / content.len() as f64;
        println!("the fingerprint of {part}: {times:.2} times the content");
        assert!(times <= 4.01, "{times:.2} times the content of many {part}");
    }
}
