//! A schedule, checked.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::arn;
use crate::clock::wall_clock_ms;
use crate::sqs::{AttributeValue, MessageAttribute, Sqs};

type Attributes = BTreeMap<String, MessageAttribute>;

/// The actions that a schedule may call here, after `arn:` and the partition of its role.
const SEND_MESSAGE: &str = "scheduler:::aws-sdk:sqs:sendMessage";
const UPDATE_MAPPING: &str = "scheduler:::aws-sdk:lambda:updateEventSourceMapping";

/// What a schedule calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    SendMessage,
    /// Switches the event source mapping of this id on or off.
    Switch {
        id: String,
        enabled: bool,
    },
}

impl Action {
    /// Reads what a target of a role in this partition calls, and the parameters of that, as JSON.
    fn read(target: &Value, partition: &str, sqs: &Sqs) -> Result<(Self, String), String> {
        let input = target["Input"].as_str().unwrap_or_default();
        let arn = target["Arn"].as_str().unwrap_or_default();
        let called = partition_of(arn).filter(|(own, _)| *own == partition);
        let json = if input.len() > INPUT_MAX_BYTES { None } else { serde_json::from_str(input).ok() };
        let json = json.ok_or_else(|| format!("Target.Input is not JSON, or has more than {INPUT_MAX_BYTES} bytes"));
        match (called, arn::local_queue_name(arn)) {
            (Some((_, SEND_MESSAGE)), _) => json.map(|_: Value| (Self::SendMessage, input.to_owned())),
            (Some((_, UPDATE_MAPPING)), _) => Ok((Self::switch(&json?)?, input.to_owned())),
            (Some(_), Some(queue)) => {
                let group = &target["SqsParameters"]["MessageGroupId"];
                Ok((Self::SendMessage, send_message(sqs.queue_url(queue), input, group)?))
            }
            _ => Err(format!(
                "the local scheduler has the targets arn:{partition}:{SEND_MESSAGE}, arn:{partition}:{UPDATE_MAPPING} and, with a role \
                 in arn:aws:, {}",
                arn::of_queue("NAME")
            )),
        }
    }

    fn switch(input: &Value) -> Result<Self, String> {
        let fields = input.as_object().map_or(0, Map::len);
        match (&input["Uuid"], &input["Enabled"]) {
            (Value::String(id), Value::Bool(enabled)) if fields == 2 => {
                Ok(Self::Switch { id: id.clone(), enabled: *enabled })
            }
            _ => Err("of an event source mapping, the local scheduler changes Enabled alone: Target.Input is \
                      {\"Uuid\": …, \"Enabled\": …}"
                .to_owned()),
        }
    }
}

/// Returns the request that sends this body: a queue as target is another way to write it.
fn send_message(url: String, body: &str, group: &Value) -> Result<String, String> {
    if body.is_empty() || body.len() > INPUT_MAX_BYTES {
        return Err(format!(
            "Target.Input, the message's body, has 1 to {INPUT_MAX_BYTES} bytes in the local scheduler"
        ));
    }
    let mut request = json!({ "QueueUrl": url, "MessageBody": body });
    if !group.is_null() {
        request["MessageGroupId"] = group.clone();
    }
    Ok(request.to_string())
}

/// Returns the partition of an ARN, and what follows it.
fn partition_of(arn: &str) -> Option<(&str, &str)> {
    arn.strip_prefix("arn:")?.split_once(':')
}

/// The longest name, in characters.
const NAME_LENGTH_MAX: usize = 64;

/// The longest description, in characters.
const DESCRIPTION_LENGTH_MAX: usize = 512;

/// The largest input.
const INPUT_MAX_BYTES: usize = 262_144;

/// A one-time schedule.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) at_ms: u64,
    pub(super) action: Action,
    /// The parameters of its action, as JSON.
    pub(super) input: String,
    pub(super) dead_letter_arn: Option<String>,
    pub(super) created_ms: u64,
    pub(super) enabled: bool,
    /// Whether it has run: it does so once.
    pub(super) ran: bool,
    pub(super) deletes_itself: bool,
    /// The request that made it, as it is shown.
    pub(super) request: Value,
}

impl Schedule {
    /// Reads a request. The error says what is wrong with it, or is not imitated here.
    pub(super) fn read(name: &str, request: Value, sqs: &Sqs) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |name: &str| (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.chars().all(plain);
        if !is_name(name) || !request["GroupName"].as_str().is_none_or(is_name) {
            return Err(format!("a name, of a group too, has 1 to {NAME_LENGTH_MAX} of 0-9, a-z, A-Z, -, _ and ."));
        }
        if request["Description"].as_str().is_some_and(|text| text.chars().count() > DESCRIPTION_LENGTH_MAX) {
            return Err(format!("a Description has {DESCRIPTION_LENGTH_MAX} characters at most"));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let target = &request["Target"];
        let expression = request["ScheduleExpression"].as_str().unwrap_or_default();
        let zone = request["ScheduleExpressionTimezone"].as_str().unwrap_or("UTC");
        let at_ms = match time(expression) {
            Some(at_ms) if zone == "UTC" => at_ms,
            None if zone == "UTC" && expression.starts_with("at(") => {
                return Err("ScheduleExpression is no time at(yyyy-mm-ddThh:mm:ss) that there is".to_owned());
            }
            _ => return Err("the local scheduler has at(yyyy-mm-ddThh:mm:ss) in UTC only".to_owned()),
        };
        if request["FlexibleTimeWindow"]["Mode"] != "OFF" {
            return Err("the local scheduler has FlexibleTimeWindow with the Mode OFF only".to_owned());
        }
        let role = target["RoleArn"].as_str().filter(|role| arn::is_role(role)).and_then(partition_of);
        let (partition, _) = role.ok_or("Target.RoleArn is not the ARN of a role")?;
        let dead_letter_arn = text(&target["DeadLetterConfig"]["Arn"]);
        if !dead_letter_arn.as_deref().is_none_or(arn::is_standard_queue) {
            return Err("Target.DeadLetterConfig.Arn is not the ARN of a standard queue".to_owned());
        }
        let (action, input) = Action::read(target, partition, sqs)?;
        Ok(Self {
            at_ms,
            action,
            input,
            dead_letter_arn,
            created_ms: wall_clock_ms(),
            enabled: request["State"] != "DISABLED",
            ran: false,
            deletes_itself: request["ActionAfterCompletion"] == "DELETE",
            request,
        })
    }

    /// When it runs, as the service writes it.
    fn scheduled_time(&self) -> String {
        let expression = self.request["ScheduleExpression"].as_str().unwrap_or_default();
        format!("{}Z", expression.trim_start_matches("at(").trim_end_matches(')'))
    }

    /// The attributes of the letter that is left where SQS refuses what it sends, as the service's user guide has them. Nothing is tried
    /// again here, and so no `EXHAUSTED_RETRY_CONDITION` is among them.
    pub(super) fn letter_attributes(&self, arn: &str, execution_id: &str, (code, why): (&str, &str)) -> Attributes {
        let partition = self.request["Target"]["Arn"].as_str().and_then(partition_of).map_or("aws", |(own, _)| own);
        let attributes = [
            ("ERROR_CODE", code),
            // SQS takes few control characters, and no non-characters; names of the message that it quotes can be long.
            (
                "ERROR_MESSAGE",
                &why.chars().take(WHY_MAX).map(|c| if is_plain(c) { c } else { ' ' }).collect::<String>(),
            ),
            ("EXECUTION_ID", execution_id),
            ("IS_PAYLOAD_TRUNCATED", "false"),
            ("RETRY_ATTEMPTS", "0"),
            ("SCHEDULED_TIME", &self.scheduled_time()),
            ("SCHEDULE_ARN", arn),
            ("TARGET_ARN", &format!("arn:{partition}:{SEND_MESSAGE}")),
        ];
        let attribute = |value: &str| MessageAttribute {
            data_type: "String".to_owned(),
            value: AttributeValue::Text(value.to_owned()),
        };
        attributes.into_iter().map(|(name, value)| (name.to_owned(), attribute(value))).collect()
    }

    /// The input with the service's keywords replaced, as they stand there.
    pub(super) fn input_of(&self, arn: &str, execution_id: &str) -> String {
        let keywords = [
            ("schedule-arn", arn),
            ("scheduled-time", &self.scheduled_time()),
            ("execution-id", execution_id),
            ("attempt-number", "1"),
        ];
        keywords.iter().fold(self.input.clone(), |input, (keyword, value)| {
            input.replace(&format!("<aws.scheduler.{keyword}>"), value)
        })
    }
}

/// The most characters of an error that a letter has.
const WHY_MAX: usize = 500;

fn is_plain(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

/// Returns the milliseconds since 1970 of `at(2027-01-31T08:00:00)`.
fn time(expression: &str) -> Option<u64> {
    let text = expression.strip_prefix("at(")?.strip_suffix(')')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, separator: char, digits: &[usize]| {
        let parts: Vec<_> = text.split(separator).collect();
        let fits = parts.len() == digits.len() && parts.iter().zip(digits).all(|(part, digits)| part.len() == *digits);
        parts.iter().map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>().filter(|_| fits)
    };
    let (date, time) = (numbers(date, '-', &[4, 2, 2])?, numbers(time, ':', &[2, 2, 2])?);
    let (year, month, day) = (date[0], date[1], date[2]);
    let fits = year >= 1970 && (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    let days: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum::<u64>()
        + (1..month).map(|month| days_of(year, month)).sum::<u64>()
        + day.checked_sub(1)?;
    let fits = fits && time[0] < 24 && time[1] < 60 && time[2] < 60;
    fits.then_some((days * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]) * 1_000)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn expressions_are_times_in_utc() {
        for (expression, wanted) in [
            ("at(1970-01-01T00:00:00)", Some(0)),
            ("at(2000-02-29T23:59:59)", Some(951_868_799_000)),
            ("at(2027-01-29T08:00:00)", Some(1_801_209_600_000)),
            ("at(9999-12-31T23:59:59)", Some(253_402_300_799_000)),
            ("at(2027-02-29T08:00:00)", None),
            ("at(2027-13-01T08:00:00)", None),
            ("at(2027-1-1T08:00:00)", None),
            ("at(2027-01-00T08:00:00)", None),
            ("at(2027-01-01T24:00:00)", None),
            ("at(2027-01-01T08:00:00Z)", None),
            ("at(2027-01-01 08:00:00)", None),
            ("at(1969-12-31T23:59:59)", None),
            ("rate(5 minutes)", None),
            ("", None),
        ] {
            assert_eq!(time(expression), wanted, "{expression}");
        }
    }
}
