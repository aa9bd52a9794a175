//! What a check of one mapping looks at.

use crate::model::{Function, Mapping, Place, Queue, System};

/// A mapping with what it joins.
pub(crate) struct Pair<'a> {
    pub(crate) system: &'a System,
    pub(crate) mapping: &'a Mapping,
    /// If it is described here.
    pub(crate) queue: Option<&'a Queue>,
    /// If it is described here.
    pub(crate) function: Option<&'a Function>,
}

impl Pair<'_> {
    /// Where a finding of this check stands: at the line to change.
    pub(crate) fn place(&self, number: u8) -> &Place {
        match (number, self.queue, self.function) {
            (1 | 2 | 20 | 32, Some(queue), _) => &queue.place,
            (18 | 19 | 21 | 33 | 35 | 36, _, Some(function)) => &function.place,
            _ => &self.mapping.place,
        }
    }
}
