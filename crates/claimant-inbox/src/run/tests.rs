use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BoxFuture, Call, Claim, ClaimAnswer, HandlerError, Limit, Record, RecordId, Renewed, Settled, Store,
    TransactionGuard,
};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

use super::*;
use crate::connections::Connections;
use crate::context::InboxContext;
use crate::transaction::Transaction;

/// A store that gives no answer.
struct Silent;

impl Store for Silent {
    fn claim<'a>(&'a self, _: &'a ClaimRequest, _: Call<'a>) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(pending())
    }

    fn renew<'a>(&'a self, _: &'a mut Claim, _: Renewal, _: Call<'a>) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(pending())
    }

    fn settle<'a>(&'a self, _: Claim, _: &'a Settlement, _: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(pending())
    }

    fn get<'a>(&'a self, _: &'a RecordId, _: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(pending())
    }
}

async fn handler(_: u64, _: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_returns_in_its_time_where_the_store_of_its_limit_is_silent() {
    let pool = PgPool::connect_lazy_with(PgConnectOptions::new());
    let connections = Arc::new(Connections::of(&pool));
    let worker = Worker::new(pool, connections, "orders".to_owned()).on("ok", handler);
    let worker = worker.limit(Limit::new("mail").per_second(1), Silent).checked().expect("it can run");
    let (shared, begun) = (Arc::clone(&worker.shared), Instant::now());
    let deadlines = Deadlines { begin_by: begun, return_by: begun + Duration::from_secs(1) };
    let mut run = WorkerLoop::new(worker, &shared, u64::MAX, Some(deadlines));
    // It has asked for a slot.
    run.way.found(1);
    run.way.go_on(Some(1));
    assert_eq!(run.work(pending()).await.expect("nothing failed"), Summary::default());
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}
