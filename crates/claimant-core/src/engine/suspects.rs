//! Suspects: work whose last owner did not finish it, and may have died of it. They run after all else of the invocation, one
//! at a time, while no other message is claimed and what is done was deleted, so that the next death takes nothing along.

use std::cmp::Reverse;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::admission;
use super::context::BatchContext;
use super::slots::{Permits, SlotQueue};
use super::turns::{Reserved, Suspicion};
use super::work::Work;
use crate::claim::Claim;
use crate::invocation_time::time_until;
use crate::limits::STORE_CALL_MAX_MS;

/// So many owners died in runs of a key, and took what ran beside them along.
const INTERRUPTIONS_POISON: u32 = 2;

/// Work that waits for its turn.
struct Suspect {
    work: Work,
    /// How many owners left it in progress since a run of it last came to an end.
    interruptions: u32,
}

/// What the next turn is.
pub(crate) enum NextSuspects {
    /// These are claimed, and nothing else meanwhile.
    Claim(Vec<(Work, Permits)>),
    /// These are not started: there is no time, or another delivery is better for them.
    NotStarted(Vec<Work>),
    /// Something has to be waited for first.
    Later,
}

/// The turn of a batch's suspects, in which no other sequence of the invocation works.
enum Turn<'a> {
    NotAsked,
    /// It is waited for; with it comes how many suspects the invocation has.
    Asked(BoxFuture<'a, usize>),
    /// It is ours, for one of so many; what is done is deleted first.
    Deleting(usize, BoxFuture<'a, ()>),
    /// It is ours, or the time to wait for it is over, for one of so many, and none of them runs.
    Ours(usize),
    /// Some of them run.
    Running,
}

pub(crate) struct Suspects<'a> {
    cx: BatchContext<'a>,
    waiting: Vec<Suspect>,
    turn: Turn<'a>,
    /// How many claims took over work that another owner had left.
    pub(crate) taken_over: usize,
}

impl<'a> Suspects<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self { cx, waiting: Vec::new(), turn: Turn::NotAsked, taken_over: 0 }
    }

    pub(crate) fn push(&mut self, work: Work, interruptions: u32) {
        self.waiting.push(Suspect { work, interruptions });
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether work is a suspect by its receives alone: where claims do not outlive their owners, a death leaves no other
    /// trace. Only at the last two receives: a message that never had a turn also has receives, and is no suspect.
    pub(crate) fn is_by_receives(&self, work: &Work) -> bool {
        let (cx, receive_count) = (self.cx, work.delivery.message.receive_count());
        let leaves_no_trace = !cx.store().claims_outlive_owners();
        leaves_no_trace && cx.events > 1 && receive_count > 1 && cx.shared.receives_max.is_nearly_last(receive_count)
    }

    /// Returns whether work of a dead owner has to wait for its turn. Alone in its invocation it need not: it can take nothing along.
    pub(crate) fn must_be_set_aside(&self, work: &Work, claim: &Claim) -> bool {
        claim.is_taken_over() && !work.its_turn && self.cx.events > 1
    }

    /// Returns whether nothing else may be claimed: while suspects run, and in the time that is reserved for them, since in a batch
    /// that does not fit they would never have their turn.
    pub(crate) fn have_the_time(&self) -> bool {
        self.are_running() || !self.waiting.is_empty() && self.time_from() <= Instant::now()
    }

    /// Returns from when on the time is reserved for them.
    pub(crate) fn time_from(&self) -> Instant {
        let (cx, most) = (self.cx, self.reserved_most());
        let reserved = admission::reserved_for(self.waiting.len(), most, cx.shared.takes(), cx.shared.expected());
        cx.time.cancel_at - reserved
    }

    /// Returns how much of the time is reserved for them at most.
    fn reserved_most(&self) -> Duration {
        let total = self.cx.time.total();
        // A suspect without further receives has its last chance here; others have theirs later.
        let receives_max = self.cx.shared.receives_max;
        let receives = |suspect: &Suspect| suspect.work.delivery.message.receive_count();
        let last_chance = self.waiting.iter().map(receives).any(|receives| receives_max.is_nearly_last(receives));
        if last_chance { total } else { total / 2 }
    }

    /// Returns the time that is reserved for them, as the other sequences of the invocation have to know it.
    pub(crate) fn reserved_time(&self) -> Reserved {
        let (from, earliest) = (self.time_from(), self.cx.time.cancel_at - self.reserved_most());
        Reserved { from, earliest, by: self.cx.slot_by() }
    }

    /// Ends the turn, if there is one: lanes that went on meanwhile may be claimed again.
    pub(crate) fn end_turn(&mut self) -> bool {
        let had = self.are_running();
        if had || self.waiting.is_empty() {
            self.leave_turn();
        }
        had
    }

    /// Gives back a turn in which none of them runs: others may have theirs.
    pub(crate) fn give_back_turn(&mut self) {
        if !self.are_running() {
            self.leave_turn();
        }
    }

    fn leave_turn(&mut self) {
        self.turn = Turn::NotAsked;
        self.cx.part.sequence.turns.end_turn();
    }

    fn are_running(&self) -> bool {
        matches!(self.turn, Turn::Running)
    }

    pub(crate) fn is_idle(&self) -> bool {
        !matches!(self.turn, Turn::Asked(_) | Turn::Deleting(..))
    }

    /// Waits for what comes before the next turn; for ever where that is nothing. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        let in_all = match &mut self.turn {
            Turn::Asked(turn) => turn.await,
            Turn::Deleting(in_all, deletion) => {
                deletion.await;
                *in_all
            }
            Turn::NotAsked | Turn::Ours(_) | Turn::Running => std::future::pending().await,
        };
        self.turn = Turn::Ours(in_all);
    }

    /// Begins the turn of the next suspects, so many at most, if a handler still fits into the time. To be called when nothing is under
    /// way.
    pub(crate) fn start(&mut self, slots: &mut SlotQueue<'a>, most: usize, fits: bool) -> NextSuspects {
        let works = |suspects: Vec<Suspect>| suspects.into_iter().map(|suspect| suspect.work).collect();
        let cx = self.cx;
        if !fits {
            return NextSuspects::NotStarted(works(std::mem::take(&mut self.waiting)));
        }
        if most == 0 {
            return NextSuspects::Later;
        }
        let Turn::Ours(in_all) = self.turn else {
            self.ask_for_turn();
            return NextSuspects::Later;
        };
        let invocation = cx.part.sequence.invocation;
        if invocation.has_done() {
            let within = time_until(cx.time.cancel_at).min(Duration::from_millis(STORE_CALL_MAX_MS));
            self.turn = Turn::Deleting(in_all, Box::pin(invocation.delete_done(within)));
            return NextSuspects::Later;
        }
        let deferred = self.take_poison();
        if !deferred.is_empty() {
            return NextSuspects::NotStarted(works(deferred));
        }
        self.waiting.sort_by_key(suspicion);
        let left = time_until(cx.time.cancel_at);
        let together = admission::together(in_all, left, cx.shared.takes(), cx.shared.slots.concurrency);
        let together = together.min(self.waiting.len()).min(most);
        let permits: Vec<_> = (0..together).map_while(|_| slots.take(cx.slot_by())).collect();
        let next = self.waiting.drain(..permits.len()).map(|suspect| Work { its_turn: true, ..suspect.work });
        let next: Vec<_> = next.zip(permits).collect();
        if !next.is_empty() {
            self.turn = Turn::Running;
        }
        NextSuspects::Claim(next)
    }

    /// Asks for the turn, as the least suspicious of them.
    fn ask_for_turn(&mut self) {
        let (cx, mut reserved) = (self.cx, self.reserved_time());
        let Some(least) = self.waiting.iter().map(suspicion).min() else { return };
        if cx.shared.takes().is_zero() {
            // While nothing is known of how long they take, half of the time: others may be slow, and leave none.
            reserved.from = cx.time.cancel_at - cx.time.total() / 2;
        }
        self.turn = Turn::Asked(Box::pin(cx.part.sequence.turns.turn((least, self.waiting.len()), reserved)));
    }

    /// Takes out poison messages (interrupted [`INTERRUPTIONS_POISON`] times), so that they run in a later delivery without others. Only where completed
    /// messages of this invocation could not be deleted, and would come back if the process died now; and only those that have a receive left.
    /// One is enough, since what an operator does can forget interruptions, and leave a message with its last but one.
    fn take_poison(&mut self) -> Vec<Suspect> {
        if !self.cx.part.sequence.invocation.keeps_done() {
            return Vec::new();
        }
        let suspects = std::mem::take(&mut self.waiting).into_iter();
        let (deferred, rest) = suspects.partition(|suspect| {
            let receives = suspect.work.delivery.message.receive_count();
            suspect.interruptions >= INTERRUPTIONS_POISON && !self.cx.shared.receives_max.is_last(receives)
        });
        self.waiting = rest;
        deferred
    }
}

/// Returns the order of suspects: first those whose work was interrupted least, whatever failed before, then those that were received most. The others of
/// this order go by their ids, upwards and downwards in turn: where a death leaves no trace, what was behind the one message
/// that kills is in front of it the next time.
fn suspicion(suspect: &Suspect) -> Suspicion {
    let message = &suspect.work.delivery.message;
    let id = message.id().as_str().to_owned();
    let (up, down) =
        if message.receive_count().is_multiple_of(2) { (Some(id), None) } else { (None, Some(Reverse(id))) };
    (suspect.interruptions, Reverse(message.receive_count()), up, down)
}
