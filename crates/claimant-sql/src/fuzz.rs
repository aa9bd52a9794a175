//! Properties of a record's numbers as columns; rows themselves come from a server only, and are the contract's.

use claimant_core::limits::TIME_MAX_MS;
use claimant_core::{StoreErrorKind, Timestamp};
use claimant_testkit::fuzz::hold;
use proptest::prelude::*;

use crate::record::{bigint, time, unsigned};

/// What fits is read back; what does not is the largest that does; what claimant never writes is an error that names its column.
#[test]
fn numbers() {
    let written = prop_oneof![any::<u64>(), 0..=TIME_MAX_MS, Just(i64::MAX as u64), Just(u64::MAX)];
    hold("numbers as columns", file!(), (written, any::<i64>()), |(written, stored)| {
        let largest = i64::MAX.unsigned_abs();
        assert_eq!(unsigned(bigint(written), "fence").ok(), Some(written.min(largest)));
        assert_eq!(time(Timestamp::from_millis(written)), bigint(written));
        match unsigned(stored, "fence") {
            Ok(number) => assert_eq!(bigint(number), stored),
            Err(error) => {
                assert!(stored < 0 && error.kind == StoreErrorKind::Corrupt);
                assert!(error.text.contains("column fence") && !error.text.contains('-'), "{}", error.text);
            }
        }
    });
}
