//! What a handler does in a store's transaction, for the checks of transactions.

use super::examiner::{Finding, ensure};

/// What is written in a transaction, such as rows of a test's own table.
pub trait Effects<T> {
    /// Writes, in the transaction, what this text tells from everything else.
    fn write(&self, transaction: &mut T, text: &str) -> impl Future<Output = ()>;

    /// Counts how often that is there, committed.
    fn count(&self, text: &str) -> impl Future<Output = usize>;
}

/// Each of these is there so often.
pub(super) async fn are_there<'a, T>(
    effects: &impl Effects<T>,
    texts: impl IntoIterator<Item = &'a str>,
    wanted: usize,
) -> Finding {
    for (n, text) in texts.into_iter().enumerate() {
        let count = effects.count(text).await;
        ensure(count == wanted, || format!("what was written under claim {} is there {count} times", n + 1))?;
    }
    Ok(())
}
