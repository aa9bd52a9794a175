//! A message move task, and when its messages are due. Pure: time is an argument.

/// The fastest pace, in messages a second.
pub(super) const PACE_MAX_PER_S: u64 = 500;
/// Tasks of one source that are listed at most; older ones are forgotten.
pub(super) const LISTED_MAX: usize = 10;

/// A task, running or over.
#[derive(Clone, Debug)]
pub(super) struct MoveTask {
    pub(super) id: String,
    /// The name of the dead-letter queue.
    pub(super) source: String,
    /// Where all messages go; `None`: each to the queue that gave up on it.
    pub(super) destination: Option<String>,
    /// Messages a second; `None`: all at once.
    pub(super) pace_per_s: Option<u64>,
    pub(super) started_ms: u64,
    pub(super) to_move: usize,
    pub(super) moved: usize,
    pub(super) status: MoveStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveStatus {
    Running,
    Completed,
    Cancelled,
    Failed { reason: &'static str },
}

impl MoveTask {
    pub(super) fn is_running(&self) -> bool {
        self.status == MoveStatus::Running
    }

    /// How many messages are due by now: the first at the start, each other a pace later.
    pub(super) fn due(&self, now_ms: u64) -> usize {
        let Some(pace_per_s) = self.pace_per_s else {
            return self.to_move;
        };
        let later = now_ms.saturating_sub(self.started_ms).saturating_mul(pace_per_s) / 1_000;
        usize::try_from(later).unwrap_or(usize::MAX).saturating_add(1).min(self.to_move)
    }

    /// When the next message is due.
    pub(super) fn next_ms(&self) -> u64 {
        let moved = u64::try_from(self.moved).unwrap_or(u64::MAX);
        let pace_per_s = self.pace_per_s.unwrap_or(PACE_MAX_PER_S).max(1);
        self.started_ms.saturating_add(moved.saturating_mul(1_000).div_ceil(pace_per_s))
    }
}
