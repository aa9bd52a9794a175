//! Queues, functions and outcomes at one time.

use serde::Serialize;

/// Queues, functions and outcomes at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The queues, each before its dead-letter queue.
    pub queues: Vec<QueueState>,
    /// The functions.
    pub functions: Vec<FunctionState>,
    /// What became of messages, by consumer; empty where that is not known.
    pub consumers: Vec<ConsumerState>,
    /// Log lines that came faster than they were read, and can tell of more outcomes.
    pub missed: u64,
    /// What is not told here, each in a sentence; of a local cloud, the queues that are gone.
    pub untold: Vec<String>,
}

/// A queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// Its name.
    pub name: String,
    /// The names of its dead-letter queues: its own first, then those that functions which read it copy to.
    pub dead_letter_queues: Vec<String>,
    /// Whether it is the dead-letter queue of another.
    pub is_dead_letter_queue: bool,
    /// Messages that a receive could hand out.
    pub visible: u64,
    /// Messages received, and neither deleted nor visible again.
    pub in_flight: u64,
    /// Messages sent with a delay that has not passed.
    pub delayed: u64,
    /// What has happened to its messages so far, where that is known.
    pub counts: Option<QueueCounts>,
}

/// What has happened to a queue's messages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Messages sent.
    pub sent: u64,
    /// Deliveries: a message received twice counts twice.
    pub received: u64,
    /// Messages deleted.
    pub deleted: u64,
    /// Messages that SQS moved to the dead-letter queue.
    pub dead_lettered: u64,
    /// Messages dropped because they were too old.
    pub expired: u64,
}

/// A function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionState {
    /// Its name.
    pub name: String,
    /// Its event source mappings.
    pub mappings: Vec<MappingState>,
    /// Its processes that run, by their ids; none where that is not known.
    pub processes: Vec<u32>,
    /// What has happened so far, where that is known.
    pub counts: Option<FunctionCounts>,
    /// Whether it has no program yet, and its messages wait for one.
    pub waits_for_program: bool,
}

/// An event source mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MappingState {
    /// Its UUID.
    pub id: String,
    /// The queue's name.
    pub queue: String,
    /// What it does, as Lambda names it: `Enabled`, `Disabled`, `Enabling`, `Disabling`, …
    pub state: String,
    /// Whether it polls, or is about to.
    pub is_on: bool,
    /// When it is on again, and why, where a breaker has paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_again: Option<String>,
}

/// What has happened to a function so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCounts {
    /// Invocations begun.
    pub invocations: u64,
    /// Of these, ended with an error.
    pub errors: u64,
    /// Of these, cut by the timeout.
    pub timeouts: u64,
    /// Of these, ended by the end of the process.
    pub crashes: u64,
    /// Processes started.
    pub processes: u64,
}

/// What became of a consumer's messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerState {
    /// Its name.
    pub name: String,
    /// Outcomes by their word, each with how often; those that happened.
    pub outcomes: Vec<(String, u64)>,
}

/// Returns names as an overview keeps them.
pub(super) fn names(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

impl QueueState {
    /// Returns how many messages are in it.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

impl Overview {
    /// Returns why no function reads a queue now, in a sentence; `None` where one does, or that is not known.
    pub(crate) fn why_not_read(&self, queue: &str) -> Option<String> {
        let of = |function| move |mapping| (function, mapping);
        let all = self.functions.iter().flat_map(|function| function.mappings.iter().map(of(function)));
        let readers: Vec<(&FunctionState, &MappingState)> = all.filter(|(_, mapping)| mapping.queue == queue).collect();
        let on = readers.iter().find(|(_, mapping)| mapping.is_on);
        match (readers.first(), on) {
            (_, Some((function, _))) if function.waits_for_program => {
                Some(format!("{}, which reads {queue}, has no program yet.", function.name))
            }
            (_, Some(_)) => None,
            (Some((function, mapping)), None) => {
                let back =
                    mapping.on_again.as_ref().map_or_else(String::new, |back| format!(", and on again at {back}"));
                Some(format!("{}, which reads {queue}, is paused{back}.", function.name))
            }
            // Of a deployed stack there may be others.
            (None, None) => {
                let is_local = self.queues.iter().any(|known| known.name == queue && known.counts.is_some());
                is_local.then(|| format!("No function that runs here reads {queue}."))
            }
        }
    }

    /// Returns the sum over queues that are no dead-letter queue: visible and delayed, in flight; and over those that are.
    #[must_use]
    pub fn totals(&self) -> (u64, u64, u64) {
        self.queues.iter().fold((0, 0, 0), |(waiting, in_flight, dead), queue| {
            if queue.is_dead_letter_queue {
                (waiting, in_flight, dead + queue.messages())
            } else {
                (waiting + queue.visible + queue.delayed, in_flight + queue.in_flight, dead)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(name: &str, is_on: bool, on_again: Option<&str>) -> FunctionState {
        let on_again = on_again.map(str::to_owned);
        let mapping = MappingState { queue: "orders".to_owned(), is_on, on_again, ..MappingState::default() };
        FunctionState { name: name.to_owned(), mappings: vec![mapping], ..FunctionState::default() }
    }

    #[test]
    fn why_a_queue_is_not_read() {
        let building = FunctionState { waits_for_program: true, ..reader("pay", true, None) };
        for (functions, is_local, wanted) in [
            (vec![reader("pay", true, None)], true, None),
            (vec![reader("pay", false, None), reader("audit", true, None)], true, None),
            (vec![reader("pay", false, None)], false, Some("pay, which reads orders, is paused.")),
            (
                vec![reader("pay", false, Some("12:00"))],
                true,
                Some("pay, which reads orders, is paused, and on again at 12:00."),
            ),
            (vec![building], true, Some("pay, which reads orders, has no program yet.")),
            (vec![], true, Some("No function that runs here reads orders.")),
            (vec![], false, None),
        ] {
            let counts = is_local.then(QueueCounts::default);
            let queues = vec![QueueState { name: "orders".to_owned(), counts, ..QueueState::default() }];
            let overview = Overview { queues, functions, ..Overview::default() };
            assert_eq!(overview.why_not_read("orders").as_deref(), wanted);
        }
    }
}
