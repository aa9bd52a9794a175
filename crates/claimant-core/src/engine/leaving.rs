//! Gives messages the answers that they leave a batch with, and lets their lanes go on.

use super::batch::Batch;
use super::dead_letters::Disposed;
use super::exit::Exit;
use super::messages::MessageEnd;
use super::work::{Answer, Delivery};
use crate::backoff;
use crate::duplicate::SeenDuplicate;
use crate::key::RecordId;
use crate::report::Outcome;

impl Batch<'_> {
    pub(super) fn leave(&mut self, delivery: Delivery, record: Option<RecordId>, exit: Exit) {
        match exit {
            Exit::Answered(answer) => self.conclude(delivery, answer),
            Exit::Duplicate { key, result } => {
                if let Some(hook) = self.cx.shared.consumer.on_duplicate.clone() {
                    let message_id = delivery.message.id().clone();
                    self.cx.part.duplicate(SeenDuplicate { hook, key, message_id, result: result.clone() });
                }
                self.conclude(delivery, Answer::success(Outcome::Duplicate, result));
            }
            Exit::Disposed(disposal) => {
                let (index, lane) = (delivery.index, delivery.lane);
                self.lanes.answered(lane, &Answer::unchanged(disposal.why.outcome(false)));
                let end = self.messages.disposed(Disposed { delivery, record, disposal });
                self.event_ended(index, lane, false, end);
            }
        }
    }

    /// Ends a message for the dead-letter queue: without a confirmed copy it goes back to its own, on its way there.
    pub(super) fn dead_lettered(&mut self, disposed: Disposed, confirmed: bool) {
        let Disposed { delivery, disposal, .. } = disposed;
        let delay = (!confirmed).then(|| backoff::rejected_delay(delivery.message.receive_count()));
        let end = self.messages.report(delivery.index, disposal.why.outcome(confirmed), delay, delivery.details);
        self.event_ended(delivery.index, delivery.lane, false, end);
    }

    /// Gives an event its answer.
    pub(super) fn conclude(&mut self, delivery: Delivery, mut answer: Answer) {
        self.cx.warn_if_turns_end(&delivery.message, &answer.outcome);
        let failed = !answer.outcome.is_success();
        // As it was asked for: those that follow have receives and payloads of their own.
        self.lanes.answered(delivery.lane, &answer);
        answer.visible_after = self.cx.own_delay(&delivery, &answer);
        let end = self.messages.answered(&delivery, answer);
        self.event_ended(delivery.index, delivery.lane, failed, end);
    }

    /// Lets the lane of an event go on that has ended, failed or not. Where it was the last of its message, that is done first.
    fn event_ended(&mut self, index: usize, lane: usize, failed: bool, end: MessageEnd) {
        match end {
            MessageEnd::Open => self.lanes.go_on(lane, failed),
            MessageEnd::Reported { success } => {
                self.cx.part.stop_span(index);
                if success {
                    self.cx.part.done(index);
                }
                self.lanes.go_on(lane, !success);
            }
            MessageEnd::Disposed(disposed) if !self.cx.queue().has_dead_letters() => {
                self.dead_lettered(*disposed, false);
            }
            MessageEnd::Disposed(disposed) if self.cx.part.is_whole(index) => self.dead_letters.push(*disposed),
            MessageEnd::Disposed(disposed) => self.dead_letter_unsent(*disposed),
        }
    }

    /// Ends what is one of several events of its message: its lane goes on. Neither the event nor its message is done by that.
    fn dead_letter_unsent(&mut self, disposed: Disposed) {
        self.dead_letters.push_unsent(&disposed);
        let Disposed { delivery, disposal, .. } = disposed;
        self.messages.report(delivery.index, disposal.why.outcome(false), None, delivery.details);
        self.cx.part.stop_span(delivery.index);
        self.lanes.go_on(delivery.lane, false);
    }
}
