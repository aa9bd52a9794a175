//! A store to operate on.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::limits::SKEW_DEFAULT_MS;
use claimant_core::{
    Call, Clock, ConsumerName, Error, Key, Meter, Record, RecordId, Records, SystemClock, Timestamp, Usage,
};

use super::beside::Beside;

/// The variable that says who acts, where the user's name does not.
const OPERATOR_VARIABLE: &str = "CLAIMANT_OPERATOR";

/// How long one call to the store may take.
const CALL_MAX: Duration = Duration::from_secs(10);

/// How long reading one page of a list may take.
const PAGE_MAX: Duration = Duration::from_secs(40);

/// The records of a store. Each method is a few calls; none of them is under way when it returns.
///
/// Whether a lease is live is judged by the clock of the machine that this runs on: it must not be ahead of the owners' clocks by
/// more than the margin, or an act takes a key from an owner that still works on it.
pub struct Keys {
    store: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    skew: Duration,
    meter: Meter,
}

impl Keys {
    /// Creates access to this store, by the system's clock, with the default clock-skew margin.
    #[must_use]
    pub fn new(store: Arc<dyn Records>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            skew: Duration::from_millis(SKEW_DEFAULT_MS),
            meter: Meter::default(),
        }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the clock-skew margin: that of the consumers, where they have set one.
    #[must_use]
    pub fn skew(self, skew: Duration) -> Self {
        Self { skew, ..self }
    }

    /// Returns the ids that this text can mean, one or two: a key of the consumer, if one is given, in the clear and then
    /// hashed; else a whole record id, of which `consumer#key` stands for both, too.
    ///
    /// # Errors
    /// When the text is no key, or without a consumer no record id.
    pub fn ids(text: &str, consumer: Option<&ConsumerName>) -> Result<Vec<RecordId>, Error> {
        let Some(consumer) = consumer else {
            let of_consumer =
                || text.split_once('#').and_then(|(name, key)| Some((ConsumerName::new(name).ok()?, key)));
            return match of_consumer() {
                Some((consumer, key)) => Self::ids(key, Some(&consumer)),
                None => RecordId::from_stored(text).map(|id| vec![id]).map_err(|_| {
                    Error::invalid(
                        "the key has no consumer: give the consumer's name, or the whole id of the record, consumer#key or \
                         consumer~hash. Where the consumer is not known, claimant list running stuck completed failed rejected parked \
                         --text TEXT reads the whole table for a part of a key in the clear, or for the id of a message",
                    )
                }),
            };
        };
        let key = Key::new(text)?;
        let mut ids = RecordId::both(consumer, &key).to_vec();
        ids.dedup();
        // Those of breakers and limits are never hashed.
        if Beside::of(&ids[0]).is_some() {
            ids.truncate(1);
        }
        Ok(ids)
    }

    /// Reads this record; `None` where there is none.
    ///
    /// # Errors
    /// When the store did not give an answer.
    pub async fn get(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        Ok(self.store.get(id, self.call()).await?)
    }

    /// Returns what all calls so far asked of the store.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.meter.usage()
    }

    pub(super) fn store(&self) -> &dyn Records {
        self.store.as_ref()
    }

    pub(super) fn call(&self) -> Call<'_> {
        Call { within: CALL_MAX, meter: &self.meter }
    }

    pub(super) fn page_call(&self) -> Call<'_> {
        Call { within: PAGE_MAX, meter: &self.meter }
    }

    /// Returns the time and the clock-skew margin, by which it judges what is live.
    #[must_use]
    pub fn now(&self) -> (Timestamp, Duration) {
        (self.clock.now(), self.skew)
    }
}

/// Returns who acts: what the variable `CLAIMANT_OPERATOR` says, or the user and the machine.
#[must_use]
pub fn operator() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    variable(OPERATOR_VARIABLE).unwrap_or_else(|| {
        let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "unknown".to_owned());
        format!("{user}@{}", rustix::system::uname().nodename().to_string_lossy())
    })
}
