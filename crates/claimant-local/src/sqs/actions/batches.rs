//! Batch actions: one answer per entry, the failed beside the successful.

use std::collections::BTreeSet;

use super::super::checks;
use super::super::fault::{Code, Fault};
use super::super::service::Sqs;
use super::super::settings::MESSAGE_BYTES_MAX;
use super::super::wire::{BatchAnswer, BatchRequest, DoneEntry, FailedEntry, ReceiptRequest, SendAnswer, SendRequest};
use super::messages;
use super::parameters::queue_name;

const ENTRIES_MAX: usize = 10;
const ENTRY_ID_LENGTH_MAX: usize = 80;

pub(super) fn send(
    sqs: &Sqs,
    request: BatchRequest<SendRequest>,
    trace: Option<&str>,
) -> Result<BatchAnswer<SendAnswer>, Fault> {
    let queue = queue_name(&request.queue_url)?;
    check_entries(sqs, queue, request.entries.iter().map(|entry| entry.id.as_str()))?;
    // For two faults of an entry AWS refuses the whole batch: this one, and below that of its group or deduplication.
    request.entries.iter().try_for_each(|entry| messages::check_no_lists("SendMessageBatch", entry))?;
    let message = |entry| messages::new_message(entry, trace);
    let entries: Vec<_> = request.entries.into_iter().map(|entry| (entry.id.clone(), message(entry))).collect();
    let sizes = entries.iter().filter_map(|(_, message)| message.as_ref().ok()).map(checks::size);
    let bytes: usize = sizes.sum();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(Fault::new(
            Code::BatchRequestTooLong,
            format!("Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes."),
        ));
    }
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    let attributes = &account.queue(queue)?.attributes;
    for message in entries.iter().filter_map(|(_, message)| message.as_ref().ok()) {
        checks::group_and_deduplication(message, attributes)
            .map_err(|fault| Fault { code: Code::InvalidParameterValue, ..fault })?;
    }
    let sent = entries.into_iter().map(|(id, message)| {
        let sent = message.and_then(|message| account.send(now_ms, queue, message));
        match sent {
            Ok(sent) => Ok(messages::send_answer(id, sent)),
            Err(fault) => Err((id, fault)),
        }
    });
    Ok(collect(sent))
}

pub(super) fn delete(sqs: &Sqs, request: BatchRequest<ReceiptRequest>) -> Result<BatchAnswer<DoneEntry>, Fault> {
    each_receipt(sqs, request, messages::delete_one)
}

pub(super) fn change_visibility(
    sqs: &Sqs,
    request: BatchRequest<ReceiptRequest>,
) -> Result<BatchAnswer<DoneEntry>, Fault> {
    each_receipt(sqs, request, messages::change_one)
}

fn each_receipt(
    sqs: &Sqs,
    request: BatchRequest<ReceiptRequest>,
    action: impl Fn(&Sqs, &str, &ReceiptRequest) -> Result<(), Fault>,
) -> Result<BatchAnswer<DoneEntry>, Fault> {
    let queue = queue_name(&request.queue_url)?;
    check_entries(sqs, queue, request.entries.iter().map(|entry| entry.id.as_str()))?;
    let done = request.entries.into_iter().map(|entry| match action(sqs, queue, &entry) {
        Ok(()) => Ok(DoneEntry { id: entry.id }),
        Err(fault) => Err((entry.id, fault)),
    });
    Ok(collect(done))
}

/// What refuses the batch as a whole.
fn check_entries<'a>(sqs: &Sqs, queue: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
    sqs.account().queue(queue)?;
    let ids: Vec<&str> = ids.collect();
    if ids.is_empty() {
        return Err(Fault::new(Code::EmptyBatchRequest, "There should be at least one entry in the batch request."));
    }
    if ids.len() > ENTRIES_MAX {
        return Err(Fault::new(
            Code::TooManyEntriesInBatchRequest,
            format!("Maximum number of entries per request are {ENTRIES_MAX}. You have sent {}.", ids.len()),
        ));
    }
    let mut seen = BTreeSet::new();
    for id in ids {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > ENTRY_ID_LENGTH_MAX || !id.chars().all(plain) {
            return Err(Fault::new(
                Code::InvalidBatchEntryId,
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at \
                 most 80 letters long.",
            ));
        }
        if !seen.insert(id) {
            return Err(Fault::new(Code::BatchEntryIdsNotDistinct, format!("Id {id} repeated.")));
        }
    }
    Ok(())
}

fn collect<T>(results: impl Iterator<Item = Result<T, (String, Fault)>>) -> BatchAnswer<T> {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(entry) => successful.push(entry),
            Err((id, fault)) => failed.push(FailedEntry {
                id,
                sender_fault: true,
                code: fault.code.query_code(),
                message: fault.message,
            }),
        }
    }
    BatchAnswer { successful, failed }
}
