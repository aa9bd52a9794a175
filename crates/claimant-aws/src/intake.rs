//! The intake of a function: its event source mapping, and its return as a one-time schedule of EventBridge Scheduler.
//!
//! A schedule's name is made from the mapping and the time, so that a second try is the same one, and the names alone tell which mappings
//! come back when. Its description says who wanted it.

use aws_config::SdkConfig;
use claimant_core::intake::is_early_enough;
use claimant_core::{BoxFuture, Clock, Error, ErrorKind, Intake, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::endpoints::{not_of, unread};
use crate::mapping::{EventSourceMapping, Mappings, PATH, is_in_use};
use crate::signed::{Answer, Request, Service, encoded, send};

/// How the names of the schedules begin that switch a mapping on.
pub const RETURN_PREFIX: &str = "claimant-resume-";

/// The longest description of a schedule, in bytes; the service has 512 characters.
const WHY_MAX: usize = 500;

/// AWS, as requests reach it.
#[derive(Clone, Copy)]
pub struct Api<'a> {
    /// The configuration.
    pub config: &'a SdkConfig,
    /// An ARN of the partition, and of the Region where the configuration has none; empty for the partition of the Region that it has.
    pub near: &'a str,
    /// The clock: requests bear its time.
    pub clock: &'a dyn Clock,
}

impl std::fmt::Debug for Api<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("near", &self.near).finish_non_exhaustive()
    }
}

impl Api<'_> {
    /// Lists the event source mappings of this function and this event source, by their ARNs, or the function's name: the first page.
    ///
    /// # Errors
    /// When the permission `lambda:ListEventSourceMappings` is missing, or no answer comes.
    pub async fn list_mappings(&self, function: &str, source: &str) -> Result<Mappings, Error> {
        let path = format!("{PATH}?EventSourceArn={}&FunctionName={}", encoded(source), encoded(function));
        let answer = self.ask(Service::LAMBDA, "GET", path, Value::Null).await?;
        match answer.is_good() {
            true => read(&answer),
            false => Err(answer.error("the event source mapping cannot be found", "lambda:ListEventSourceMappings")),
        }
    }

    async fn ask(&self, service: Service, method: &'static str, path: String, body: Value) -> Result<Answer, Error> {
        self.ask_at(service, (method, path, body), || Ok(self.clock.now())).await
    }

    async fn ask_at(
        &self,
        service: Service,
        (method, path, body): (&'static str, String, Value),
        now: impl FnOnce() -> Result<Timestamp, Error> + Send,
    ) -> Result<Answer, Error> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(self.config, Request::json(service, self.near, (method, path, body)), now).await
    }
}

/// The event source mapping of one function and one queue.
#[derive(Debug)]
pub struct Mapping<'a> {
    api: Api<'a>,
    function: &'a str,
    queue: &'a str,
    /// In whose name the schedule switches it on.
    role: &'a str,
    /// Its id, once it is known.
    id: OnceCell<String>,
}

/// A mapping that is to be switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// The mapping's id, a UUID.
    pub mapping: String,
    /// When.
    pub at: Timestamp,
    /// The name of the schedule.
    pub schedule: String,
}

impl Return {
    /// Returns what the name of a schedule says; `None` where it is none of ours.
    fn of_name(name: &str) -> Option<Self> {
        let (id, at) = name.strip_prefix(RETURN_PREFIX)?.split_once('-')?;
        let at: u64 = at.parse().ok()?;
        let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        // Without its hyphens a UUID fits in, beside the time.
        let mapping = is_id.then(|| [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-"))?;
        Some(Self { mapping, at: Timestamp::from_millis(at.saturating_mul(1_000)), schedule: name.to_owned() })
    }
}

/// The beginning of the names of a mapping's schedules.
fn names_of(mapping: &str) -> String {
    format!("{RETURN_PREFIX}{}-", mapping.replace('-', ""))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Schedules {
    schedules: Vec<Named>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    name: String,
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    // Tried again: a change may have been made.
    let unread = |e| Error::new(unread("AWS", answer.status)).of_kind(ErrorKind::Unavailable).caused_by(e);
    serde_json::from_slice(&answer.body).map_err(unread)
}

/// Returns whether an answer names what was made or changed, as AWS does: one that does not is of something else.
fn confirmed(answer: &Value, by: &str) -> Result<(), Error> {
    match answer[by].as_str() {
        Some(name) if !name.is_empty() => Ok(()),
        _ => Err(Error::new(not_of("AWS", &format!("a success without {by}"))).of_kind(ErrorKind::Unavailable)),
    }
}

impl<'a> Mapping<'a> {
    /// Returns the mapping of this function and this queue, by their ARNs. A schedule switches it on in the name of `role`, by its ARN:
    /// `scheduler.amazonaws.com` may assume it, and it has `lambda:UpdateEventSourceMapping`. Does no request.
    #[must_use]
    pub fn new(api: Api<'a>, function: &'a str, queue: &'a str, role: &'a str) -> Self {
        Self { api, function, queue, role, id: OnceCell::new() }
    }

    async fn find(&self) -> Result<EventSourceMapping, Error> {
        // A function has one mapping for a queue.
        let found = self.api.list_mappings(self.function, self.queue).await?.event_source_mappings.into_iter().next();
        let found = found.ok_or_else(|| Error::new("this function has no event source mapping of this queue"))?;
        if let Some(id) = &found.uuid {
            let _ = self.id.set(id.clone());
        }
        Ok(found)
    }

    async fn id(&self) -> Result<&str, Error> {
        if self.id.get().is_none() {
            self.find().await?;
        }
        self.id.get().map(String::as_str).ok_or_else(|| Error::new("the event source mapping is not known"))
    }

    async fn plan(&self, at: Timestamp, why: &str) -> Result<(), Error> {
        let id = self.id().await?;
        let at_s = at.as_secs_rounded_up();
        let body = self.schedule(id, at, why);
        let path = format!("/schedules/{}{at_s}", names_of(id));
        let answer = self.api.ask(Service::SCHEDULER, "POST", path, body).await?;
        match answer.code.as_str() {
            _ if answer.is_good() => confirmed(&read::<Value>(&answer)?, "ScheduleArn"),
            // One of this name switches the same on at the same time.
            "ConflictException" => Ok(()),
            "ValidationException" => Err(Error::new(format!(
                "the return of the event source mapping cannot be planned: EventBridge Scheduler refuses the request. May \
                 scheduler.amazonaws.com assume the role {}?",
                self.role
            ))),
            _ => {
                let needs = format!("scheduler:CreateSchedule, and iam:PassRole for {}", self.role);
                Err(answer.error("the return of the event source mapping cannot be planned", &needs))
            }
        }
    }

    fn schedule(&self, id: &str, at: Timestamp, why: &str) -> Value {
        let partition = self.function.split(':').nth(1).unwrap_or("aws");
        let why: String = why.chars().take(WHY_MAX / 4).collect();
        json!({
            "Description": why,
            "ScheduleExpression": format!("at({})", at.to_utc().trim_end_matches('Z')),
            "FlexibleTimeWindow": { "Mode": "OFF" },
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": format!("arn:{partition}:scheduler:::aws-sdk:lambda:updateEventSourceMapping"),
                "RoleArn": self.role,
                "Input": json!({ "Uuid": id, "Enabled": true }).to_string(),
            },
        })
    }

    /// Switches it on or off; off only where that is early enough before its return. While another change is under way, Lambda refuses it
    /// for the moment.
    async fn switch(&self, off_before: Option<Timestamp>) -> Result<(), Error> {
        let path = format!("{PATH}/{}", self.id().await?);
        let body = json!({ "Enabled": off_before.is_none() });
        let now = || match (self.api.clock.now(), off_before) {
            (now, Some(before)) if !is_early_enough(now, before) => {
                Err(Error::new("it is too late to switch the event source mapping off before its return"))
            }
            (now, _) => Ok(now),
        };
        let answer = self.api.ask_at(Service::LAMBDA, ("PUT", path, body), now).await?;
        if answer.is_good() {
            return confirmed(&read::<Value>(&answer)?, "UUID");
        }
        let error = answer.error("the event source mapping cannot be changed", "lambda:UpdateEventSourceMapping");
        Err(if is_in_use(&answer) { error.of_kind(ErrorKind::Unavailable) } else { error })
    }
}

impl Intake for Mapping<'_> {
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(self.find().await?.is_on()) })
    }

    fn plan_return<'b>(&'b self, at: Timestamp, why: &'b str) -> BoxFuture<'b, Result<(), Error>> {
        Box::pin(self.plan(at, why))
    }

    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async {
            let now = self.api.clock.now();
            Ok(Returns(self.api).of(Some(self.id().await?)).await?.iter().any(|planned| planned.at > now))
        })
    }

    fn switch_off(&self, before: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.switch(Some(before)))
    }

    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.switch(None))
    }
}

/// The planned returns of an account and Region.
#[derive(Debug, Clone, Copy)]
pub struct Returns<'a>(pub Api<'a>);

impl Returns<'_> {
    /// Lists the planned returns of a mapping, by its id, or of all.
    ///
    /// # Errors
    /// When the permission `scheduler:ListSchedules` is missing, or no answer comes.
    pub async fn of(&self, mapping: Option<&str>) -> Result<Vec<Return>, Error> {
        let prefix = mapping.map_or_else(|| RETURN_PREFIX.to_owned(), names_of);
        let (mut returns, mut token) = (Vec::new(), None::<String>);
        loop {
            let next = token.map(|token| format!("&NextToken={}", encoded(&token))).unwrap_or_default();
            let answer = self.ask("GET", format!("/schedules?MaxResults=100&NamePrefix={prefix}{next}")).await?;
            if !answer.is_good() {
                let what = "the returns of event source mappings cannot be listed";
                return Err(answer.error(what, "scheduler:ListSchedules"));
            }
            let page: Schedules = read(&answer)?;
            returns.extend(page.schedules.iter().filter_map(|named| Return::of_name(&named.name)));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(returns);
            }
        }
    }

    /// Returns who wanted it, where that can be found out.
    ///
    /// # Errors
    /// When the permission `scheduler:GetSchedule` is missing, or no answer comes.
    pub async fn why(&self, planned: &Return) -> Result<Option<String>, Error> {
        let answer = self.ask("GET", format!("/schedules/{}", planned.schedule)).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        if !answer.is_good() {
            return Err(answer.error("the return of an event source mapping cannot be read", "scheduler:GetSchedule"));
        }
        Ok(read::<Value>(&answer)?["Description"].as_str().map(str::to_owned))
    }

    /// Deletes a planned return: only where the mapping is to stay off.
    ///
    /// # Errors
    /// When the permission `scheduler:DeleteSchedule` is missing, or no answer comes.
    pub async fn delete(&self, planned: &Return) -> Result<(), Error> {
        let answer = self.ask("DELETE", format!("/schedules/{}", planned.schedule)).await?;
        match answer.is_good() || answer.status == 404 {
            true => Ok(()),
            false => {
                Err(answer.error("the return of an event source mapping cannot be deleted", "scheduler:DeleteSchedule"))
            }
        }
    }

    async fn ask(&self, method: &'static str, path: String) -> Result<Answer, Error> {
        self.0.ask(Service::SCHEDULER, method, path, Value::Null).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_schedule_tells_the_mapping_and_the_time() {
        let (id, at) = ("b1c2d3e4-0000-1111-2222-333344445555", Timestamp::from_millis(1_800_000_360_000));
        let name = format!("{}{}", names_of(id), at.as_secs_rounded_up());
        assert_eq!(name, "claimant-resume-b1c2d3e4000011112222333344445555-1800000360");
        assert!(name.len() <= 64);
        assert_eq!(Return::of_name(&name), Some(Return { mapping: id.to_owned(), at, schedule: name }));
        for other in ["claimant-resume-", "claimant-resume-abc-1", "claimant-0123", "other"] {
            assert_eq!(Return::of_name(other), None, "{other}");
        }
    }
}
