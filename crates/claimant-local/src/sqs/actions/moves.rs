//! Message move tasks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::super::fault::{Code, Fault};
use super::super::move_task::{LISTED_MAX, MoveStatus, MoveTask, PACE_MAX_PER_S};
use super::super::service::Sqs;
use super::super::wire::{CancelAnswer, ListedTask, MoveRequest, TaskAnswer, TasksAnswer};
use super::parameters::bounded;
use crate::arn;

/// What a task's handle says, in base64.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Handle {
    task_id: String,
    source_arn: String,
}

pub(super) fn start(sqs: &Sqs, request: MoveRequest) -> Result<TaskAnswer, Fault> {
    let pace = bounded("MaxNumberOfMessagesPerSecond", request.max_number_of_messages_per_second, 1..=PACE_MAX_PER_S)?;
    let source = source_of(&request)?;
    let destination = request.destination_arn.as_deref();
    let destination = destination.map(|arn| name_of("DestinationArn", arn)).transpose()?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    let task_id = account.start_move(now_ms, source, destination, pace)?;
    Ok(TaskAnswer { task_handle: handle_of(&task_id, source) })
}

pub(super) fn list(sqs: &Sqs, request: MoveRequest) -> Result<TasksAnswer, Fault> {
    let max = bounded("MaxResults", request.max_results, 1..=10)?.unwrap_or(1);
    let max = usize::try_from(max).map_or(LISTED_MAX, |max| max.min(LISTED_MAX));
    let source = source_of(&request)?;
    let account = sqs.account();
    let tasks = account.moves_of(source)?;
    Ok(TasksAnswer { results: tasks.into_iter().take(max).map(listed).collect() })
}

pub(super) fn cancel(sqs: &Sqs, request: MoveRequest) -> Result<CancelAnswer, Fault> {
    if request.task_handle.is_empty() {
        return Err(Fault::missing("TaskHandle"));
    }
    let invalid = || Fault::new(Code::InvalidParameterValue, "Value for parameter TaskHandle is invalid.");
    let json = STANDARD.decode(&request.task_handle).map_err(|_| invalid())?;
    let handle: Handle = serde_json::from_slice(&json).map_err(|_| invalid())?;
    arn::queue_name(&handle.source_arn).ok_or_else(invalid)?;
    let source = name_of("SourceArn", &handle.source_arn)?;
    let moved = sqs.account().cancel_move(source, &handle.task_id)?;
    Ok(CancelAnswer { approximate_number_of_messages_moved: moved })
}

fn listed(task: &MoveTask) -> ListedTask {
    let running = task.status == MoveStatus::Running;
    let (status, failure_reason) = match task.status {
        MoveStatus::Running => ("RUNNING", None),
        MoveStatus::Completed => ("COMPLETED", None),
        MoveStatus::Cancelled => ("CANCELLED", None),
        MoveStatus::Failed { reason } => ("FAILED", Some(reason)),
    };
    ListedTask {
        task_handle: running.then(|| handle_of(&task.id, &task.source)),
        status,
        source_arn: arn::of_queue(&task.source),
        destination_arn: task.destination.as_deref().map(arn::of_queue),
        max_number_of_messages_per_second: task.pace_per_s,
        approximate_number_of_messages_moved: task.moved,
        approximate_number_of_messages_to_move: task.to_move,
        failure_reason,
        started_timestamp: task.started_ms,
    }
}

fn handle_of(task_id: &str, source: &str) -> String {
    let handle = Handle { task_id: task_id.to_owned(), source_arn: arn::of_queue(source) };
    STANDARD.encode(serde_json::to_vec(&handle).expect("two texts always serialise"))
}

fn source_of(request: &MoveRequest) -> Result<&str, Fault> {
    if request.source_arn.is_empty() {
        return Err(Fault::missing("SourceArn"));
    }
    name_of("SourceArn", &request.source_arn)
}

/// The name of a queue of this account and Region; there are no others.
fn name_of<'a>(parameter: &str, arn: &'a str) -> Result<&'a str, Fault> {
    if arn::queue_name(arn).is_none() {
        let reason = "You must use this format: arn:aws:sqs:<region>:<account_id>:<queue_name>.";
        return Err(Fault::invalid_parameter(parameter, reason));
    }
    arn::local_queue_name(arn).ok_or_else(|| Fault::not_found(parameter))
}
