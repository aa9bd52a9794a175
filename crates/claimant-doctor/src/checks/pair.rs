//! What a check of one mapping looks at.

use crate::fact::Fact;
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

/// The Region and the account of a queue, as far as they are known: those in its ARN, else those of the stack.
pub(super) fn home<'a>(system: &'a System, queue: &'a Queue) -> (Option<&'a str>, Option<&'a str>) {
    let mut parts = queue.place.id.strip_prefix("arn:").unwrap_or_default().split(':').skip(2);
    match (parts.next(), parts.next()) {
        (Some(region), Some(account)) => (Some(region), Some(account)),
        _ => (system.home.region.known().map(String::as_str), system.home.account.known().map(String::as_str)),
    }
}

impl<'a> Pair<'a> {
    /// The function, if claimant runs in it: `None` where it does not, `Some(None)` where that is not known.
    pub(crate) fn consumer(&self) -> Option<Option<&'a Function>> {
        let function = self.function?;
        match function.is_consumer() {
            Fact::Known(true) => Some(Some(function)),
            Fact::Known(false) => None,
            Fact::Unknown => Some(None),
        }
    }

    /// Whether its mapping is the first of the function: what is asked about the function alone is asked there.
    pub(crate) fn is_first(&self) -> bool {
        let first = self.function.and_then(|function| self.system.mappings_of(function).next());
        first.is_some_and(|first| first.place.id == self.mapping.place.id)
    }

    /// Where a finding of this check stands: at the line to change.
    pub(crate) fn place(&self, number: u8) -> &Place {
        match (number, self.queue, self.function) {
            (1 | 2 | 6 | 20 | 32, Some(queue), _) => &queue.place,
            (18 | 19 | 21 | 35, _, Some(function)) => &function.place,
            _ => &self.mapping.place,
        }
    }
}
