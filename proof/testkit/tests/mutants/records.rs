//! Bugs in what operators ask of a store, each caught by the clause that forbids it.

use std::future::pending;
use std::sync::Arc;

use claimant_core::{
    BoxFuture, Call, Cursor, Filter, MemoryStore, Page, Record, RecordId, Records, Replaced, Store, StoreError,
};
use claimant_testkit::contract;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    ReplacesBlindly,
    IgnoresTheOwner,
    IgnoresTheFence,
    IgnoresTheLease,
    IgnoresTheStatus,
    CreatesWhatIsAbsent,
    DropsTheNote,
    SaysItChanged,
    ShowsResults,
    MissesTheLast,
    MissesHashedKeys,
    MissesWithoutConsumer,
    ListsConsumersAlike,
    IgnoresStates,
    EachPartHasEverything,
    FollowsAnyCursor,
    HasNoEnd,
    Hangs,
    ChangesWhatItLists,
}

impl Bug {
    const ALL: [(usize, Self); 19] = [
        (14, Self::ReplacesBlindly),
        (14, Self::IgnoresTheOwner),
        (14, Self::IgnoresTheFence),
        (14, Self::IgnoresTheLease),
        (14, Self::IgnoresTheStatus),
        (14, Self::CreatesWhatIsAbsent),
        (14, Self::DropsTheNote),
        (14, Self::SaysItChanged),
        (15, Self::ShowsResults),
        (15, Self::MissesTheLast),
        (15, Self::MissesHashedKeys),
        (15, Self::MissesWithoutConsumer),
        (15, Self::ListsConsumersAlike),
        (15, Self::IgnoresStates),
        (15, Self::EachPartHasEverything),
        (15, Self::HasNoEnd),
        (15, Self::Hangs),
        (16, Self::FollowsAnyCursor),
        (17, Self::ChangesWhatItLists),
    ];
}

/// The store in memory with a bug.
struct Mutant {
    inner: MemoryStore,
    bug: Bug,
}

impl Mutant {
    async fn read(&self, id: &RecordId, call: Call<'_>) -> Result<Option<Record>, StoreError> {
        self.inner.get(id, call).await
    }

    async fn page(&self, filter: &Filter, from: &Cursor, call: Call<'_>) -> Result<Page, StoreError> {
        let any = Filter { states: Vec::new(), ..filter.clone() };
        let everyone = Filter { consumer: None, ..filter.clone() };
        let asked = match self.bug {
            Bug::IgnoresStates => &any,
            Bug::ListsConsumersAlike => &everyone,
            _ => filter,
        };
        let start = Cursor::new("");
        let from = match self.bug {
            Bug::EachPartHasEverything if from.as_str().starts_with("part") => &start,
            Bug::FollowsAnyCursor if from.as_str().starts_with("no") => &start,
            _ => from,
        };
        let mut page = self.inner.list(asked, from, call).await?;
        match self.bug {
            Bug::HasNoEnd => page.next = page.next.or_else(|| Some(from.clone())),
            Bug::Hangs => pending().await,
            Bug::MissesTheLast => drop(page.records.pop()),
            Bug::MissesWithoutConsumer if filter.consumer.is_none() => page.records.clear(),
            Bug::MissesHashedKeys => page.records.retain(|(id, _)| id.key().is_some()),
            Bug::ListsConsumersAlike => {
                let prefix = filter.consumer.as_ref().map_or("", |consumer| consumer.as_str());
                page.records.retain(|(id, _)| id.as_str().starts_with(prefix));
            }
            Bug::ShowsResults => {
                for (id, record) in &mut page.records {
                    *record = self.read(id, call).await?.unwrap_or_else(|| record.clone());
                }
            }
            Bug::ChangesWhatItLists => {
                for (id, record) in &page.records {
                    let next = Record { attempts: record.attempts + 1, ..record.clone() };
                    self.inner.replace(id, record, &next, call).await?;
                }
            }
            _ => {}
        }
        Ok(page)
    }
}

impl Records for Mutant {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            let Some(there) = self.read(id, call).await? else {
                if self.bug == Bug::CreatesWhatIsAbsent {
                    return Ok(Replaced::Done);
                }
                return Ok(Replaced::Changed);
            };
            let mut seen = seen.clone();
            match self.bug {
                Bug::ReplacesBlindly => seen = there,
                Bug::IgnoresTheOwner => seen.owner = there.owner,
                Bug::IgnoresTheFence => seen.fence = there.fence,
                Bug::IgnoresTheLease => seen.lease_until = there.lease_until,
                Bug::IgnoresTheStatus => seen.status = there.status,
                _ => {}
            }
            let dropped = Record { note: None, ..next.clone() };
            let next = if self.bug == Bug::DropsTheNote { &dropped } else { next };
            let replaced = self.inner.replace(id, &seen, next, call).await?;
            Ok(if self.bug == Bug::SaysItChanged { Replaced::Changed } else { replaced })
        })
    }

    fn cursors(&self, parts: usize, _: Call<'_>) -> BoxFuture<'_, Result<Vec<Cursor>, StoreError>> {
        let parts = if self.bug == Bug::EachPartHasEverything { parts } else { 1 };
        let cursors = (0..parts).map(|n| Cursor::new(if parts == 1 { String::new() } else { format!("part {n}") }));
        let cursors = cursors.collect();
        Box::pin(async { Ok(cursors) })
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.page(filter, from, call))
    }

    claimant_testkit::pass_on!(self => self.inner; size);
}

impl Store for Mutant {
    claimant_testkit::pass_on!(self => self.inner; claim, renew, settle, get);
}

#[tokio::test(start_paused = true)]
async fn bugs_that_operators_meet_are_caught() {
    let survey = async |bug| contract::survey_records(Arc::new(Mutant { inner: MemoryStore::new(), bug })).await;
    let clean = survey(Bug::None).await;
    assert!(clean.broken().is_empty(), "{clean}");
    for (clause, bug) in Bug::ALL {
        let findings = survey(bug).await;
        assert!(findings.broken().iter().any(|broken| broken.clause == Some(clause)), "{bug:?}: {findings}");
    }
}
