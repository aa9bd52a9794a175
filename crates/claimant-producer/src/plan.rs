//! Plans which messages are sent next, and in which batch. Pure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use claimant_aws::sqs::MESSAGE_MAX_BYTES;
use tokio::time::Instant;

use crate::backoff::{BACKOFF_BASE_MS, DOUBLINGS_MAX};
use crate::check;
use crate::error::{SendError, SendErrorKind};
use crate::outgoing::Outgoing;
use crate::sent::Sent;

/// The most messages of a batch.
pub(crate) const BATCH_MAX: usize = 10;

/// The most batches in flight at once.
pub(crate) const REQUESTS_MAX: usize = 8;

/// The most payloads that are written at once. All of them share one line and one limit of time, so that with too many none gets through.
const WRITES_MAX: usize = 8;

/// How often a message is tried.
pub(crate) const TRIES_MAX: u32 = 5;

/// How long one request may take. A try is two of them where a payload is written first.
pub(crate) const REQUEST_MAX_MS: u64 = 20_000;

/// How long a FIFO queue remembers a deduplication id.
const DEDUPLICATION_MS: u64 = 300_000;

/// How long after a try that may have sent it a FIFO message is tried again, so that no try makes a second one.
const AGAIN_MAX: Duration = Duration::from_millis(DEDUPLICATION_MS - 2 * REQUEST_MAX_MS);

// So that one that is tried again each time has all of its tries.
const _: () = assert!(
    (TRIES_MAX as u128) * (2 * REQUEST_MAX_MS + (BACKOFF_BASE_MS << DOUBLINGS_MAX)) as u128 <= AGAIN_MAX.as_millis()
);

/// The result of one try.
#[derive(Debug, Clone)]
pub(crate) enum TryResult {
    Sent(Sent),
    /// It can be tried again; this is the error if it is not.
    Again(SendError),
    /// The whole request was refused, for this reason; possibly because of another message, so this one is tried alone.
    RequestRefused(SendError),
    /// No other try is made.
    Refused(SendError),
}

/// Messages to send, each with its result once it has one.
#[derive(Debug)]
pub(crate) struct Plan {
    messages: Vec<Planned>,
    /// Whether groups stay in their order.
    ordered: bool,
    /// Of each ordered group that has failed since what follows in it was last held back, the index of the first failure.
    failed: HashMap<String, usize>,
}

#[derive(Debug)]
struct Planned {
    message: Outgoing,
    tries: u32,
    /// Whether it has a request for itself.
    alone: bool,
    /// The error of the last try that may have sent it, and when the first one began.
    unknown: Option<(SendError, Instant)>,
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
        let mut plan = Self { messages: messages.into_iter().map(planned).collect(), ordered, failed: HashMap::new() };
        for index in 0..plan.messages.len() {
            if let Err(error) = check::message(&plan.messages[index].message, ordered) {
                plan.end(index, Err(error));
            }
        }
        plan
    }

    pub(crate) fn message(&self, index: usize) -> &Outgoing {
        &self.messages[index].message
    }

    /// Returns the batches to send now, by the indexes of their messages; none when all is done. What may be in the queue comes first, since a
    /// FIFO queue knows it again only for a while; later it is not sent.
    ///
    /// An ordered group has at most one message in flight: SQS accepts and refuses the messages of a batch one by one, so that of
    /// two in one batch the second could be in the queue without the first.
    pub(crate) fn next_batches(&mut self, now: Instant) -> Vec<Vec<usize>> {
        self.end_late(now);
        self.end_held_back();
        let mut batches: Vec<Vec<usize>> = Vec::new();
        // The index of the batch that others may go into, and its bytes.
        let mut open: Option<(usize, usize)> = None;
        let mut groups = HashSet::new();
        let mut writes = 0;
        // Of an ordered group, only the first one that has no result can be in the queue.
        for (index, planned) in self.waiting(true).chain(self.waiting(false)) {
            if self.ordered && !groups.insert(planned.message.group.as_deref()) {
                continue;
            }
            if planned.message.outside {
                if writes == WRITES_MAX {
                    continue;
                }
                writes += 1;
            }
            let bytes = planned.message.bytes();
            if let Some((at, open_bytes)) = open
                && !planned.alone
                && batches[at].len() < BATCH_MAX
                && open_bytes + bytes <= MESSAGE_MAX_BYTES
            {
                batches[at].push(index);
                open = Some((at, open_bytes + bytes));
                continue;
            }
            if batches.len() == REQUESTS_MAX {
                break;
            }
            if !planned.alone {
                open = Some((batches.len(), bytes));
            }
            batches.push(vec![index]);
        }
        batches
    }

    /// Returns the messages without a result that may be in the queue, or the others, with their indexes.
    fn waiting(&self, unknown: bool) -> impl Iterator<Item = (usize, &Planned)> {
        let waits = move |planned: &Planned| planned.result.is_none() && planned.unknown.is_some() == unknown;
        self.messages.iter().enumerate().filter(move |(_, planned)| waits(planned))
    }

    /// Ends what may be in a FIFO queue that would not know it again.
    fn end_late(&mut self, now: Instant) {
        if !self.ordered {
            return;
        }
        for index in 0..self.messages.len() {
            let planned = &mut self.messages[index];
            let is_late = |(_, since): &mut (_, Instant)| now.duration_since(*since) >= AGAIN_MAX;
            if planned.result.is_none()
                && let Some((error, _)) = planned.unknown.take_if(is_late)
            {
                self.end(index, Err(error));
            }
        }
    }

    /// Applies the result of one message's try, which began at this time; returns whether to try it again, after a backoff.
    pub(crate) fn apply(&mut self, index: usize, result: TryResult, began: Instant) -> bool {
        let planned = &mut self.messages[index];
        planned.tries += 1;
        if let TryResult::Again(error) = &result
            && error.kind() == SendErrorKind::Unknown
        {
            let since = planned.unknown.as_ref().map_or(began, |(_, since)| *since);
            planned.unknown = Some((error.clone(), since));
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
                Err(planned.unknown.take().map_or(error, |(unknown, _)| unknown))
            }
        };
        self.end(index, result);
        false
    }

    /// Ends a message; one that is not sent [holds back](Self::end_held_back) what follows in its group.
    fn end(&mut self, index: usize, result: Result<Sent, SendError>) {
        let planned = &mut self.messages[index];
        if result.is_err()
            && self.ordered
            && let Some(group) = &planned.message.group
        {
            self.failed.entry(group.clone()).and_modify(|first| *first = index.min(*first)).or_insert(index);
        }
        planned.result = Some(result);
    }

    /// Ends what follows a failure in its group and has no result of its own.
    fn end_held_back(&mut self) {
        if self.failed.is_empty() {
            return;
        }
        for (index, planned) in self.messages.iter_mut().enumerate().filter(|(_, planned)| planned.result.is_none()) {
            let failed = planned.message.group.as_ref().and_then(|group| self.failed.get(group));
            if failed.is_some_and(|first| *first < index) {
                let why = "an earlier message of its group was not sent: send that one first, then this one";
                planned.result = Some(Err(SendError::new(SendErrorKind::HeldBack, why)));
            }
        }
        self.failed.clear();
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
        let now = Instant::now();
        let rows: [(&str, bool, &[&[usize]]); 6] = [
            ("", true, &[]),
            ("a/g/1 b/g/1 c/h/1", false, &[&[0, 1, 2]]),
            ("a/g/1 b/g/1 c/h/1", true, &[&[0, 2]]),
            ("a/g/512 b/h/512 c/i/1", false, &[&[0, 1], &[2]]),
            ("a/g/1 b/h/1024 c/i/1", true, &[&[0], &[1], &[2]]),
            ("a/g/1025 b/g/1 c/h/1", true, &[&[2]]),
        ];
        for (messages, ordered, batches) in rows {
            assert_eq!(plan(messages, ordered).next_batches(now), batches, "{messages} {ordered}");
        }
        let many: String = (0..95).map(|n| format!("k{n}/g/1 ")).collect();
        let batches = plan(&many, false).next_batches(now);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [BATCH_MAX; REQUESTS_MAX]);
    }

    #[test]
    fn so_many_payloads_are_written_at_once_and_the_others_wait_with_their_groups() {
        let now = Instant::now();
        for ordered in [false, true] {
            let many: String = (0..12).map(|n| format!("k{n}/g{n}/1 ")).collect();
            let mut plan = plan(&format!("{many} small/h/1 k11-2/g11/1"), ordered);
            for planned in &mut plan.messages[..12] {
                planned.message.outside = true;
            }
            let overtakes: &[usize] = if ordered { &[12] } else { &[12, 13] };
            let wanted: Vec<_> = (0..WRITES_MAX).chain(overtakes.iter().copied()).collect();
            let planned = plan.next_batches(now).concat();
            assert_eq!(planned, wanted, "ordered {ordered}");
            for index in planned {
                plan.apply(index, TryResult::Sent(Sent { message_id: "m".into(), sequence_number: None }), now);
            }
            assert_eq!(plan.next_batches(now).concat(), [8, 9, 10, 11], "ordered {ordered}");
        }
    }

    #[test]
    fn a_group_waits_for_its_first_message() {
        let now = Instant::now();
        let mut plan = plan("a/g/1 b/g/1 c/h/1 d/g/1", true);
        let sent = || TryResult::Sent(Sent { message_id: "m".into(), sequence_number: None });
        assert!(plan.apply(0, TryResult::Again(error(SendErrorKind::Failed)), now));
        assert!(!plan.apply(2, sent(), now));
        assert_eq!(plan.next_batches(now), [[0]]);
        plan.apply(0, sent(), now);
        assert_eq!(plan.next_batches(now), [[1]]);
        plan.apply(1, TryResult::Refused(error(SendErrorKind::Refused)), now);
        assert!(plan.next_batches(now).is_empty());
        let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
        assert_eq!(kinds, [None, Some(SendErrorKind::Refused), None, Some(SendErrorKind::HeldBack)]);
    }

    #[test]
    fn what_can_never_be_sent_is_not_said_to_be_held_back() {
        // The second of them has no body; nor has the first, or SQS refuses it.
        for messages in ["a/g/1 b/g/0 c/g/1", "a/g/0 b/g/0 c/g/1"] {
            let (mut plan, now) = (plan(messages, true), Instant::now());
            for index in plan.next_batches(now).concat() {
                plan.apply(index, TryResult::Refused(error(SendErrorKind::Refused)), now);
            }
            assert!(plan.next_batches(now).is_empty());
            let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
            assert_eq!(kinds, [SendErrorKind::Refused, SendErrorKind::Refused, SendErrorKind::HeldBack].map(Some));
        }
    }

    #[test]
    fn what_may_be_sent_stays_unknown_whatever_comes_later() {
        let now = Instant::now();
        for last in [SendErrorKind::Failed, SendErrorKind::Refused] {
            let mut plan = plan("a/g/1 b/h/1", false);
            assert!(plan.apply(0, TryResult::Again(error(SendErrorKind::Unknown)), now));
            for index in 0..2 {
                assert!(!plan.apply(index, TryResult::Refused(error(last)), now));
            }
            let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
            assert_eq!(kinds, [Some(SendErrorKind::Unknown), Some(last)]);
        }
    }

    #[test]
    fn what_was_refused_together_is_tried_alone_and_tries_end() {
        let now = Instant::now();
        let mut plan = plan("a/g/1 b/h/1", false);
        for index in [0, 1] {
            assert!(!plan.apply(index, TryResult::RequestRefused(error(SendErrorKind::Refused)), now));
        }
        assert_eq!(plan.next_batches(now), [[0], [1]]);
        plan.apply(0, TryResult::RequestRefused(error(SendErrorKind::Refused)), now);
        assert_eq!(plan.next_batches(now), [[1]]);
        let again: Vec<_> =
            (1..TRIES_MAX).map(|_| plan.apply(1, TryResult::Again(error(SendErrorKind::Unknown)), now)).collect();
        assert_eq!(again, [true, true, true, false]);
        assert!(plan.next_batches(now).is_empty());
    }

    /// Of 80 messages in eight requests, one gets no answer and all others are refused as a whole.
    #[test]
    fn what_may_be_in_the_queue_is_tried_in_each_round() {
        let now = Instant::now();
        for unanswered in [0..10, 30..40, 70..80] {
            let many: String = (0..90).map(|n| format!("k{n}/g{n}/1 ")).collect();
            let mut plan = plan(&many, true);
            for index in plan.next_batches(now).concat() {
                plan.apply(
                    index,
                    if unanswered.contains(&index) {
                        TryResult::Again(error(SendErrorKind::Unknown))
                    } else {
                        TryResult::RequestRefused(error(SendErrorKind::Refused))
                    },
                    now,
                );
            }
            let batches = plan.next_batches(now);
            assert_eq!((batches.len(), &batches[0]), (REQUESTS_MAX, &unanswered.collect::<Vec<_>>()));
        }
    }

    #[test]
    fn what_a_fifo_queue_may_have_forgotten_is_not_sent_again() {
        for (ordered, wanted) in
            [(true, [Some(SendErrorKind::Unknown), Some(SendErrorKind::HeldBack)]), (false, [None; 2])]
        {
            let (mut plan, began) = (plan("a/g/1 b/g/1", ordered), Instant::now());
            for tries in [0, 1] {
                let now = began + tries * (AGAIN_MAX - Duration::from_millis(1));
                assert_eq!(plan.next_batches(now)[0][0], 0, "ordered {ordered}, {tries}");
                plan.apply(0, TryResult::Again(error(SendErrorKind::Unknown)), now);
            }
            let late = plan.next_batches(began + AGAIN_MAX);
            assert_eq!(late.is_empty(), ordered);
            for index in late.concat() {
                plan.apply(index, TryResult::Sent(Sent { message_id: "m".into(), sequence_number: None }), began);
            }
            let kinds: Vec<_> = plan.results().iter().map(|r| r.as_ref().err().map(SendError::kind)).collect();
            assert_eq!(kinds, wanted);
        }
    }
}
