//! Variables with which a function does not start, or works on no message.

use crate::environment::MARGIN;
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, Report, found, together};
use crate::model::{Function, System};

pub(super) fn check(system: &System, report: &mut Report) {
    for function in system.functions.iter().filter(|function| function.is_consumer() != Fact::Known(false)) {
        let (wrong, rest): (Vec<_>, Vec<_>) =
            starts(function).into_iter().chain([margin(function)]).partition(|answer| matches!(answer, Some(Some(_))));
        // Each that is wrong is a finding of its own.
        let answers = if wrong.is_empty() { vec![together(rest)] } else { wrong };
        for answer in answers {
            report.answer(37, &function.place, answer);
        }
    }
}

fn starts(function: &Function) -> Vec<Answer> {
    let Some(faults) = function.environment.faults.known() else { return vec![None] };
    let what = |fault: &String| format!("{} does not start: {fault}", function.place.id);
    let fix = "change or remove it under Environment: Variables";
    faults.iter().map(|fault| found(Level::Error, what(fault), fix)).collect()
}

/// Whether the function has time before it is to return.
fn margin(function: &Function) -> Answer {
    let Some(margin) = function.environment.get(MARGIN) else { return FINE };
    let (margin, timeout_s) = (margin.known()?.text(), function.timeout_s.known()?);
    // What is no number is a fault of its own.
    let Ok(margin_ms) = margin.parse::<u64>() else { return FINE };
    if margin_ms < timeout_s.saturating_mul(1_000) {
        return FINE;
    }
    let id = &function.place.id;
    let what = format!(
        "{id} may run for {timeout_s} s, and has to return {margin_ms} ms before that is over: it works on no message"
    );
    found(Level::Error, what, format!("{MARGIN} far below the timeout of {timeout_s} s"))
}
