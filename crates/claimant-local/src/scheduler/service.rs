//! The schedules, and what is due.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use serde_json::Value;

use super::schedule::{Action, Schedule};
use crate::arn::{self, ACCOUNT_ID, REGION};
use crate::journal::{Event, Journal, Text, What};
use crate::mapping::MappingSwitch;
use crate::sqs::{NewMessage, Sqs};
use crate::sync::lock;

/// Schedules kept at once; more are refused.
pub const SCHEDULES_MAX: usize = 100_000;

/// The name of a schedule, after that of its group.
pub(super) type Name = (String, String);

/// The ARN of a schedule.
pub(super) fn arn_of((group, name): &Name) -> String {
    format!("arn:aws:scheduler:{REGION}:{ACCOUNT_ID}:schedule/{group}/{name}")
}

/// Local EventBridge Scheduler. Clones share the schedules.
#[derive(Debug, Clone)]
pub struct Scheduler {
    pub(super) sqs: Sqs,
    schedules: Arc<Mutex<BTreeMap<Name, Schedule>>>,
    /// The event source mappings, once they run.
    mappings: Arc<OnceLock<Vec<MappingSwitch>>>,
    journal: Journal,
}

/// What became of a schedule that was to be created.
pub(super) enum Creation {
    Created,
    /// There is another one of this name.
    Taken,
    /// There are [`SCHEDULES_MAX`].
    Full,
}

impl Scheduler {
    /// A scheduler without schedules that sends to these queues.
    pub fn new(sqs: Sqs) -> Self {
        Self { sqs, schedules: Arc::default(), mappings: Arc::default(), journal: Journal::off() }
    }

    /// The same scheduler, which writes what it does into this journal.
    #[must_use]
    pub fn observed(mut self, journal: &Journal) -> Self {
        self.journal = journal.clone();
        self
    }

    /// Sets the event source mappings that schedules switch on and off; those of the first call count.
    pub fn set_mappings(&self, mappings: Vec<MappingSwitch>) {
        let _ = self.mappings.set(mappings);
    }

    /// Returns when the next schedule switches this event source mapping on, in milliseconds since 1970, and what its description says.
    pub fn comes_on(&self, id: &str) -> Option<(u64, Option<String>)> {
        let schedules = self.schedules();
        let is_meant = |schedule: &&Schedule| {
            let is_due = schedule.enabled && !schedule.ran;
            is_due && matches!(&schedule.action, Action::Switch { id: of, enabled: true } if of == id)
        };
        let next = schedules.values().filter(is_meant).min_by_key(|schedule| schedule.at_ms)?;
        Some((next.at_ms, next.request["Description"].as_str().map(str::to_owned)))
    }

    /// How many schedules there are.
    pub fn len(&self) -> usize {
        self.schedules().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends what is due at this time, in milliseconds since 1970, in the order of its times; returns how many schedules were.
    /// The endpoint does so by the wall clock, several times a second.
    pub fn run_due(&self, now_ms: u64) -> usize {
        let mut due = Vec::new();
        self.schedules().retain(|name, schedule| {
            let is_due = schedule.enabled && !schedule.ran && schedule.at_ms <= now_ms;
            if is_due {
                due.push((name.1.clone(), arn_of(name), schedule.clone()));
                schedule.ran = true;
            }
            !(is_due && schedule.deletes_itself)
        });
        due.sort_by_key(|(.., schedule)| schedule.at_ms);
        for (name, arn, schedule) in &due {
            let ran = || What::ScheduleRan { schedule: name.into() };
            self.journal.write(|| Event::new(now_ms, ran()));
            match &schedule.action {
                Action::SendMessage => self.send(arn, schedule),
                Action::Switch { id, enabled } => self.switch(arn, id, *enabled),
            }
        }
        due.len()
    }

    fn switch(&self, schedule: &str, id: &str, enabled: bool) {
        match self.mappings.get().into_iter().flatten().find(|mapping| mapping.id() == id) {
            Some(mapping) => mapping.enable(enabled),
            None => {
                tracing::warn!(
                    schedule,
                    id,
                    "a schedule could not switch its event source mapping: there is none of this id"
                )
            }
        }
    }

    fn send(&self, arn: &str, schedule: &Schedule) {
        let execution_id = uuid::Uuid::new_v4().simple().to_string();
        let input = schedule.input_of(arn, &execution_id);
        let Err((code, why)) = self.sqs.send_as_asked(input.as_bytes()) else { return };
        let message_attributes = schedule.letter_attributes(arn, &execution_id, (code, &why));
        let plain = NewMessage::new(input);
        let letter = NewMessage { message_attributes, ..plain.clone() };
        let queue = schedule.dead_letter_arn.as_deref().and_then(arn::local_queue_name);
        // With its attributes it can be longer than the queue takes.
        let kept =
            queue.is_some_and(|queue| [letter, plain].into_iter().any(|letter| self.sqs.send(queue, letter).is_ok()));
        tracing::warn!(schedule = arn, dead_lettered = kept, "a schedule could not send its message: SQS: {why}");
    }

    /// Keeps a schedule. The same request again, by its token, changes nothing.
    pub(super) fn create(&self, name: Name, schedule: Schedule) -> Creation {
        let mut schedules = self.schedules();
        match schedules.get(&name) {
            Some(there) => {
                let again = there.request["ClientToken"].is_string() && there.request == schedule.request;
                if again { Creation::Created } else { Creation::Taken }
            }
            None if schedules.len() >= SCHEDULES_MAX => Creation::Full,
            None => {
                let created = || What::Scheduled { schedule: Text::from(&name.1), due_ms: schedule.at_ms };
                self.journal.note(created, |event| event);
                schedules.insert(name, schedule);
                Creation::Created
            }
        }
    }

    /// The request that made this schedule, and when, in milliseconds since 1970.
    pub(super) fn get(&self, name: &Name) -> Option<(Value, u64)> {
        self.schedules().get(name).map(|schedule| (schedule.request.clone(), schedule.created_ms))
    }

    /// The names after this one that are asked for, `max` at most, and whether each is enabled, as one that ran stays; whether there are
    /// more.
    pub(super) fn names(
        &self,
        after: Option<Name>,
        max: usize,
        asked: impl Fn(&Name, bool) -> bool,
    ) -> (Vec<(Name, bool)>, bool) {
        let schedules = self.schedules();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut names = schedules
            .range((after, Bound::Unbounded))
            .map(|(name, schedule)| (name, schedule.enabled))
            .filter(|(name, enabled)| asked(name, *enabled));
        let page = names.by_ref().take(max).map(|(name, enabled)| (name.clone(), enabled)).collect();
        (page, names.next().is_some())
    }

    /// Deletes a schedule; returns whether it was there.
    pub(super) fn delete(&self, name: &Name) -> bool {
        self.schedules().remove(name).is_some()
    }

    fn schedules(&self) -> MutexGuard<'_, BTreeMap<Name, Schedule>> {
        lock(&self.schedules)
    }
}
