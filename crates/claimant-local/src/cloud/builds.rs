//! New builds of the functions, and changes of the template, while the cloud runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::programs::absolute;
use crate::lambda::{Function, LogSink};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The name under which the local cloud itself logs.
const OWN_NAME: &str = "claimant";

/// Looks until it is cut. Each look is a few calls of `stat`.
pub(super) async fn watch(functions: Vec<Function>, template: PathBuf, logs: LogSink) {
    let place = absolute(&template);
    let mut last = read(&place).await;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        for function in &functions {
            function.renew().await;
        }
        let now = read(&place).await;
        // A template that is gone is being written.
        if now.is_some() && now != last {
            let path = template.display();
            logs(OWN_NAME, &format!("{path} has changed: start `claimant local` again to apply it"));
            last = now;
        }
    }
}

async fn read(template: &Path) -> Option<Vec<u8>> {
    tokio::fs::read(template).await.ok().filter(|content| !content.is_empty())
}
