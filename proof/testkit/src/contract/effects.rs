//! What a handler does in a store's transaction, for the checks of transactions.

use std::time::Duration;

use tokio::time::timeout;

use super::examiner::{Finding, ensure};

/// What is written in a transaction, such as rows of a test's own table.
pub trait Effects<T> {
    /// Writes, in the transaction, what this text tells from everything else.
    fn write(&self, transaction: &mut T, text: &str) -> impl Future<Output = ()>;

    /// Counts how often that is there, committed. It must not wait for the end of an open transaction that writes it: one is counted beside.
    fn count(&self, text: &str) -> impl Future<Output = usize>;
}

/// How long a call may take beside an open transaction: less than a database lets that be open.
pub(super) const BESIDE_OPEN: Duration = Duration::from_secs(10);

/// Writes this in the transaction.
pub(super) async fn wrote<T>(effects: &impl Effects<T>, transaction: &mut T, text: &str) -> Finding {
    let written = timeout(BESIDE_OPEN, effects.write(transaction, text)).await;
    written.map_err(|_| format!("a write in a transaction had not ended after {BESIDE_OPEN:?}"))
}

/// How often this is there.
pub(super) async fn counted<T>(effects: &impl Effects<T>, text: &str) -> Result<usize, String> {
    let counted = timeout(BESIDE_OPEN, effects.count(text)).await;
    counted.map_err(|_| format!("what was written is not counted in {BESIDE_OPEN:?}: it may wait for a transaction"))
}

/// Each of these is there so often.
pub(super) async fn are_there<'a, T>(
    effects: &impl Effects<T>,
    texts: impl IntoIterator<Item = &'a str>,
    wanted: usize,
) -> Finding {
    for (n, text) in texts.into_iter().enumerate() {
        let count = counted(effects, text).await?;
        ensure(count == wanted, || format!("what was written under claim {} is there {count} times", n + 1))?;
    }
    Ok(())
}
