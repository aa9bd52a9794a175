//! Suspects: work whose last owner did not finish it, and may have died of it. They run after all else of the batch, one at
//! a time, while no other message is claimed and what is done was deleted, so that the next death takes nothing along.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{Event, Pipeline, Place};
use crate::deadline::until;
use crate::limits::STORE_CALL_MAX_MS;
use crate::pace;
use crate::queue::Confirmation;

/// Work that was claimed this often has ended no run of its own, nor let another end, at least twice.
const ATTEMPTS_CONVICTED: u32 = 3;

/// What is known of a batch's suspects.
#[derive(Default)]
pub(super) struct Suspects {
    /// Lanes whose next message is one, and how often its work was claimed.
    lanes: Vec<(usize, u32)>,
    /// Whose turn it is.
    turn: HashSet<Place>,
    /// Which messages that are done the queue was asked to delete.
    asked: HashSet<Place>,
    /// Whether it could not confirm one of them.
    kept: bool,
}

impl Suspects {
    pub(super) fn push(&mut self, lane: usize, attempt: u32) {
        self.lanes.push((lane, attempt));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn is_turn(&self, place: Place) -> bool {
        self.turn.contains(&place)
    }

    /// Ends the turn, if there is one: lanes that went on meanwhile may be claimed again.
    pub(super) fn end_turn(&mut self) -> bool {
        !std::mem::take(&mut self.turn).is_empty()
    }

    pub(super) fn deleted(&mut self, places: &[Place], gone: bool) {
        self.asked.extend(places);
        self.kept |= !gone;
    }
}

impl<T: DeserializeOwned + Send + 'static> Pipeline<'_, T> {
    /// Whether a message is a suspect by its receives alone: where claims do not outlive their owners, a death leaves no other
    /// trace. At the last two receives only, since what had no turn yet has as many.
    pub(super) fn is_suspect_unseen(&self, place: Place) -> bool {
        let receive_count = self.batch[place].receive_count;
        let leaves_no_trace = !self.engine.consumer.store.claims_outlive_owners();
        leaves_no_trace && self.batch.len() > 1 && receive_count > 1 && self.engine.receives_end(receive_count)
    }

    /// Whether nothing else may be claimed: while suspects run, and in the time that is kept for them, since in a batch that
    /// does not fit they would never have their turn.
    pub(super) fn time_is_suspects(&self) -> bool {
        if !self.suspects.turn.is_empty() {
            return true;
        }
        // A suspect without further receives has its last chance here; others have theirs later.
        let receives_end = |lane: usize| self.engine.receives_end(self.batch[self.head(lane)].receive_count);
        let last_chance = self.suspects.lanes.iter().any(|(lane, _)| receives_end(*lane));
        let most = self.schedule.total() / if last_chance { 1 } else { 2 };
        let kept = pace::kept_for(self.suspects.lanes.len(), most, self.engine.takes(), self.engine.expected());
        !self.suspects.is_empty() && until(self.schedule.cancel_at) <= kept
    }

    /// Begins the turn of the next suspects. To be called when nothing is under way.
    pub(super) fn start_suspects(&mut self) {
        if !self.fits() {
            let lanes = std::mem::take(&mut self.suspects.lanes);
            return lanes.into_iter().for_each(|(lane, _)| self.not_started(lane));
        }
        if self.delete_done() || self.defer_convicted() {
            return;
        }
        let mut lanes = std::mem::take(&mut self.suspects.lanes);
        lanes.sort_by_key(|(lane, attempt)| self.suspicion(*lane, *attempt));
        let (left, takes) = (until(self.schedule.cancel_at), self.engine.takes());
        let together = pace::together(lanes.len(), left, takes, self.engine.concurrency);
        let mut slots = Vec::new();
        while let Some(held) = if slots.len() < together { self.take_slot() } else { None } {
            slots.push(held);
        }
        self.suspects.lanes = lanes.split_off(slots.len());
        self.suspects.turn = lanes.iter().map(|(lane, _)| self.head(*lane)).collect();
        for ((lane, _), held) in lanes.into_iter().zip(slots) {
            let place = self.head(lane);
            self.held.insert(place, held);
            match self.request(place) {
                Err(error) => self.store_failed(place, &error),
                Ok(request) => self.claim(vec![(place, request)], 0),
            }
        }
    }

    /// Who runs first: whose work was claimed least, then who was received most. The others of this order go by their
    /// ids, upwards and downwards in turn: where a death leaves no trace, what was behind the one message that kills is in front
    /// of it the next time.
    fn suspicion(&self, lane: usize, attempt: u32) -> impl Ord + use<T> {
        let message = &self.batch[self.head(lane)];
        let id = message.id.as_str().to_owned();
        let (up, down) =
            if message.receive_count.is_multiple_of(2) { (Some(id), None) } else { (None, Some(Reverse(id))) };
        (attempt, Reverse(message.receive_count), up, down)
    }

    /// Deletes what is done and was not asked for yet; whether there was any.
    fn delete_done(&mut self) -> bool {
        let is_done = |place: &Place| self.verdicts[*place].as_ref().is_some_and(|(outcome, _)| outcome.is_success());
        let places = (0..self.batch.len()).filter(is_done).filter(|place| !self.suspects.asked.contains(place));
        let places: Vec<Place> = places.collect();
        if places.is_empty() {
            return false;
        }
        let queue = self.queue;
        let within = until(self.schedule.cancel_at).min(Duration::from_millis(STORE_CALL_MAX_MS));
        self.under_way.push(Box::pin(async move {
            let gone = timeout(within, queue.delete(&places)).await == Ok(Confirmation::Confirmed);
            Event::Deleted { places, gone }
        }));
        true
    }

    /// Leaves those that are convicted to a delivery without others, where this batch has done what the queue still has, and
    /// their receives allow it; whether there were any.
    fn defer_convicted(&mut self) -> bool {
        if !self.suspects.kept {
            return false;
        }
        let lanes = std::mem::take(&mut self.suspects.lanes);
        let (deferred, rest): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|(lane, attempt)| {
            let receives_end = self.engine.receives_end(self.batch[self.head(*lane)].receive_count);
            *attempt >= ATTEMPTS_CONVICTED && !receives_end
        });
        self.suspects.lanes = rest;
        let any = !deferred.is_empty();
        deferred.into_iter().for_each(|(lane, _)| self.not_started(lane));
        any
    }
}
