//! SQS's requests, as far as claimant makes them, over the queue of the run.

use serde_json::{Value, json};

use crate::history::{Event, InvocationNo};
use crate::mutant::Mutant;
use crate::sqs::Expired;
use crate::world::World;

/// The code for a message that is another owner's to hide, or was deleted.
const EXPIRED: &str = "InvalidParameterValue";

/// Carries out one request.
///
/// # Panics
/// On a request that is none of those that claimant makes.
pub fn serve(world: &World, invocation: Option<InvocationNo>, operation: &str, body: &Value) -> (u16, Value) {
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
    let copy = state.sqs.send_dead(text(&request["MessageBody"]), group);
    state.note(Event::Lettered { id, copy: copy.clone() });
    json!({ "Id": request["Id"], "MessageId": copy, "MD5OfMessageBody": "" })
}

fn error() -> Value {
    json!({ "__type": format!("com.amazonaws.sqs#{EXPIRED}"), "message": "The receipt handle has expired." })
}
