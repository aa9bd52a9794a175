//! Plans which messages are sent next, and in which batch. Pure.

use std::collections::HashSet;

use crate::check::{self, BYTES_MAX};
use crate::error::{SendError, SendErrorKind};
use crate::outgoing::Outgoing;
use crate::sent::Sent;

/// The most messages of a batch.
pub(crate) const BATCH_MAX: usize = 10;

/// The most batches in flight at once.
pub(crate) const REQUESTS_MAX: usize = 8;

/// How often a message is tried.
pub(crate) const TRIES_MAX: u32 = 5;

/// The result of one try.
#[derive(Debug, Clone)]
pub(crate) enum TryResult {
    Sent(Sent),
    /// It can be tried again; this is the error if it is not.
    Again(SendError),
    /// The whole request was refused, for this reason; possibly because of another message, so this one is tried alone.
    RequestRefused(SendError),
    Refused(SendError),
}

/// Messages to send, each with its result once it has one.
#[derive(Debug)]
pub(crate) struct Plan {
    messages: Vec<Planned>,
    /// Whether groups stay in their order.
    ordered: bool,
}

#[derive(Debug)]
struct Planned {
    message: Outgoing,
    tries: u32,
    /// Whether it has a request for itself.
    alone: bool,
    /// The error of a try that may have sent it.
    unknown: Option<SendError>,
    result: Option<Result<Sent, SendError>>,
}

impl Plan {
    /// On a FIFO queue (`ordered`), a message without a group gets its key's own.
    pub(crate) fn new(messages: impl IntoIterator<Item = Outgoing>, ordered: bool) -> Self {
        let planned = |mut message: Outgoing| {
            if ordered && message.group.is_none() {
                message.group = Some(message.deduplication_id.clone());
            }
            Planned { message, tries: 0, alone: false, unknown: None, result: None }
        };
        let mut plan = Self { messages: messages.into_iter().map(planned).collect(), ordered };
        for index in 0..plan.messages.len() {
            let planned = &plan.messages[index];
            if let (None, Err(error)) = (&planned.result, check::message(&planned.message, ordered)) {
                plan.end(index, Err(error));
            }
        }
        plan
    }

    pub(crate) fn message(&self, index: usize) -> &Outgoing {
        &self.messages[index].message
    }

    /// Returns the batches to send now, by the indexes of their messages; none when all is done.
    ///
    /// An ordered group has at most one message in flight: SQS accepts and refuses the messages of a batch one by one, so that of
    /// two in one batch the second could be in the queue without the first.
    pub(crate) fn next_batches(&self) -> Vec<Vec<usize>> {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let (mut open, mut open_bytes) = (Vec::new(), 0);
        let mut groups = HashSet::new();
        for (index, planned) in self.messages.iter().enumerate().filter(|(_, planned)| planned.result.is_none()) {
            if self.ordered && !groups.insert(planned.message.group.as_deref()) {
                continue;
            }
            let bytes = planned.message.bytes();
            if planned.alone {
                batches.push(vec![index]);
            } else {
                if open.len() == BATCH_MAX || open_bytes + bytes > BYTES_MAX {
                    batches.push(std::mem::take(&mut open));
                    open_bytes = 0;
                }
                open.push(index);
                open_bytes += bytes;
            }
            if batches.len() >= REQUESTS_MAX {
                batches.truncate(REQUESTS_MAX);
                return batches;
            }
        }
        batches.extend((!open.is_empty()).then_some(open));
        batches
    }

    /// Applies the result of one message's try; returns whether to try it again, after a backoff.
    pub(crate) fn apply(&mut self, index: usize, result: TryResult) -> bool {
        let planned = &mut self.messages[index];
        planned.tries += 1;
        if let TryResult::Again(error) = &result
            && error.kind() == SendErrorKind::Unknown
        {
            planned.unknown = Some(error.clone());
        }
        let result = match result {
            TryResult::Sent(sent) => Ok(sent),
            TryResult::Again(_) if planned.tries < TRIES_MAX => return true,
            TryResult::RequestRefused(_) if !planned.alone => {
                planned.alone = true;
                return false;
            }
            // What may be in the queue is not said not to be, whatever a later try came to.
            TryResult::Again(error) | TryResult::RequestRefused(error) | TryResult::Refused(error) => {
                Err(planned.unknown.take().unwrap_or(error))
            }
        };
        self.end(index, result);
        false
    }

    /// Ends a message; one that is not sent holds back what follows in its group.
    fn end(&mut self, index: usize, result: Result<Sent, SendError>) {
        let failed = result.is_err();
        self.messages[index].result = Some(result);
        if !(failed && self.ordered) {
            return;
        }
        let group = self.messages[index].message.group.clone();
        for later in &mut self.messages[index + 1..] {
            if later.message.group == group {
                let why = "an earlier message of its group was not sent: send that one first, then this one";
                later.result = Some(Err(SendError::new(SendErrorKind::HeldBack, why)));
            }
        }
    }

    /// Returns the result of each message, in order.
    pub(crate) fn results(self) -> Vec<Result<Sent, SendError>> {
        let result = |planned: Planned| planned.result.expect("called only when no batch is left to be sent");
        self.messages.into_iter().map(result).collect()
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Key;

    use super::*;

    /// Messages as `key/group/KiB`.
    fn plan(messages: &str, ordered: bool) -> Plan {
        let message = |text: &str| {
            let mut parts = text.split('/');
            let (key, group, kib) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            Outgoing::new(Key::new(key).unwrap(), "x".repeat(kib.parse::<usize>().unwrap() * 1_024)).group(group)
        };
        Plan::new(messages.split_whitespace().map(message), ordered)
    }

    fn error(kind: SendErrorKind) -> SendError {
        SendError::new(kind, "no luck")
    }

    #[test]
    fn batches_are_full_but_no_larger_than_sqs_takes() {
        let rows: [(&str, bool, &[&[usize]]); 6] = [
            ("", true, &[]),
            ("a/g/1 b/g/1 c/h/1", false, &[&[0, 1, 2]]),
            ("a/g/1 b/g/1 c/h/1", true, &[&[0, 2]]),
            ("a/g/512 b/h/512 c/i/1", false, &[&[0, 1], &[2]]),
            ("a/g/1 b/h/1024 c/i/1", true, &[&[0], &[1], &[2]]),
            ("a/g/1025 b/g/1 c/h/1", true, &[&[2]]),
        ];
        for (messages, ordered, batches) in rows {
            assert_eq!(plan(messages, ordered).next_batches(), batches, "{messages} {ordered}");
        }
        let many: String = (0..95).map(|n| format!("k{n}/g/1 ")).collect();
        let batches = plan(&many, false).next_batches();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [BATCH_MAX; REQUESTS_MAX]);
    }

    #[test]
    fn a_group_waits_for_its_first_message() {
        let mut plan = plan("a/g/1 b/g/1 c/h/1 d/g/1", true);
        let sent = || TryResult::Sent(Sent { message_id: "m".into(), sequence_number: None });
        assert!(plan.apply(0, TryResult::Again(error(SendErrorKind::Failed))));
        assert!(!plan.apply(2, sent()));
        assert_eq!(plan.next_batches(), [[0]]);
        plan.apply(0, sent());
        assert_eq!(plan.next_batches(), [[1]]);
        plan.apply(1, TryResult::Refused(error(SendErrorKind::Refused)));
        assert!(plan.next_batches().is_empty());
        let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
        assert_eq!(kinds, [None, Some(SendErrorKind::Refused), None, Some(SendErrorKind::HeldBack)]);
    }

    #[test]
    fn what_may_be_sent_stays_unknown_whatever_comes_later() {
        for last in [SendErrorKind::Failed, SendErrorKind::Refused] {
            let mut plan = plan("a/g/1 b/h/1", false);
            assert!(plan.apply(0, TryResult::Again(error(SendErrorKind::Unknown))));
            for index in 0..2 {
                assert!(!plan.apply(index, TryResult::Refused(error(last))));
            }
            let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
            assert_eq!(kinds, [Some(SendErrorKind::Unknown), Some(last)]);
        }
    }

    #[test]
    fn what_was_refused_together_is_tried_alone_and_tries_end() {
        let mut plan = plan("a/g/1 b/h/1", false);
        for index in [0, 1] {
            assert!(!plan.apply(index, TryResult::RequestRefused(error(SendErrorKind::Refused))));
        }
        assert_eq!(plan.next_batches(), [[0], [1]]);
        plan.apply(0, TryResult::RequestRefused(error(SendErrorKind::Refused)));
        assert_eq!(plan.next_batches(), [[1]]);
        let again: Vec<_> =
            (1..TRIES_MAX).map(|_| plan.apply(1, TryResult::Again(error(SendErrorKind::Unknown)))).collect();
        assert_eq!(again, [true, true, true, false]);
        assert!(plan.next_batches().is_empty());
    }
}
