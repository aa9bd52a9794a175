//! Faults on purpose: what commands ask for and show is what the local cloud knows.

use claimant_local::faults as local;
use claimant_operate::faults::{Fault, FaultSpec};
use serde_json::{from_value, to_value};

/// Each with all of its fields: what only one side has is in one of these documents alone.
#[test]
fn a_fault_has_the_same_fields_on_both_sides() {
    let theirs = local::FaultSpec {
        act: local::Act::Freeze,
        of: Some(local::Target::Table),
        function: Some("orders".to_owned()),
        process: Some(7),
        when: Some(local::When::Batch),
        frozen_s: Some(5),
        times: Some(2),
        seconds: Some(60),
    };
    let ours = FaultSpec {
        act: "freeze".to_owned(),
        of: Some("table".to_owned()),
        function: Some("orders".to_owned()),
        process: Some(7),
        when: Some("batch".to_owned()),
        frozen_s: Some(5),
        times: Some(2),
        seconds: Some(60),
    };
    assert_eq!(to_value(&ours).unwrap(), to_value(&theirs).unwrap());

    let does = "freezes it".to_owned();
    let theirs = local::Fault {
        id: 3,
        spec: theirs,
        does: does.clone(),
        began_ms: 1,
        until_ms: Some(61_001),
        acted: 1,
        ended_ms: Some(9),
    };
    let ours = Fault { id: 3, spec: ours, does, began_ms: 1, until_ms: Some(61_001), acted: 1, ended_ms: Some(9) };
    let document = to_value(&theirs).unwrap();
    assert_eq!(to_value(&ours).unwrap(), document);
    assert_eq!(from_value::<Fault>(document).unwrap(), ours);
}
