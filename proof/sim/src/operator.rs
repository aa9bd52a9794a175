//! Operators, who act on keys while consumers work: with the library that the commands call, over a wire of their own.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use claimant_core::protocol;
use claimant_core::{BoxFuture, Call, Clock, Record, RecordId, Records, Replaced, Store, StoreError, Timestamp};
use claimant_dynamodb::LockTable;
use claimant_operate::keys::{Acted, Keys, Order};
use tokio::time::{Instant, sleep, timeout};

use crate::calls::LOCKS;
use crate::handler::{lock_table, own_process};
use crate::history::Event;
use crate::mutant::Mutant;
use crate::scenario::{Act, Fault, Scenario};
use crate::wire::Wire;
use crate::world::{BEGIN_MS, State, World};

/// Longer than any act takes whose operator lives.
const ACT_MAX: Duration = Duration::from_secs(300);

/// How often an operator looks who watches.
const LOOK: Duration = Duration::from_millis(250);

/// An operator with a process of its own.
pub struct Operator {
    world: World,
    table: LockTable,
}

impl Operator {
    /// An operator who has done nothing yet.
    #[must_use]
    pub fn new(world: &World, aws: &SdkConfig) -> Self {
        let wire = Wire { world: world.clone(), of_operator: true };
        let aws = own_process(aws).into_builder().http_client(wire).build();
        Self { world: world.clone(), table: lock_table(&aws) }
    }

    /// Acts, if that is what happens.
    ///
    /// # Panics
    /// When the key has no record id.
    pub async fn act(self, fault: &Fault) {
        let Fault::Operate { key, act, watch_ms, pause_ms, dies, .. } = *fault else { return };
        if !self.world.state().faults {
            return;
        }
        let Self { world, table } = self;
        let id = world.scenario.record_of(key, "");
        watch(&world, &id, Duration::from_millis(watch_ms)).await;
        let order = Order {
            id: RecordId::from_stored(id.as_str()).expect("a consumer and a key"),
            act: act.into(),
            by: "ada".to_owned(),
            why: "simulated".to_owned(),
            force: world.mutant == Some(Mutant::ActsForced),
            dry_run: false,
        };
        let hesitant = Hesitant { table, pause: Duration::from_millis(pause_ms), dies };
        let skew = Duration::from_millis(Scenario::SKEW_MS.unsigned_abs());
        let keys = Keys::new(Arc::new(hesitant)).clock(Arc::new(Right(world.clone()))).skew(skew);
        let came = match timeout(ACT_MAX, keys.act(&order)).await {
            Err(_) => "died",
            Ok(Err(_) | Ok(Acted::Unknown { .. })) => "unanswered",
            Ok(Ok(Acted::Done { .. })) => "done",
            Ok(Ok(Acted::NothingToDo(_))) => "nothing to do",
            Ok(Ok(Acted::Refused { .. })) => "refused",
            Ok(Ok(_)) => "superseded",
        };
        world.note(Event::Operated { id, act, came });
    }
}

/// Waits until the key needs an operator, for so long at most.
async fn watch(world: &World, id: &str, most: Duration) {
    let end = Instant::now() + most;
    while Instant::now() < end {
        let now = world.now_ms();
        {
            let mut state = world.state();
            let State { dynamo, owners, .. } = &mut *state;
            let record = dynamo.item(LOCKS, id).map(|item| owners.record(item));
            let needs = record.is_some_and(|record| match record.status.as_str() {
                "PARKED" | "REJECTED" => true,
                "IN_PROGRESS" => !record.is_busy_at(now),
                _ => false,
            });
            if needs {
                return;
            }
        }
        sleep(LOOK).await;
    }
}

impl From<Act> for protocol::Act {
    fn from(act: Act) -> Self {
        match act {
            Act::Release => Self::Release,
            Act::Reset => Self::Reset,
            Act::Forget => Self::Forget,
            Act::Resolve => Self::Resolve,
        }
    }
}

/// A clock that is right.
struct Right(World);

impl Clock for Right {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN_MS + self.0.now_ms())
    }
}

/// The lock table of an operator who hesitates before writing, or dies then.
struct Hesitant {
    table: LockTable,
    pause: Duration,
    dies: bool,
}

impl Store for Hesitant {
    claimant_test::pass_on!(self => self.table; claim, renew, settle, get);
}

impl Records for Hesitant {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        Box::pin(async move {
            sleep(self.pause).await;
            if self.dies {
                return pending().await;
            }
            self.table.replace(id, seen, next, call).await
        })
    }

    claimant_test::pass_on!(self => self.table; list, size);
}
