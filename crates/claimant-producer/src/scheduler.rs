//! Sends messages at a time of one's own, by schedules of EventBridge Scheduler.

use aws_sdk_scheduler::Client;
use aws_sdk_scheduler::config::retry::RetryConfig;
use aws_sdk_scheduler::error::BuildError;
use aws_sdk_scheduler::operation::get_schedule::GetScheduleOutput;
use aws_sdk_scheduler::types::{
    ActionAfterCompletion, DeadLetterConfig, FlexibleTimeWindow, FlexibleTimeWindowMode, ScheduleState, Target,
};
use claimant_aws::endpoints::not_of;
use claimant_core::{Clock as _, Error, Key, Message, SystemClock, Timestamp, Variables};

use crate::error::{SendError, SendErrorKind};
use crate::id;
use crate::outgoing::Outgoing;
use crate::schedule::{self, Schedule};
use crate::scheduler_request::{Fault, request};

/// Sends messages to one queue at a time of one's own, minutes or years ahead: by one-time schedules of EventBridge Scheduler.
/// Cheap to clone.
///
/// A schedule's name is made from the queue's URL and the message's key. So scheduling a message again makes no second one while
/// the first is there, and another message, time, role or dead-letter queue under its key is a conflict. A schedule is deleted when it
/// has sent; a message that is scheduled again after that is sent again, and the consumer's key absorbs it.
///
/// The service sends within a minute after the time, at least once, and tries for a day where SQS refuses or fails. What could not be
/// sent then goes to the queue of [`dead_letters`](Self::dead_letters), and is lost without one.
///
/// ```no_run
/// # mod claimant { pub use claimant_core::*; pub mod producer { pub use claimant_producer::*; } }
/// use claimant::producer::{Outgoing, Scheduled, Scheduler};
/// use claimant::{HandlerError, Key, Timestamp};
///
/// // When it is due is a fact of the order: each try asks for the same time.
/// async fn remind(scheduler: &Scheduler, order_id: &str, due_at: Timestamp) -> Result<(), HandlerError> {
///     let reminder = Outgoing::new(Key::new(format!("remind/{order_id}"))?, format!(r#"{{"order_id": "{order_id}"}}"#));
///     match scheduler.schedule(reminder, due_at).await? {
///         Scheduled::Created => println!("scheduled"),
///         Scheduled::AlreadyThere => println!("scheduled before"),
///     }
///     Ok(())
/// }
///
/// # async fn example() -> Result<(), HandlerError> {
/// let scheduler = Scheduler::from_env("REMINDERS_QUEUE_URL", "REMINDERS_ROLE_ARN").await?;
/// remind(&scheduler, "ord-1", Timestamp::from_millis(1_801_209_600_000)).await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Scheduler {
    client: Client,
    queue_url: String,
    role_arn: String,
    group: Option<String>,
    dead_letters: Option<String>,
}

/// What became of a message that was to be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheduled {
    /// There is a schedule for it now.
    Created,
    /// There was one already that sends the same at the same time; or the first of this call's requests made it, and its answer was lost.
    AlreadyThere,
}

/// What became of a schedule that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancelled {
    /// It is deleted. A message that it was sending at that moment may still arrive.
    Deleted,
    /// There was none: it never was, was cancelled before, or has sent its message.
    NotThere,
}

impl Scheduler {
    /// Creates a scheduler for the queue with this URL. The service sends in the name of this role, which `scheduler.amazonaws.com`
    /// may assume and which has `sqs:SendMessage` for the queue, and `kms:GenerateDataKey` and `kms:Decrypt` on its key where that is your
    /// own. The caller needs `scheduler:CreateSchedule`, `scheduler:GetSchedule`, `scheduler:DeleteSchedule` as far as it cancels, and
    /// `iam:PassRole` for that role. Its requests are not retried by the client, whatever its configuration says: three tries, in 20 s
    /// at most, are the scheduler's.
    #[must_use]
    pub fn new(client: Client, queue_url: impl Into<String>, role_arn: impl Into<String>) -> Self {
        // Of retries inside of one, only the last answer would be seen: a schedule that may be there would be said not to be.
        let client = Client::from_conf(client.config().to_builder().retry_config(RetryConfig::disabled()).build());
        let (queue_url, role_arn) = (queue_url.into(), role_arn.into());
        Self { client, queue_url, role_arn, group: None, dead_letters: None }
    }

    /// Returns a scheduler for the queue and the role that these variables hold, through the process's shared AWS configuration.
    ///
    /// # Errors
    /// When a variable is not set, or holds no queue's URL or no role's ARN; when an endpoint that is set for AWS [cannot be used](claimant_aws::config).
    pub async fn from_env(queue_url: &str, role_arn: &str) -> Result<Self, Error> {
        Self::from_variables(Variables::from_env(), queue_url, role_arn).await
    }

    /// Returns a scheduler as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(mut variables: Variables, queue_url: &str, role_arn: &str) -> Result<Self, Error> {
        variables.text_or_hint(queue_url, "give it the URL of the queue");
        let queue_url = claimant_aws::optional_queue_url(&mut variables, queue_url).unwrap_or_default();
        variables.text_or_hint(role_arn, "give it the ARN of the role in whose name messages are sent");
        let role = claimant_aws::optional_role_arn(&mut variables, role_arn).unwrap_or_default();
        variables.finish()?;
        Ok(Self::new(Client::new(claimant_aws::config().await?), queue_url, role))
    }

    /// Sets the schedule group: one that is there. Without this it is `default`. Names are unique within their group, so use the
    /// same group for a key each time.
    #[must_use]
    pub fn in_group(self, name: impl Into<String>) -> Self {
        Self { group: Some(name.into()), ..self }
    }

    /// Sets the standard queue, by its ARN, for messages that could not be sent for a day. The role needs for it what it needs for the
    /// queue itself.
    #[must_use]
    pub fn dead_letters(self, queue_arn: impl Into<String>) -> Self {
        Self { dead_letters: Some(queue_arn.into()), ..self }
    }

    /// Schedules a message to be sent at this time, in whole seconds, rounded up.
    ///
    /// One request, and a second where there is a schedule of this key already. Cancel safe in that scheduling the same again
    /// makes no second schedule.
    ///
    /// # Errors
    /// [`Refused`](SendErrorKind::Refused) where SQS or EventBridge Scheduler does not take the message, where it has a binary attribute
    /// or more than 256 KiB, or where its time has come; [`Conflict`](SendErrorKind::Conflict) where its key has another
    /// schedule, such as one of another role; [`Failed`](SendErrorKind::Failed) where the service throttles: schedule it again later;
    /// [`Unknown`](SendErrorKind::Unknown) where a try had no answer and no later one tells, or where there was a schedule of this key that
    /// could not be looked at, or is gone: schedule it again with the same key.
    pub async fn schedule(&self, message: Outgoing, at: Timestamp) -> Result<Scheduled, SendError> {
        let asked = self.asked(&message, at)?;
        // What AWS makes of a time that is over is not documented, and a message must not be lost by it.
        if at <= SystemClock.now() {
            let why =
                "its time has come: send it with a `Producer`. If it was scheduled before, it was sent by that, too";
            return Err(SendError::new(SendErrorKind::Refused, why));
        }
        self.create(&schedule::name(&self.queue_url, &message.deduplication_id), &asked, None).await
    }

    /// Schedules a message that was received from this queue to be sent to it again at this time, with the body, its producer's
    /// attributes, the group and the trace that it had. `now` is the caller's time.
    ///
    /// The schedule's name is made from the message's id, which is also the deduplication id of what it sends to a FIFO queue. One that is there
    /// already, for this message and any time after now, of the same role and dead-letter queue, is left as it is: so a message that is received
    /// again before it was deleted is not sent twice.
    ///
    /// # Errors
    /// As for [`schedule`](Self::schedule).
    pub async fn schedule_again(
        &self,
        message: &Message,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<Scheduled, SendError> {
        let mut again = Outgoing::received(message);
        let mut asked = self.asked(&again, at);
        // What dead letters left on it keeps no message from its schedule.
        while asked.is_err() && again.leave_one_out() {
            asked = self.asked(&again, at);
        }
        let asked = asked?;
        if at <= now {
            return Err(SendError::new(SendErrorKind::Refused, "its time has come: it is in its queue"));
        }
        self.create(&schedule::name_again(&self.queue_url, message.id().as_str()), &asked, Some(now)).await
    }

    fn asked(&self, message: &Outgoing, at: Timestamp) -> Result<Schedule, SendError> {
        let dead_letters = self.dead_letters.clone();
        Ok(Schedule { dead_letters, ..Schedule::new(message, &self.queue_url, &self.role_arn, at)? })
    }

    /// Creates a schedule. One that is there does the same, or `after` that at another time.
    async fn create(&self, name: &str, asked: &Schedule, after: Option<Timestamp>) -> Result<Scheduled, SendError> {
        let incomplete =
            |e: BuildError| SendError::new(SendErrorKind::Refused, format!("the schedule is incomplete: {e}"));
        let create = self
            .client
            .create_schedule()
            .name(name)
            .set_group_name(self.group.clone())
            .schedule_expression(&asked.expression)
            .flexible_time_window(
                FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().map_err(incomplete)?,
            )
            .action_after_completion(ActionAfterCompletion::Delete)
            .target(target(asked).map_err(incomplete)?);
        match request(name, || create.clone().send()).await {
            // What answers in the place of the service names none.
            Ok(created) if created.schedule_arn().is_empty() => Err(no_schedule()),
            Ok(_) => Ok(Scheduled::Created),
            Err(Fault::Conflict) => self.compare(name, asked, after).await,
            Err(fault) => Err(fault.error("the schedule group does not exist: create it, or leave it out")),
        }
    }

    /// Deletes the schedule of this key, so that its message is not sent.
    ///
    /// # Errors
    /// [`Refused`](SendErrorKind::Refused) where the caller may not do so; [`Failed`](SendErrorKind::Failed) where the service throttles;
    /// [`Unknown`](SendErrorKind::Unknown) where a try had no answer and no later one tells: cancel it again.
    pub async fn cancel(&self, key: &Key) -> Result<Cancelled, SendError> {
        let name = schedule::name(&self.queue_url, &id::of(key.as_str()));
        let delete = self.client.delete_schedule().name(&name).set_group_name(self.group.clone());
        match request(&name, || delete.clone().send()).await {
            Ok(_) => Ok(Cancelled::Deleted),
            Err(Fault::NotThere) => Ok(Cancelled::NotThere),
            Err(fault) => Err(fault.error("it is not there")),
        }
    }

    /// Looks at the schedule that has the name already.
    async fn compare(&self, name: &str, asked: &Schedule, after: Option<Timestamp>) -> Result<Scheduled, SendError> {
        let get = self.client.get_schedule().name(name).set_group_name(self.group.clone());
        let there = request(name, || get.clone().send()).await.map_err(|fault| match fault {
            // It has sent its message, or was cancelled, since the first request; or is still being deleted.
            Fault::NotThere => SendError::new(
                SendErrorKind::Unknown,
                "the schedule of this key was there and is gone; it may have sent the message: schedule it again with the same key",
            ),
            fault => match fault.error("it is not there") {
                error if error.kind() != SendErrorKind::Unknown => SendError::new(
                    SendErrorKind::Unknown,
                    format!(
                        "there is a schedule of this key, and it is not known whether it sends the same: schedule it again with \
                         the same key ({error})"
                    ),
                ),
                error => error,
            },
        })?;
        if there.arn().is_none() {
            return Err(no_schedule());
        }
        match of(&there).difference(asked, after) {
            None => Ok(Scheduled::AlreadyThere),
            Some(difference) => Err(SendError::new(
                SendErrorKind::Conflict,
                format!(
                    "there is a schedule of this key, {name}, and {difference}: cancel that one first, or give this message a \
                     key of its own"
                ),
            )),
        }
    }
}

/// Returns the error of a success that names no schedule.
fn no_schedule() -> SendError {
    SendError::new(SendErrorKind::Unknown, not_of("EventBridge Scheduler", "a success without a schedule's ARN"))
}

/// Returns what a schedule calls, in the form of a request.
fn target(asked: &Schedule) -> Result<Target, BuildError> {
    let dead_letters = asked.dead_letters.as_ref().map(|arn| DeadLetterConfig::builder().arn(arn).build());
    Target::builder()
        .arn(&asked.target)
        .role_arn(&asked.role_arn)
        .input(&asked.input)
        .set_dead_letter_config(dead_letters)
        .build()
}

/// Returns a schedule as the service shows it.
fn of(output: &GetScheduleOutput) -> Schedule {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let zone = output.schedule_expression_timezone().filter(|zone| *zone != "UTC");
    let target = output.target();
    Schedule {
        // Ours are in UTC. In another zone the same hour is another time.
        expression: text(output.schedule_expression()) + zone.unwrap_or_default(),
        target: text(target.map(Target::arn)),
        input: text(target.and_then(Target::input)),
        role_arn: text(target.map(Target::role_arn)),
        dead_letters: target.and_then(Target::dead_letter_config).and_then(DeadLetterConfig::arn).map(str::to_owned),
        enabled: output.state() != Some(&ScheduleState::Disabled),
    }
}
