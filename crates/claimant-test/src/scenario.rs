//! What can happen to messages and to the processes that work on them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::faulty::Call;
use crate::life::Halt;

/// What happens to messages and processes while [`TestQueue::play`](crate::TestQueue::play) has them worked on. [`all`](Self::all) is
/// every one that there is.
#[derive(Debug, Clone)]
pub struct Scenario {
    kind: Kind,
    /// How many steps the messages take as they come, once that was played.
    steps: Arc<AtomicUsize>,
    /// Whether it is one of all: those have answers lost also where a consumer has no use for such calls, and processes halted also at a step
    /// that a play does not come to, since its handler did not have to wait.
    one_of_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AsTheyCome,
    DeliveredTwice,
    SentTwice,
    Reordered,
    BesideItself,
    AnswersLost(Call),
    HaltedAt(usize, Halt),
}

/// The scenarios that need not know how many steps there are, in their order.
const WITHOUT_STEPS: [Kind; 7] = [
    Kind::AsTheyCome,
    Kind::DeliveredTwice,
    Kind::SentTwice,
    Kind::Reordered,
    Kind::BesideItself,
    Kind::AnswersLost(Call::Claim),
    Kind::AnswersLost(Call::Settle),
];

impl Scenario {
    fn of(kind: Kind) -> Self {
        Self { kind, steps: Arc::default(), one_of_all: false }
    }

    /// Returns the one in which nothing goes wrong: the messages come in batches, in the order in which they were sent.
    #[must_use]
    pub fn as_they_come() -> Self {
        Self::of(Kind::AsTheyCome)
    }

    /// Returns the one in which all messages are delivered again after they are done, since the queue lost their deletion.
    ///
    /// Asserted is that a message that was done is a duplicate then.
    #[must_use]
    pub fn delivered_twice() -> Self {
        Self::of(Kind::DeliveredTwice)
    }

    /// Returns the one in which the producer sends each message again: another message id, other ids and times in its envelopes.
    ///
    /// Asserted is that of two copies one is done and the other one is a duplicate. Where the key comes from something that changes
    /// when a producer sends again, both run; where the fingerprint does, the second one is a conflict.
    #[must_use]
    pub fn sent_twice() -> Self {
        Self::of(Kind::SentTwice)
    }

    /// Returns the one in which the messages come one by one, the last one first. Those of one ordered group stay in order.
    #[must_use]
    pub fn reordered() -> Self {
        Self::of(Kind::Reordered)
    }

    /// Returns the one in which each batch is delivered to two processes at once.
    ///
    /// Asserted is that no message is completed by both.
    #[must_use]
    pub fn beside_itself() -> Self {
        Self::of(Kind::BesideItself)
    }

    /// Returns the one in which calls of this kind apply and their answers are lost, as many as there are messages.
    ///
    /// Asserted is that the engine finds out what had applied; and that an answer was lost, unless it is one of [`all`](Self::all).
    #[must_use]
    pub fn answers_lost(call: Call) -> Self {
        Self::of(Kind::AnswersLost(call))
    }

    /// Returns the one in which a process dies instead of taking its `step`th step, counted from 1 over all messages: what it did
    /// before stays done, nothing more of it is. Its messages come back when the queue shows them again. What its handlers hold is
    /// dropped; a process that dies without that is a matter for the built function (feature `cloud`).
    ///
    /// Asserted is that there are so many steps, unless it is one of [`all`](Self::all).
    #[must_use]
    pub fn killed_at(step: usize) -> Self {
        Self::of(Kind::HaltedAt(step, Halt::Kill))
    }

    /// Returns the one in which a process stands still before its `step`th step, as one that was frozen, and goes on when others have
    /// done its messages: its late writes meet the work of its successors.
    ///
    /// Asserted is that it reports as done only what is, and, unless it is one of [`all`](Self::all), that there are so many steps.
    #[must_use]
    pub fn stopped_at(step: usize) -> Self {
        Self::of(Kind::HaltedAt(step, Halt::Stop))
    }

    /// Returns all of them, one after the other, each to be played with a consumer and effects of its own. After the first one is
    /// played, the number of its steps is known, and with it at which steps a process can die or stand still.
    ///
    /// A handler that waits for other threads, such as by `spawn_blocking`, does not take the same steps each time: to one that is done before
    /// the handler asks, it need not wait. A play that does not come to the step of its scenario is then one in which nothing goes wrong.
    pub fn all() -> impl Iterator<Item = Self> {
        let steps = Arc::new(AtomicUsize::new(0));
        let known = Arc::clone(&steps);
        let halts = std::iter::once_with(move || {
            let steps = known.load(Ordering::Relaxed);
            assert!(
                steps > 0,
                "Scenario::all: no scenario was played with TestQueue::play, so its steps are not known"
            );
            let each = |halt| (1..=steps).map(move |step| Kind::HaltedAt(step, halt));
            each(Halt::Kill).chain(each(Halt::Stop))
        });
        let kinds = WITHOUT_STEPS.into_iter().chain(halts.flatten());
        kinds.map(move |kind| Self { kind, steps: Arc::clone(&steps), one_of_all: true })
    }

    /// Returns whether a process stands still in it, with all that its handlers hold. To others of the test that is missing, since they
    /// [share](crate::TestQueue) the handler: skip it where a handler holds a mutex over an `await`.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self.kind, Kind::HaltedAt(_, Halt::Stop))
    }

    /// Returns whether a process dies or stands still in it: then an effect outside of a transaction can be repeated.
    #[must_use]
    pub fn halts(&self) -> bool {
        matches!(self.kind, Kind::HaltedAt(..))
    }

    pub(crate) fn one_of_all(&self) -> bool {
        self.one_of_all
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Notes how many steps there were.
    pub(crate) fn note(&self, steps: usize) {
        if self.kind == Kind::AsTheyCome {
            self.steps.store(steps, Ordering::Relaxed);
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::AsTheyCome => f.write_str("as they come"),
            Kind::DeliveredTwice => f.write_str("delivered twice"),
            Kind::SentTwice => f.write_str("sent twice"),
            Kind::Reordered => f.write_str("in another order"),
            Kind::BesideItself => f.write_str("to two processes at once"),
            Kind::AnswersLost(call) => write!(f, "with lost answers to {call:?}"),
            Kind::HaltedAt(step, Halt::Kill) => write!(f, "killed at step {step}"),
            Kind::HaltedAt(step, Halt::Stop) => write!(f, "stopped at step {step}"),
        }
    }
}
