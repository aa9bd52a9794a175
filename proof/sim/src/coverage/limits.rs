//! What occurs to limits.

use super::{Coverage, Occurrence};
use crate::calls::LIMIT;
use crate::history::Event;
use crate::timeline::Timeline;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for (_, event) in &timeline.history.events {
        match event {
            Event::Refused { request, call, seen: Some(_) } => {
                let id =
                    timeline.requests.get(request).and_then(|request| request.calls.get(*call)).map(|call| &call.id);
                coverage.add(Occurrence::SlotRefused, usize::from(id.is_some_and(|id| id.starts_with(LIMIT))));
            }
            Event::Changed { id, before: Some(before), after: Some(after), .. } if id.starts_with(LIMIT) => {
                coverage.add(Occurrence::SlotTakenOver, usize::from(before.fence < after.fence));
            }
            _ => {}
        }
    }
}
