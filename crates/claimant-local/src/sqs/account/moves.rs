//! Message move tasks: messages of a dead-letter queue on their way back, all at once or at a pace. Pure: time and new ids are
//! arguments.

use uuid::Uuid;

use super::super::fault::{Code, Fault};
use super::super::move_task::{LISTED_MAX, MoveStatus, MoveTask};
use super::Account;
use crate::arn;

/// Why a task failed where a queue is gone, and where a message names no queue that it came from.
const NO_QUEUE: &str = "AWS.SimpleQueueService.NonExistentQueue";
const NO_SOURCE: &str = "CouldNotDetermineMessageSource";

/// What came of moving one message.
enum Step {
    Moved,
    NothingLeft,
    Failed { reason: &'static str },
}

impl Account {
    /// Starts to move the visible messages of a dead-letter queue to `destination`, or back to where they came from.
    pub(in super::super) fn start_move(
        &mut self,
        now_ms: u64,
        source: &str,
        destination: Option<&str>,
        pace_per_s: Option<u64>,
    ) -> Result<String, Fault> {
        self.check_move(source, destination)?;
        if self.moves.iter().any(|task| task.source == source && task.is_running()) {
            return Err(Fault::new(
                Code::InvalidParameterValue,
                "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
            ));
        }
        let id = Uuid::new_v4().to_string();
        let to_move = self.queue(source)?.depth(now_ms).visible;
        self.moves.push(MoveTask {
            id: id.clone(),
            source: source.to_owned(),
            destination: destination.map(str::to_owned),
            pace_per_s,
            started_ms: now_ms,
            to_move,
            moved: 0,
            status: MoveStatus::Running,
        });
        if self.moves.iter().filter(|task| task.source == source).count() > LISTED_MAX
            && let Some(oldest) = self.moves.iter().position(|task| task.source == source)
        {
            self.moves.remove(oldest);
        }
        self.advance_moves(now_ms);
        Ok(id)
    }

    /// Returns the tasks of a source, the newest first.
    pub(in super::super) fn moves_of(&self, source: &str) -> Result<Vec<&MoveTask>, Fault> {
        if !self.exists(source) {
            return Err(Fault::not_found("SourceArn"));
        }
        Ok(self.moves.iter().rev().filter(|task| task.source == source).collect())
    }

    /// Ends a running task; returns how many messages it has moved. Those stay where they are.
    pub(in super::super) fn cancel_move(&mut self, source: &str, id: &str) -> Result<usize, Fault> {
        if !self.exists(source) {
            return Err(Fault::not_found("SourceArn"));
        }
        let running = self.moves.iter_mut().find(|task| task.id == id && task.source == source && task.is_running());
        let task = running.ok_or_else(|| Fault::new(Code::ResourceNotFound, "Task does not exist."))?;
        task.status = MoveStatus::Cancelled;
        Ok(task.moved)
    }

    /// Moves what is due by now.
    pub(in super::super) fn advance_moves(&mut self, now_ms: u64) {
        for index in 0..self.moves.len() {
            let mut task = self.moves[index].clone();
            if !task.is_running() {
                continue;
            }
            while task.is_running() && task.moved < task.due(now_ms) {
                match self.move_one(now_ms, &task) {
                    Step::Moved => task.moved += 1,
                    Step::NothingLeft => task.status = MoveStatus::Completed,
                    Step::Failed { reason } => task.status = MoveStatus::Failed { reason },
                }
            }
            if task.is_running() && task.moved == task.to_move {
                task.status = MoveStatus::Completed;
            }
            self.moves[index] = task;
        }
    }

    /// When the next message of a running task is due.
    pub(in super::super) fn next_move_ms(&self) -> Option<u64> {
        self.moves.iter().filter(|task| task.is_running()).map(MoveTask::next_ms).min()
    }

    fn move_one(&mut self, now_ms: u64, task: &MoveTask) -> Step {
        let Ok(source) = self.queue(&task.source) else {
            return Step::Failed { reason: NO_QUEUE };
        };
        let Some(message) = source.first_visible(now_ms) else {
            return Step::NothingLeft;
        };
        let origin = message.dead_letter_source.as_deref().and_then(arn::queue_name);
        let Some(target) = task.destination.as_deref().or(origin).map(str::to_owned) else {
            return Step::Failed { reason: NO_SOURCE };
        };
        if !self.exists(&target) {
            return Step::Failed { reason: NO_QUEUE };
        }
        let Some(message) = self.queue(&task.source).ok().and_then(|source| source.take_first_visible(now_ms)) else {
            return Step::NothingLeft;
        };
        // OK because the queue was there a moment ago, and nothing else runs meanwhile.
        if let Ok(entry) = self.entry(&target) {
            entry.queue.take_redriven(now_ms, Uuid::new_v4().to_string(), message, &task.source);
            entry.changed.notify_waiters();
        }
        Step::Moved
    }

    fn check_move(&self, source: &str, destination: Option<&str>) -> Result<(), Fault> {
        let found = |role: &str, name: &str| match self.queues.get(name) {
            Some(entry) => Ok(&entry.queue.attributes.settings),
            None => Err(Fault::not_found(role)),
        };
        let source_settings = found("SourceArn", source)?;
        if self.sources(source).is_empty() {
            return Err(Fault::new(
                Code::InvalidParameterValue,
                "Source queue must be configured as a Dead Letter Queue.",
            ));
        }
        if let Some(destination) = destination {
            let destination_settings = found("DestinationArn", destination)?;
            if destination == source || destination_settings.fifo != source_settings.fifo {
                return Err(Fault::invalid_parameter(
                    "DestinationArn",
                    "Destination queue must be another queue of the same type as the source.",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::attributes::Attributes;
    use super::super::super::message::NewMessage;
    use super::super::super::settings::{QueueSettings, Redrive};
    use super::*;

    /// `dead` with this many messages of `source`, which gives up at once.
    fn account(count: usize) -> Account {
        let mut account = Account::default();
        let redrive = Some(Redrive { dead_letter_queue: "dead".to_owned(), max_receive_count: 1 });
        for (name, redrive) in [("dead", None), ("source", redrive), ("else", None)] {
            account.create(0, name, Attributes::new(QueueSettings { redrive, ..QueueSettings::default() })).unwrap();
        }
        for number in 0..count {
            account.send(0, "source", NewMessage::new(number.to_string())).unwrap();
        }
        for _ in 0..2 {
            account.receive(0, "source", count, Some(std::time::Duration::ZERO)).unwrap();
        }
        account
    }

    fn visible(account: &mut Account, queue: &str, now_ms: u64) -> usize {
        account.queue(queue).unwrap().depth(now_ms).visible
    }

    #[test]
    fn a_pace_moves_the_first_at_once_and_each_other_a_pace_later() {
        let mut account = account(4);
        account.start_move(1_000, "dead", None, Some(2)).unwrap();
        for (now_ms, moved, next_ms) in [
            (1_000, 1, Some(1_500)),
            (1_499, 1, Some(1_500)),
            (1_500, 2, Some(2_000)),
            (2_400, 3, Some(2_500)),
            (2_500, 4, None),
        ] {
            account.advance_moves(now_ms);
            assert_eq!((visible(&mut account, "source", now_ms), account.next_move_ms()), (moved, next_ms), "{now_ms}");
        }
        assert_eq!(account.moves_of("dead").unwrap()[0].status, MoveStatus::Completed);
    }

    #[test]
    fn a_task_ends_where_it_stands() {
        type Act = fn(&mut Account);
        // (what happens after the first of three messages, how the task ends)
        let cases: &[(Act, MoveStatus)] = &[
            (|account| account.remove(1, "else").unwrap(), MoveStatus::Failed { reason: NO_QUEUE }),
            (|account| account.queue("dead").unwrap().purge(1, "dead").unwrap(), MoveStatus::Completed),
            (
                |account| {
                    let id = account.moves_of("dead").unwrap()[0].id.clone();
                    assert_eq!(account.cancel_move("dead", &id), Ok(1));
                    account.cancel_move("dead", &id).unwrap_err();
                },
                MoveStatus::Cancelled,
            ),
        ];
        for (number, (act, status)) in cases.iter().enumerate() {
            let mut account = account(3);
            account.start_move(0, "dead", Some("else"), Some(1)).unwrap();
            act(&mut account);
            account.advance_moves(60_000);
            let task = account.moves_of("dead").unwrap()[0].clone();
            assert_eq!((task.status, task.moved, account.next_move_ms()), (*status, 1, None), "case {number}");
        }
    }

    #[test]
    fn the_newest_tasks_are_listed() {
        let mut account = account(0);
        let ids: Vec<String> = (0..12).map(|now_ms| account.start_move(now_ms, "dead", None, None).unwrap()).collect();
        let listed: Vec<&str> = account.moves_of("dead").unwrap().iter().map(|task| task.id.as_str()).collect();
        assert_eq!(listed, ids.iter().rev().take(LISTED_MAX).collect::<Vec<_>>());
    }
}
