//! Variables that a function does not start with.

use crate::fact::Fact;
use crate::finding::{FINE, Level, Report, found};
use crate::model::System;

pub(super) fn check(system: &System, report: &mut Report) {
    for function in system.functions.iter().filter(|function| function.is_consumer() != Fact::Known(false)) {
        let Some(faults) = function.environment.faults.known() else {
            report.answer(37, &function.place, None);
            continue;
        };
        if faults.is_empty() {
            report.answer(37, &function.place, FINE);
        }
        for fault in faults {
            let what = format!("{} does not start: {fault}", function.place.id);
            report.answer(
                37,
                &function.place,
                found(Level::Error, what, "change or remove it under Environment: Variables"),
            );
        }
    }
}
