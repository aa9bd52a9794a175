//! Acts that are done once, however often they are asked for.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use claimant_core::error::Chain;
use claimant_core::{Error, ErrorKind};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use crate::done::Done;

/// Acts of which it is known what became of them: the latest.
const ACTS_MAX: usize = 64;

/// How long after an act ended it may be asked for by a second click. Later it is asked for by who wants it again, from a page that the
/// browser had kept.
const CLICKS: Duration = Duration::from_secs(10);

/// What is said to who wants an act again.
const BEFORE: &str = " That was before: a form counts once, and nothing was done now.";

/// What becomes of an act, and when that was.
type Work = Shared<BoxFuture<'static, (Result<Done, (ErrorKind, String)>, Instant)>>;

/// What becomes of an act, for all who wait for it.
#[derive(Clone)]
pub(crate) struct Outcome {
    work: Work,
    /// Whether it was over long before it was asked for.
    is_old: bool,
}

impl Outcome {
    /// Waits for it.
    ///
    /// # Errors
    /// Those of the act.
    pub(crate) async fn wait(self) -> Result<Done, Error> {
        let (done, _) = self.work.await;
        let mut done = done.map_err(|(kind, text)| Error::new(text).of_kind(kind))?;
        if self.is_old {
            done.notice.text.push_str(BEFORE);
        }
        Ok(done)
    }
}

/// The acts of forms.
pub(crate) struct Acts {
    last_form: u64,
    acts: VecDeque<Known>,
}

struct Known {
    name: u64,
    work: Work,
}

impl Acts {
    /// Returns none yet; the numbers of forms are above `after`.
    pub(crate) const fn new(after: u64) -> Self {
        Self { last_form: after, acts: VecDeque::new() }
    }

    /// Returns the number of a form that is drawn now.
    pub(crate) const fn new_form(&mut self) -> u64 {
        self.last_form += 1;
        self.last_form
    }

    /// Returns what becomes of the act of this name: `work`, unless such an act is under way or was done.
    pub(crate) fn outcome(
        &mut self,
        name: u64,
        work: impl Future<Output = Result<Done, Error>> + Send + 'static,
    ) -> Outcome {
        if let Some(known) = self.acts.iter().find(|known| known.name == name) {
            let ended = known.work.peek().map(|(_, ended)| ended.elapsed());
            return Outcome { work: known.work.clone(), is_old: ended.is_some_and(|ago| ago > CLICKS) };
        }
        if self.acts.len() == ACTS_MAX {
            self.acts.pop_front();
        }
        let work = async {
            let done = work.await.map_err(|error| (error.kind(), Chain(&error).to_string()));
            (done, Instant::now())
        };
        let work = work.boxed().shared();
        self.acts.push_back(Known { name, work: work.clone() });
        Outcome { work, is_old: false }
    }

    /// Forgets an act that failed, so that it can be tried again.
    pub(crate) fn forget(&mut self, outcome: &Outcome) {
        self.acts.retain(|known| !known.work.ptr_eq(&outcome.work));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn an_act_is_done_once_and_who_wants_it_again_later_is_told() {
        let mut acts = Acts::new(7);
        assert_eq!([acts.new_form(), acts.new_form()], [8, 9]);
        let act = |text: &'static str| async move { Ok(Done::new(text, "/", Value::Null)) };
        let said = async |outcome: Outcome| outcome.wait().await.unwrap().notice.text;
        let (first, second) = (acts.outcome(1, act("first")), acts.outcome(1, act("second")));
        assert_eq!([said(second).await, said(first).await], ["first", "first"]);
        assert_eq!(said(acts.outcome(2, act("other"))).await, "other");
        let ended = Instant::now().checked_sub(CLICKS * 2).unwrap();
        let done = Done::new("first", "/", Value::Null);
        acts.acts[0].work = async move { (Ok(done), ended) }.boxed().shared();
        assert_eq!(said(acts.outcome(1, act("third"))).await, "first");
        assert_eq!(said(acts.outcome(1, act("third"))).await, format!("first{BEFORE}"));
        // What failed may be tried again.
        let failed = acts.outcome(3, async { Err(Error::invalid("no")) });
        assert_eq!(failed.clone().wait().await.err().map(|error| error.kind()), Some(ErrorKind::Invalid));
        acts.forget(&failed);
        assert_eq!(said(acts.outcome(3, act("now"))).await, "now");
        for name in 4..4 + ACTS_MAX as u64 {
            acts.outcome(name, act("more"));
        }
        assert_eq!(said(acts.outcome(1, act("fourth"))).await, "fourth");
    }
}
