//! Messages that come back later than SQS can hide them: one-time schedules of EventBridge Scheduler send them to their queue again. Part
//! of a program only with the feature `scheduler`.

use claimant_core::Variables;

const ROLE: &str = "CLAIMANT_SCHEDULE_ROLE_ARN";
const DEAD_LETTERS: &str = "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN";

/// In whose name messages are sent, and where to if that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleSettings {
    pub(crate) role_arn: String,
    pub(crate) dead_letter_arn: String,
}

impl ScheduleSettings {
    /// Reads the settings: both, or none. Without a queue for what cannot be sent, that would be lost a day later.
    pub(crate) fn read(variables: &mut Variables) -> Option<Self> {
        let (role, dead_letters) = (variables.optional_text(ROLE), variables.optional_text(DEAD_LETTERS));
        let dead_letter_arn = match (role, dead_letters) {
            (None, None) => return None,
            (Some(_), Some(dead_letter_arn)) => dead_letter_arn,
            (role, _) => {
                let missing = if role.is_none() { ROLE } else { DEAD_LETTERS };
                variables.fault(format!("{missing} is not set: {ROLE} and {DEAD_LETTERS} are needed together"));
                return None;
            }
        };
        let role_arn = claimant_aws::optional_role_arn(variables, ROLE);
        if !claimant_aws::is_standard_queue_arn(&dead_letter_arn) {
            let example = "arn:aws:sqs:eu-west-1:123456789012:name";
            variables.fault(format!(
                "{DEAD_LETTERS} is {dead_letter_arn:?}; a standard queue's ARN is needed, such as {example}"
            ));
        }
        if !cfg!(feature = "scheduler") {
            variables.fault(format!(
                "{ROLE} is set, and this program has no schedules: add the feature `scheduler` of the crate `claimant`"
            ));
        }
        role_arn.map(|role_arn| Self { role_arn, dead_letter_arn })
    }
}

#[cfg(feature = "scheduler")]
pub(crate) use with::Schedules;
#[cfg(not(feature = "scheduler"))]
pub(crate) use without::Schedules;

#[cfg(feature = "scheduler")]
mod with {
    use std::time::Duration;

    use aws_config::SdkConfig;
    use aws_sdk_scheduler::Client;
    use claimant_core::{Confirmation, SendAgain};
    use claimant_producer::Scheduler;
    use futures_util::stream::{self, StreamExt as _};
    use tokio::time::{Instant, timeout_at};

    use super::ScheduleSettings;
    use crate::event::Batch;

    /// Requests in flight at once. A Region takes hundreds of new schedules a second.
    const REQUESTS_MAX: usize = 32;

    /// What makes schedules.
    pub(crate) struct Schedules {
        client: Client,
        settings: ScheduleSettings,
    }

    impl Schedules {
        pub(crate) fn new(settings: &ScheduleSettings, config: &SdkConfig) -> Self {
            Self { client: Client::new(config), settings: settings.clone() }
        }

        /// Schedules messages of this batch, each within this time, and returns whether the schedule of each is known to be there.
        pub(crate) async fn send_again(
            &self,
            batch: &Batch,
            messages: &[SendAgain],
            within: Duration,
        ) -> Vec<Confirmation> {
            let Some(source) = &batch.source else { return Vec::new() };
            let ScheduleSettings { role_arn, dead_letter_arn } = &self.settings;
            let scheduler =
                &Scheduler::new(self.client.clone(), &source.url, role_arn).dead_letters(dead_letter_arn.as_str());
            // All have the same time, which those that wait for others use up as well.
            let by = Instant::now() + within;
            let requests: Vec<_> = messages.iter().map(|again| one(scheduler, batch, *again, by)).collect();
            stream::iter(requests).buffered(REQUESTS_MAX).collect().await
        }
    }

    async fn one(scheduler: &Scheduler, batch: &Batch, again: SendAgain, by: Instant) -> Confirmation {
        let Some(message) = batch.messages.get(again.index) else { return Confirmation::Unconfirmed };
        let now = again.at.minus(again.after);
        let error = match timeout_at(by, scheduler.schedule_again(message, again.at, now)).await {
            Ok(Ok(_)) => return Confirmation::Confirmed,
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                "EventBridge Scheduler gave no answer before the report was due: can the function reach it?".to_owned()
            }
        };
        tracing::warn!(message_id = %message.id(), error, "message is not known to be scheduled to be sent again");
        Confirmation::Unconfirmed
    }
}

#[cfg(not(feature = "scheduler"))]
mod without {
    use std::time::Duration;

    use aws_config::SdkConfig;
    use claimant_core::{Confirmation, SendAgain};

    use super::ScheduleSettings;
    use crate::event::Batch;

    /// Nothing makes schedules here: settings that ask for them were refused.
    pub(crate) struct Schedules;

    impl Schedules {
        pub(crate) fn new(_: &ScheduleSettings, _: &SdkConfig) -> Self {
            Self
        }

        #[expect(clippy::unused_async, reason = "it awaits with the feature")]
        pub(crate) async fn send_again(&self, _: &Batch, _: &[SendAgain], _: Duration) -> Vec<Confirmation> {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_ROLE: &str = "arn:aws:iam::123456789012:role/send";
    const A_QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:unsent";

    fn read(vars: &[(&str, &str)]) -> Result<Option<ScheduleSettings>, String> {
        let mut variables = Variables::new(vars.iter().copied()).refuse_unknown();
        let settings = ScheduleSettings::read(&mut variables);
        variables.finish().map(|()| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn both_are_set_or_none() {
        assert_eq!(read(&[]), Ok(None));
        let both = read(&[(ROLE, A_ROLE), (DEAD_LETTERS, A_QUEUE)]);
        match cfg!(feature = "scheduler") {
            true => assert_eq!(both.unwrap().unwrap().dead_letter_arn, A_QUEUE),
            false => assert!(both.unwrap_err().contains("the feature `scheduler`")),
        }
        for (vars, wanted) in [
            ([(ROLE, A_ROLE), ("PATH", "/bin")], "CLAIMANT_SCHEDULE_DEAD_LETTER_ARN is not set"),
            ([(DEAD_LETTERS, A_QUEUE), ("PATH", "/bin")], "CLAIMANT_SCHEDULE_ROLE_ARN is not set"),
            ([(ROLE, "send"), (DEAD_LETTERS, A_QUEUE)], "CLAIMANT_SCHEDULE_ROLE_ARN is \"send\""),
            ([(ROLE, "arn:aws:x::1:role/y"), (DEAD_LETTERS, A_QUEUE)], "a role's ARN is needed"),
            ([(ROLE, "arn:aws:iam::123456789012:role/"), (DEAD_LETTERS, A_QUEUE)], "a role's ARN is needed"),
            ([(ROLE, "arn:aws:iam::1:role/send"), (DEAD_LETTERS, A_QUEUE)], "a role's ARN is needed"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs:eu-west-1:123456789012:q.fifo")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "https://sqs")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs:eu-west-1:123456789012")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs:eu-west-1:123456789012:")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs:eu-west-1:1:q")], "a standard queue's ARN"),
            ([(ROLE, A_ROLE), (DEAD_LETTERS, "arn:aws:sqs:eu-west-1:123456789012:a b")], "a standard queue's ARN"),
        ] {
            let said = read(&vars).unwrap_err();
            assert!(said.contains(wanted), "{wanted} in {said}");
        }
    }
}
