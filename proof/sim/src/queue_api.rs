//! SQS's requests, as far as claimant makes them, over the queue of the run.

use aws_smithy_types::date_time::{DateTime, Format};
use serde_json::{Value, json};

use crate::event::{MESSAGE_ID, delivered};
use crate::history::{Event, InvocationNo};
use crate::mutant::Mutant;
use crate::sqs::{Expired, Message, Scheduled};
use crate::world::{BEGIN_MS, World};

/// The code for a message that is another owner's to hide, or was deleted.
const EXPIRED: &str = "InvalidParameterValue";

/// How many entries SQS takes in one request.
const ENTRIES_MAX: usize = 10;

/// The role that schedules take on.
pub const SCHEDULE_ROLE_ARN: &str = "arn:aws:iam::123456789012:role/schedules";

/// The dead-letter queue of schedules.
pub const UNSENT_ARN: &str = "arn:aws:sqs:us-east-1:123456789012:unsent";

/// Carries out one request, but for these of its entries (by the bits), which are refused for want of capacity.
///
/// # Panics
/// On a request that is none of those that claimant makes.
pub fn serve_some(
    world: &World,
    invocation: Option<InvocationNo>,
    operation: &str,
    body: &Value,
    refused: u32,
) -> (u16, Value) {
    let Some(entries) = body["Entries"].as_array().filter(|entries| entries.len() <= ENTRIES_MAX) else {
        return serve(world, invocation, operation, body);
    };
    let entries = entries.iter().cloned().enumerate();
    let (refused, kept): (Vec<_>, Vec<_>) = entries.partition(|(place, _)| refused >> place & 1 == 1);
    let kept: Vec<_> = kept.into_iter().map(|(_, entry)| entry).collect();
    let (status, mut answer) = serve(world, invocation, operation, &json!({ "Entries": kept }));
    if let Some(failed) = answer["Failed"].as_array_mut() {
        failed.extend(
            refused
                .iter()
                .map(|(_, entry)| json!({ "Id": entry["Id"], "SenderFault": false, "Code": "InternalError" })),
        );
    }
    (status, answer)
}

/// Carries out one request.
///
/// # Panics
/// On a request that is none of those that claimant makes.
pub fn serve(world: &World, invocation: Option<InvocationNo>, operation: &str, body: &Value) -> (u16, Value) {
    if body["Entries"].as_array().is_some_and(|entries| entries.len() > ENTRIES_MAX) {
        return (400, refusal("com.amazonaws.sqs#TooManyEntriesInBatchRequest"));
    }
    match operation {
        "ChangeMessageVisibility" => match hide(world, invocation, body) {
            Ok(()) => (200, json!({})),
            Err(Expired) => (400, error()),
        },
        "ChangeMessageVisibilityBatch" => {
            let (mut successful, mut failed) = (Vec::new(), Vec::new());
            for entry in body["Entries"].as_array().into_iter().flatten() {
                match hide(world, invocation, entry) {
                    Ok(()) => successful.push(json!({ "Id": entry["Id"] })),
                    Err(Expired) => {
                        failed.push(json!({ "Id": entry["Id"], "SenderFault": true, "Code": EXPIRED }));
                    }
                }
            }
            (200, json!({ "Successful": successful, "Failed": failed }))
        }
        "DeleteMessageBatch" => {
            let entries = body["Entries"].as_array().into_iter().flatten();
            let deleted = entries.map(|entry| delete(world, invocation, entry)).collect::<Vec<_>>();
            (200, json!({ "Successful": deleted, "Failed": [] }))
        }
        "SendMessageBatch" => {
            let entries = body["Entries"].as_array().into_iter().flatten();
            (200, json!({ "Successful": entries.map(|entry| send(world, entry)).collect::<Vec<_>>(), "Failed": [] }))
        }
        "CreateSchedule" => schedule(world, invocation, body),
        "GetSchedule" => {
            let state = world.state();
            let scheduled = state.sqs.scheduled(body["Name"].as_str().unwrap_or_default());
            match scheduled {
                Some(scheduled) => (200, serde_json::from_str(&scheduled.request).unwrap_or_default()),
                None => (404, refusal("ResourceNotFoundException")),
            }
        }
        other => panic!("the simulated SQS does not know {other}"),
    }
}

fn hide(world: &World, invocation: Option<InvocationNo>, request: &Value) -> Result<(), Expired> {
    if world.mutant == Some(Mutant::VisibilityForgotten) {
        return Ok(());
    }
    let receipt = request["ReceiptHandle"].as_str().unwrap_or_default();
    let for_s = request["VisibilityTimeout"].as_u64().unwrap_or_default();
    let mut state = world.state();
    let now = state.now_ms();
    let hidden = state.sqs.hide(now, receipt, for_s);
    let id = receipt.split('/').next().unwrap_or_default().to_owned();
    state.note(Event::Hidden { invocation, id, for_s, done: hidden.is_ok() });
    hidden
}

/// SQS says so of a receipt handle that is too old as well.
fn delete(world: &World, invocation: Option<InvocationNo>, request: &Value) -> Value {
    let receipt = request["ReceiptHandle"].as_str().unwrap_or_default();
    let mut state = world.state();
    let now = state.now_ms();
    let done = state.sqs.delete(now, receipt);
    let id = receipt.split('/').next().unwrap_or_default().to_owned();
    if let Some(invocation) = invocation {
        state.note(Event::Deleted { invocation, id, done });
    }
    json!({ "Id": request["Id"] })
}

fn send(world: &World, request: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = text(&request["MessageAttributes"]["claimant-message-id"]["StringValue"]);
    if world.mutant == Some(Mutant::LettersUnconfirmed) {
        return json!({ "Id": request["Id"], "MessageId": "none", "MD5OfMessageBody": "" });
    }
    let mut state = world.state();
    let group = request["MessageGroupId"].as_str().and_then(|group| group.strip_prefix('g')?.parse().ok());
    let body = text(&request["MessageBody"]);
    // What has left its queue is done, or dead, by itself.
    let whole = |message: &Message| delivered(world, message) == body && message.group == group;
    let whole = state.sqs.message(&id).is_none_or(whole);
    let copy = state.sqs.send_dead(body, group);
    state.note(Event::Lettered { id, copy: copy.clone(), whole });
    json!({ "Id": request["Id"], "MessageId": copy, "MD5OfMessageBody": "" })
}

fn schedule(world: &World, invocation: Option<InvocationNo>, request: &Value) -> (u16, Value) {
    if world.mutant == Some(Mutant::SchedulesUnconfirmed) {
        return (200, json!({ "ScheduleArn": "none" }));
    }
    let target = &request["Target"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let input: Value = serde_json::from_str(&text(&target["Input"])).unwrap_or_default();
    let group = input["MessageGroupId"].as_str().and_then(|group| group.strip_prefix('g')?.parse().ok());
    let id = text(&input["MessageAttributes"][MESSAGE_ID]["StringValue"]);
    // Every schedule of a message has what the settings say, and a time.
    let at_ms = at_ms(&text(&request["ScheduleExpression"]))
        .filter(|_| target["RoleArn"] == SCHEDULE_ROLE_ARN && target["DeadLetterConfig"]["Arn"] == UNSENT_ARN);
    let Some(at_ms) = at_ms else {
        world.state().note(Event::ScheduledWrongly { id });
        return (400, refusal("ValidationException"));
    };
    let name = text(&request["Name"]);
    let body = text(&input["MessageBody"]);
    let mut state = world.state();
    let asked = request.to_string();
    let again = state.sqs.scheduled(&name).is_some_and(|there| there.request == asked);
    let scheduled = Scheduled { at_ms, id: id.clone(), body, group, request: asked };
    if !again && !state.sqs.schedule(&name, scheduled) {
        state.note(Event::ScheduledAlready { id });
        return (409, refusal("ConflictException"));
    }
    if !again {
        state.note(Event::Scheduled { invocation, id, name, at_ms });
    }
    (200, json!({ "ScheduleArn": "arn" }))
}

/// The time of `at(2027-01-31T08:00:00)` since the beginning of the run.
fn at_ms(expression: &str) -> Option<u64> {
    let text = expression.strip_prefix("at(")?.strip_suffix(')')?;
    let at = DateTime::from_str(&format!("{text}Z"), Format::DateTime).ok()?.to_millis().ok()?;
    Some(u64::try_from(at).ok()?.saturating_sub(BEGIN_MS))
}

fn refusal(code: &str) -> Value {
    json!({ "__type": code, "Message": "simulated" })
}

fn error() -> Value {
    json!({ "__type": format!("com.amazonaws.sqs#{EXPIRED}"), "message": "The receipt handle has expired." })
}
