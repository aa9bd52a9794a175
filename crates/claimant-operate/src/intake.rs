//! What lets messages into functions: event source mappings of SQS queues, paused and resumed.

use std::pin::pin;
use std::time::Duration;

use aws_config::SdkConfig;
use claimant_aws::intake::{Api, Return, Returns};
use claimant_aws::mapping::{EventSourceMapping, is_on};
use claimant_aws::sqs::queue_arn;
use claimant_core::{Error, SystemClock, Timestamp};
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::lambda::{Lambda, Update};
use crate::target::Place;

/// The most mappings that are listed.
pub const MAPPINGS_MAX: usize = 1_000;

/// How often a change is tried that Lambda refuses because another is under way.
const TRIES_MAX: u32 = 10;

/// Between two tries, and between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The state of a mapping of which it is not known.
const UNKNOWN: &str = "unknown";

/// Event source mappings of one account and Region.
#[derive(Debug, Clone)]
pub struct Intake {
    lambda: Lambda,
    aws: SdkConfig,
}

/// When a mapping is switched on that an open breaker has paused, or was to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComesBack {
    /// When.
    pub at: Timestamp,
    /// Who wanted it, as its schedule says: `breaker mail of confirmation`; `None` where the schedule cannot be read, or is gone.
    pub why: Option<String>,
}

impl ComesBack {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "at": self.at.to_utc(), "why": self.why })
    }
}

impl std::fmt::Display for ComesBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = self.why.as_deref().unwrap_or("of which breaker is not known: its schedule was not read");
        write!(f, "{} ({why})", self.at.to_utc())
    }
}

/// An event source mapping of an SQS queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its UUID.
    pub id: String,
    /// The function's name, with its version or alias if the mapping is of one: `worker:live`.
    pub function: String,
    /// The function's ARN, likewise.
    pub function_arn: String,
    /// The queue's name.
    pub queue: String,
    /// The queue's ARN: another account can have a queue of the same name.
    pub queue_arn: String,
    /// What it does, as Lambda names it: `Enabled`, `Disabled`, `Enabling`, `Disabling`, `Updating`, …; `unknown` where that is not known.
    pub state: String,
    /// Whether a message that the function names as failed stays, and the others of its batch do not: `ReportBatchItemFailures`.
    pub reports_failures: bool,
}

/// What is to be changed of a mapping; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether it polls.
    pub enabled: Option<bool>,
    /// Whether failed messages are named by the function: `ReportBatchItemFailures`.
    pub reports_failures: Option<bool>,
}

impl Mapping {
    fn read(found: &EventSourceMapping) -> Option<Self> {
        let arn = found.queue_arn()?;
        let function_arn = found.function_arn.clone().unwrap_or_default();
        let mapping = Self {
            id: found.uuid.clone()?,
            function: function_name(&function_arn).to_owned(),
            function_arn,
            queue: arn.rsplit(':').next().unwrap_or(arn).to_owned(),
            queue_arn: arn.to_owned(),
            state: String::new(),
            reports_failures: false,
        };
        Some(mapping.now(found))
    }

    /// Returns whether it is of this function, by its name or ARN. Without a version or alias, those of all of them are.
    #[must_use]
    pub fn is_of(&self, function: &str) -> bool {
        is_of(&self.function, function) && self.is_at_home_of(function)
    }

    /// Returns whether it is in the account and the Region of this function, as far as an ARN or a part of one names them.
    fn is_at_home_of(&self, function: &str) -> bool {
        let Some((named, _)) = function.split_once(":function:") else { return true };
        let own = self.function_arn.split_once(":function:").map_or("", |(own, _)| own);
        named == own || own.rsplit(':').next() == Some(named)
    }

    /// Returns whether it is of this queue, by its name, URL or ARN. What a URL does not say of its account and Region is the function's.
    #[must_use]
    pub fn reads(&self, queue: &str) -> bool {
        self.queue == queue || queue_arn(queue, &self.function_arn).is_some_and(|arn| arn == self.queue_arn)
    }

    /// Returns this mapping as Lambda has it now.
    fn now(self, found: &EventSourceMapping) -> Self {
        let state = found.state.as_deref().unwrap_or(UNKNOWN).to_owned();
        Self { state, reports_failures: found.reports_failures(), ..self }
    }

    /// Returns whether it polls, or is about to.
    #[must_use]
    pub fn is_on(&self) -> bool {
        is_on(&self.state)
    }

    /// Returns whether no change is under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.state.as_str(), "Enabled" | "Disabled")
    }

    /// Returns whether it is as the change would leave it. Of one that is `Updating` it is not known whether it polls afterwards.
    #[must_use]
    pub fn has(&self, change: Change) -> bool {
        let is_so = |enabled| if enabled { matches!(&*self.state, "Enabled" | "Enabling") } else { !self.is_on() };
        change.enabled.is_none_or(is_so)
            && change.reports_failures.is_none_or(|reports| reports == self.reports_failures)
    }

    /// Forgets what it does, where that is not known any more.
    pub(crate) fn forget_state(&mut self) {
        UNKNOWN.clone_into(&mut self.state);
    }

    /// Returns whether it is not known what it does.
    #[must_use]
    pub fn has_unknown_state(&self) -> bool {
        self.state == UNKNOWN
    }

    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "function": self.function,
            "queue": self.queue,
            "queue_arn": self.queue_arn,
            "state": self.state,
            "reports_failures": self.reports_failures,
        })
    }
}

impl Intake {
    /// Returns the mappings of this place.
    #[must_use]
    pub fn of(place: &Place) -> Self {
        Self { lambda: Lambda::new(place.aws()), aws: place.aws().clone() }
    }

    fn returns(&self) -> Returns<'_> {
        Returns(Api { config: &self.aws, near: "", clock: &SystemClock })
    }

    /// Returns when a mapping that is off is switched on, if a breaker has paused it. The name of the schedule says when; who wanted it is
    /// left out where the schedule cannot be read (`scheduler:GetSchedule`).
    ///
    /// # Errors
    /// When the permission `scheduler:ListSchedules` is missing, or no answer comes.
    pub async fn comes_back(&self, mapping: &Mapping) -> Result<Option<ComesBack>, Error> {
        if mapping.is_on() {
            return Ok(None);
        }
        let returns = self.returns();
        let planned = returns.of(Some(&mapping.id)).await?.into_iter().min_by_key(|planned| planned.at);
        let Some(planned) = planned else { return Ok(None) };
        Ok(Some(ComesBack { at: planned.at, why: returns.why(&planned).await.unwrap_or_default() }))
    }

    /// Deletes the schedules that would switch a mapping on that is to stay off; returns them. A breaker that looks at it once it is off
    /// leaves it alone; one that had looked before can plan its return a moment later.
    ///
    /// # Errors
    /// When the permissions `scheduler:ListSchedules` and `scheduler:DeleteSchedule` are missing, or no answer comes.
    pub async fn keep_off(&self, mapping: &Mapping) -> Result<Vec<Return>, Error> {
        let returns = self.returns();
        let planned = returns.of(Some(&mapping.id)).await?;
        for one in &planned {
            returns.delete(one).await?;
        }
        Ok(planned)
    }

    /// Lists the mappings of SQS queues of a function of a place, which is called by its name, its logical id, its program's name or its
    /// ARN, by a name and an ARN also with a version or an alias; returns its name, too. A place that has no functions, as a table and
    /// queues have none, stands for its account.
    ///
    /// # Errors
    /// When the place has functions, and none is called so: what else has this name in the account is not meant. When it is called by the
    /// ARN of a function of another account or Region. As for [`list`](Self::list).
    pub async fn list_called<'n>(&self, place: &'n Place, called: &'n str) -> Result<(&'n str, Vec<Mapping>), Error> {
        let name = place.function(called).map_or(called, |function| &function.name);
        let known: Vec<_> = place.functions.iter().map(|function| function.name.as_str()).collect();
        if !known.is_empty() && !known.iter().any(|known| is_of(name, known)) {
            let known = known.join(", ");
            return Err(Error::invalid(format!("there is no function {name} in {}: there are {known}", place.name)));
        }
        let mappings = self.list(function_name(name)).await?;
        if let Some(other) = mappings.iter().find(|mapping| !mapping.is_at_home_of(name)) {
            let here = &other.function_arn;
            return Err(Error::invalid(format!(
                "{name} is of another account or Region than what is looked at: of this name there is {here}. Are the credentials and the \
                 Region right?"
            )));
        }
        Ok((name, mappings))
    }

    /// Lists the mappings of SQS queues [of a function](Mapping::is_of), [`MAPPINGS_MAX`] at most.
    ///
    /// # Errors
    /// When the permission `lambda:ListEventSourceMappings` is missing, or no answer comes.
    pub async fn list(&self, function: &str) -> Result<Vec<Mapping>, Error> {
        self.list_where(|mapping| mapping.is_of(function)).await
    }

    /// Lists those of all functions of a place, [`MAPPINGS_MAX`] at most. Where it has none, nothing is asked.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub async fn list_in(&self, place: &Place) -> Result<Vec<Mapping>, Error> {
        if place.functions.is_empty() {
            return Ok(Vec::new());
        }
        self.list_where(|mapping| place.functions.iter().any(|function| mapping.is_of(&function.name))).await
    }

    async fn list_where(&self, is_meant: impl Fn(&Mapping) -> bool) -> Result<Vec<Mapping>, Error> {
        self.lambda.list_mappings(|found| Mapping::read(&found).filter(&is_meant), MAPPINGS_MAX).await
    }

    /// Changes a mapping, unless it is so already: one that was listed so is read anew, since it may have been changed. Returns it as Lambda
    /// has it then. A change that Lambda refuses because another is under way is tried again for 5 s, unless that one leads to the same: it
    /// can be this one, whose answer was lost.
    ///
    /// # Errors
    /// When the mapping is gone, the permission `lambda:UpdateEventSourceMapping` is missing, or no answer comes.
    pub async fn change(&self, mapping: &Mapping, change: Change) -> Result<Mapping, Error> {
        let what = format!("the event source mapping of {} and {} cannot be changed", mapping.function, mapping.queue);
        // OK where it cannot be read: a change that is made twice is the same one.
        let as_wanted = async || {
            let found = self.lambda.get_mapping(&what, &mapping.id).await.ok()?;
            Some(mapping.clone().now(&found)).filter(|now| now.has(change))
        };
        if mapping.has(change)
            && let Some(now) = as_wanted().await
        {
            return Ok(now);
        }
        let mut tries = 1;
        loop {
            let update = (change.enabled, change.reports_failures);
            let in_use = match self.lambda.update_mapping(&what, &mapping.id, update).await? {
                Update::Made(found) => return Ok(mapping.clone().now(&found)),
                Update::InUse(error) => error,
            };
            match as_wanted().await {
                Some(now) => return Ok(now),
                None if tries == TRIES_MAX => return Err(in_use),
                None => tries += 1,
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until no change is under way, so long at most, or until `stopped` is ready, after which it looks once more; returns the mapping
    /// as it is then. Once it is `Disabled`, nothing is in flight any more.
    ///
    /// # Errors
    /// When the mapping is gone, the permission `lambda:GetEventSourceMapping` is missing, or no answer comes.
    pub async fn settled(
        &self,
        mapping: &Mapping,
        within: Duration,
        stopped: impl Future<Output = ()>,
    ) -> Result<Mapping, Error> {
        let (until, mut stopped) = (Instant::now() + within, pin!(stopped));
        let (mut now, mut is_stopped) = (mapping.clone(), false);
        while !now.is_settled() && Instant::now() < until && !is_stopped {
            is_stopped = matches!(select(pin!(sleep(PAUSE)), stopped.as_mut()).await, Either::Right(_));
            let what = format!("the event source mapping of {} cannot be asked", mapping.function);
            now = now.now(&self.lambda.get_mapping(&what, &mapping.id).await?);
        }
        Ok(now)
    }
}

/// Returns the name in the ARN of a function, with its version or alias if it has one.
fn function_name(arn: &str) -> &str {
    arn.split_once(":function:").map_or(arn, |(_, name)| name)
}

/// Returns whether what has this name or ARN is the function, or a version or an alias of it.
pub(crate) fn is_of(name: &str, function: &str) -> bool {
    let (name, function) = (function_name(name), function_name(function));
    name == function || name.split_once(':').is_some_and(|(name, _)| name == function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_queues_are_read() {
        let mapping = |source: &str| {
            let function = "arn:aws:lambda:eu-west-1:111111111111:function:confirm:live";
            let found = json!({"UUID": "u", "EventSourceArn": source, "FunctionArn": function, "State": "Disabling"});
            serde_json::from_value::<EventSourceMapping>(found).unwrap()
        };
        let read = Mapping::read(&mapping("arn:aws:sqs:eu-west-1:111111111111:orders")).unwrap();
        assert_eq!(
            (read.function.as_str(), read.queue.as_str(), read.reports_failures),
            ("confirm:live", "orders", false)
        );
        assert_eq!((read.is_on(), read.is_settled()), (false, false));
        for (function, its) in [
            ("confirm", true),
            ("confirm:live", true),
            ("arn:aws:lambda:eu-west-1:111111111111:function:confirm", true),
            ("111111111111:function:confirm", true),
            ("arn:aws:lambda:us-east-1:111111111111:function:confirm", false),
            ("arn:aws:lambda:eu-west-1:222222222222:function:confirm:live", false),
            ("222222222222:function:confirm", false),
            ("confirm:next", false),
            ("conf", false),
            ("live", false),
        ] {
            assert_eq!(read.is_of(function), its, "{function}");
        }
        for (queue, its) in [
            ("orders", true),
            ("order", false),
            ("arn:aws:sqs:eu-west-1:111111111111:orders", true),
            ("arn:aws:sqs:eu-west-1:222222222222:orders", false),
            ("http://127.0.0.1:9324/queue/orders", true),
            ("https://sqs.eu-west-1.amazonaws.com/111111111111/orders", true),
            ("https://sqs.eu-west-1.amazonaws.com/222222222222/orders", false),
            ("https://sqs.eu-west-1.amazonaws.com/11111111111/orders", false),
            ("https://sqs.eu-west-1.amazonaws.com/orders", false),
            ("http://claimant-local:9324/000000000000/orders", false),
            ("http://claimant-local:9324/111111111111/orders", true),
            ("https://sqs.us-east-1.amazonaws.com/111111111111/orders", false),
            ("https://us-east-1.queue.amazonaws.com/111111111111/orders", false),
        ] {
            assert_eq!(read.reads(queue), its, "{queue}");
        }
        assert_eq!(Mapping::read(&mapping("arn:aws:kinesis:eu-west-1:1:stream/x")), None);
        for (change, has) in [
            (Change::default(), true),
            (Change { enabled: Some(false), reports_failures: Some(false) }, true),
            (Change { enabled: Some(true), ..Change::default() }, false),
            (Change { reports_failures: Some(true), ..Change::default() }, false),
        ] {
            assert_eq!(read.has(change), has, "{change:?}");
        }
    }
}
