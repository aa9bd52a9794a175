//! Sends many attempts together, and again until each has its answer or the time is over.

use claimant_core::{Budget, StoreError, StoreErrorKind};
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::error::store_error;
use crate::link::Link;
use crate::write::{Known, Reply, reply};

/// How often an attempt is sent again after an error.
const ERRORS_MAX: u32 = 4;

/// How often an attempt is sent at all. Each time that a record changed in between, another writer's write applied, so that all
/// writers make progress. The limit is for a record whose guard can never hold, such as one edited by hand.
const ROUNDS_MAX: u32 = 100;

/// An operation on one record.
pub(crate) trait Attempt: Sized {
    /// The result of the operation.
    type Answer;

    /// Returns the command to send next. Sent again after an error, it recognises its own write if that applied.
    fn command(&self, known: Known) -> Cmd;

    /// Interprets the reply to the command.
    fn on_reply(self, reply: Reply) -> Next<Self>;

    /// Returns the answer if no reply came.
    fn failed(self, error: StoreError) -> Self::Answer;
}

/// What follows a reply.
pub(crate) enum Next<A: Attempt> {
    Answer(A::Answer),
    Again(A),
}

/// An attempt that has no answer yet.
struct Open<A> {
    index: usize,
    attempt: A,
    known: Known,
    /// How many errors occurred so far.
    errors: u32,
    /// The last reply, if that was an error.
    error: Option<StoreError>,
    /// Whether an answer did not come, so that it is not known whether the write applied.
    is_lost: bool,
}

/// Runs one attempt until it has its answer.
pub(crate) async fn run_one<A: Attempt>(link: &Link, attempt: A, budget: Budget<'_>) -> A::Answer {
    run_all(link, vec![attempt], budget).await.pop().expect("there are as many answers as attempts")
}

/// Runs attempts until each has its answer, and returns the answers in the same order.
pub(crate) async fn run_all<A: Attempt>(link: &Link, attempts: Vec<A>, budget: Budget<'_>) -> Vec<A::Answer> {
    let mut answers: Vec<Option<A::Answer>> = attempts.iter().map(|_| None).collect();
    let attempts = attempts.into_iter().enumerate();
    let mut open: Vec<Open<A>> = attempts
        .map(|(index, attempt)| Open { index, attempt, known: Known::Yes, errors: 0, error: None, is_lost: false })
        .collect();
    let (mut rounds, mut failed_at) = (0, None);
    while !open.is_empty() && rounds < ROUNDS_MAX {
        // Only after errors there is a wait; an attempt whose record has changed is sent again at once.
        let errors = open.iter().filter(|o| o.error.is_some()).map(|o| o.errors).max();
        let has_time = match errors {
            Some(errors) => budget.wait(errors).await,
            None => !budget.left().is_zero(),
        };
        if !has_time {
            break;
        }
        rounds += 1;
        let commands: Vec<Cmd> = open.iter().map(|o| o.attempt.command(o.known)).collect();
        let replies = link.send(&commands, budget, errors.and(failed_at)).await;
        let mut still_open = Vec::new();
        for (attempt, reply) in open.into_iter().zip(replies) {
            let index = attempt.index;
            match attempt.on_reply(reply, link.is_cluster()) {
                Ok(answer) => answers[index] = Some(answer),
                Err(attempt) => still_open.push(attempt),
            }
        }
        open = still_open;
        if failed_at.is_none() && open.iter().any(|o| o.error.is_some()) {
            failed_at = Some(Instant::now());
        }
    }
    for Open { index, attempt, error, .. } in open {
        let error = error.unwrap_or_else(|| error_after_rounds(rounds));
        answers[index] = Some(attempt.failed(error));
    }
    answers.into_iter().map(|answer| answer.expect("each attempt was answered or is still open")).collect()
}

impl<A: Attempt> Open<A> {
    /// Returns the answer, or the attempt if it is still open.
    fn on_reply(self, answer: RedisResult<Value>, in_cluster: bool) -> Result<A::Answer, Self> {
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                return Err(Self { known: Known::No, ..self });
            }
            Err(error) => Err(store_error(&error, in_cluster)),
            Ok(answer) => reply(answer),
        };
        match answer {
            Ok(reply) => match self.attempt.on_reply(reply) {
                Next::Answer(answer) => Ok(answer),
                Next::Again(attempt) => Err(Self { attempt, error: None, ..self }),
            },
            Err(error) if self.errors < ERRORS_MAX && error.kind().is_transient() => {
                let is_lost = self.is_lost || error.kind() == StoreErrorKind::Unreachable;
                Err(Self { errors: self.errors + 1, error: Some(error), is_lost, ..self })
            }
            // This try was refused, but an earlier one may have applied: the caller is to ask again.
            Err(error) if self.is_lost && !error.kind().is_transient() => {
                let what = format!("an answer was lost, and the next was: {error}");
                Ok(self.attempt.failed(StoreError::new(StoreErrorKind::Unreachable, what)))
            }
            Err(error) => Ok(self.attempt.failed(error)),
        }
    }
}

fn error_after_rounds(rounds: u32) -> StoreError {
    if rounds < ROUNDS_MAX {
        return StoreError::new(StoreErrorKind::Unreachable, "no time was left for the request");
    }
    StoreError::new(StoreErrorKind::Throttled, "the record changed each time it was to be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attempt that is answered with an error.
    struct Any;

    impl Attempt for Any {
        type Answer = StoreErrorKind;

        fn command(&self, _: Known) -> Cmd {
            Cmd::new()
        }

        fn on_reply(self, _: Reply) -> Next<Self> {
            Next::Again(self)
        }

        fn failed(self, error: StoreError) -> StoreErrorKind {
            error.kind()
        }
    }

    #[test]
    fn an_error_after_an_answer_that_was_lost_does_not_say_that_nothing_was_written() {
        // A connection that is cut within an answer; the server's errors are whole.
        for (replies, kind) in [
            (&["-NOPERM x\r\n"][..], StoreErrorKind::Denied),
            (&["-LOADING x\r\n", "-NOPERM x\r\n"], StoreErrorKind::Denied),
            (&["+O", "-NOPERM x\r\n"], StoreErrorKind::Unreachable),
            (&["+O", "-NOSCRIPT x\r\n", "-LOADING x\r\n", "-x\r\n"], StoreErrorKind::Unreachable),
        ] {
            let open = Open { index: 0, attempt: Any, known: Known::Yes, errors: 0, error: None, is_lost: false };
            let end = replies.iter().try_fold(open, |open, reply| {
                let reply = redis::parse_redis_value(reply.as_bytes()).and_then(Value::extract_error);
                // What is still open goes on.
                open.on_reply(reply, false).map_or_else(Ok, Err)
            });
            assert_eq!(end.map(|open| open.errors), Err(kind), "{replies:?}");
        }
    }
}
