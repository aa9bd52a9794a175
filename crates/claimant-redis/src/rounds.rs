//! Many attempts at once, sent together and tried again until each has its answer or the time is over.

use claimant_core::{Budget, StoreError, StoreErrorKind};
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value};

use crate::error::store_error;
use crate::link::Link;
use crate::write::{Known, Reply, reply};

/// How often an attempt is sent again after an error.
const ERRORS_MAX: u32 = 4;

/// How often an attempt is sent at all. Each time that a record changed in between, another writer's write applied, so of many
/// at once each has its turn; the limit is for a record that can never be what it is shown as, such as one edited by hand.
const ROUNDS_MAX: u32 = 100;

/// Something that is asked of one record.
pub(crate) trait Attempt: Sized {
    /// What comes of it.
    type Answer;

    /// The command to send next. Sent again after an error, it finds its own write where that applied.
    fn command(&self, known: Known) -> Cmd;

    /// What the reply to it means.
    fn took(self, reply: Reply) -> Next<Self>;

    /// The answer where none came.
    fn failed(self, error: StoreError) -> Self::Answer;
}

/// What a reply leads to.
pub(crate) enum Next<A: Attempt> {
    Answer(A::Answer),
    Again(A),
}

/// An attempt that has no answer yet.
struct Open<A> {
    place: usize,
    attempt: A,
    known: Known,
    /// How many errors it met.
    errors: u32,
    /// The last answer, where that was an error.
    error: Option<StoreError>,
}

/// The answer to one attempt.
pub(crate) async fn play_one<A: Attempt>(link: &Link, attempt: A, budget: Budget<'_>) -> A::Answer {
    play(link, vec![attempt], budget).await.pop().expect("there are as many answers as attempts")
}

/// An answer to each attempt, in their order.
pub(crate) async fn play<A: Attempt>(link: &Link, attempts: Vec<A>, budget: Budget<'_>) -> Vec<A::Answer> {
    let mut answers: Vec<Option<A::Answer>> = attempts.iter().map(|_| None).collect();
    let attempts = attempts.into_iter().enumerate();
    let mut open: Vec<Open<A>> =
        attempts.map(|(place, attempt)| Open { place, attempt, known: Known::Yes, errors: 0, error: None }).collect();
    for _ in 0..ROUNDS_MAX {
        // Only errors are waited for; what is merely out of date is sent again at once.
        if let Some(errors) = open.iter().filter(|o| o.error.is_some()).map(|o| o.errors).max() {
            tokio::time::sleep(budget.retry_wait(errors)).await;
        }
        if open.is_empty() || budget.left().is_zero() {
            break;
        }
        let commands: Vec<Cmd> = open.iter().map(|o| o.attempt.command(o.known)).collect();
        let replies = link.send(&commands, budget).await;
        let mut still_open = Vec::new();
        for (attempt, reply) in open.into_iter().zip(replies) {
            let place = attempt.place;
            match attempt.took(reply) {
                Ok(answer) => answers[place] = Some(answer),
                Err(attempt) => still_open.push(attempt),
            }
        }
        open = still_open;
    }
    for Open { place, attempt, error, .. } in open {
        let error = error.unwrap_or_else(|| changed_or_late(budget));
        answers[place] = Some(attempt.failed(error));
    }
    answers.into_iter().map(|answer| answer.expect("each attempt was answered or is still open")).collect()
}

impl<A: Attempt> Open<A> {
    /// The answer, or what is still open.
    fn took(self, answer: RedisResult<Value>) -> Result<A::Answer, Self> {
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                return Err(Self { known: Known::No, ..self });
            }
            Err(error) => Err(store_error(&error)),
            Ok(answer) => reply(answer),
        };
        match answer {
            Ok(reply) => match self.attempt.took(reply) {
                Next::Answer(answer) => Ok(answer),
                Next::Again(attempt) => Err(Self { attempt, error: None, ..self }),
            },
            // Others say that nothing was written.
            Err(error) if self.errors < ERRORS_MAX && error.kind().is_transient() => {
                Err(Self { errors: self.errors + 1, error: Some(error), ..self })
            }
            Err(error) => Ok(self.attempt.failed(error)),
        }
    }
}

fn changed_or_late(budget: Budget<'_>) -> StoreError {
    if budget.left().is_zero() {
        return StoreError::new(StoreErrorKind::Unreachable, "no time was left for the request");
    }
    StoreError::new(StoreErrorKind::Throttled, "the record changed each time it was to be written")
}
