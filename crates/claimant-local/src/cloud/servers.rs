//! The servers of the endpoints, and how they stop.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Error;

/// Resolves when the servers are to stop.
pub(super) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Servers that run. Dropping them ends them.
#[derive(Default)]
pub(super) struct Servers {
    shutdown: watch::Sender<bool>,
    running: JoinSet<Result<(), Error>>,
}

impl Servers {
    /// Starts a server.
    pub(super) fn start<F>(&mut self, serve: impl FnOnce(Stop) -> F)
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let mut stopped = self.shutdown.subscribe();
        // An error means that the sender is gone, which stops the servers as well.
        let stop = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
        self.running.spawn(serve(Box::pin(stop)));
    }

    /// Stops the servers. What they have not answered within `max` is cut off.
    pub(super) async fn stop(self, max: Duration) {
        self.shutdown.send_replace(true);
        let _ = timeout(max, all_ended(self.running)).await;
    }
}

/// Resolves when every task has ended, whatever way; cancels those left when dropped.
pub(super) async fn all_ended<T: 'static>(mut tasks: JoinSet<T>) {
    while tasks.join_next().await.is_some() {}
}
