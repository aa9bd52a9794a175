//! Each store, throttled or away for a while within an invocation of 30 s: no effect is repeated, no finished work is parked,
//! and the report is back in time (F2). In real time, all of them at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{Clock, Consumer, Engine, InvocationTime, Message, NoQueue, OwnerToken, Store};
use claimant_dynamodb::LockTable;
use claimant_redis::RedisStore;
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{FaultyStore, MovableClock};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::services::{MariaDb, Postgres, Redis};
use claimant_tests::tap::Tap;
use claimant_tests::wire::{Loss, Wire};
use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Barrier;
use tokio::time::Instant;

/// The invocation's timeout.
const INVOCATION: Duration = Duration::from_secs(30);

/// Messages in a batch, and handlers at once.
const COUNT: usize = 5;

/// Connections of each pool: fewer than there are handlers.
const CONNECTIONS: u32 = 2;

/// What DynamoDB says where a table has too many requests.
const THROTTLED: Loss = Loss::Instead(
    400,
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}"#,
);

/// Sends the store away, or has it back.
type Switch = Arc<dyn Fn(bool) + Send + Sync>;

/// A store that can be sent away.
struct Party {
    name: String,
    store: Arc<dyn Store>,
    switch: Switch,
}

/// When the store goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// After all effects, before the first completion.
    Effects,
    /// Before the first claim.
    Start,
}

/// One invocation with an outage, and a redelivery when every lease is over.
async fn outlasts(party: Party, at: At, away: Duration, at_most_once: bool) {
    let name = format!("{}, away at {at:?} for {away:?}, at most once: {at_most_once}", party.name);
    let effects: Arc<Mutex<Vec<String>>> = Arc::default();
    let (done, all, switch) = (Arc::clone(&effects), Arc::new(Barrier::new(COUNT)), Arc::clone(&party.switch));
    let handler = move |work: Work, _cx| {
        let (done, all, switch) = (Arc::clone(&done), Arc::clone(&all), Arc::clone(&switch));
        async move {
            done.lock().unwrap().push(work.id);
            if at == At::Effects {
                // All of them are done before any is completed.
                if all.wait().await.is_leader() {
                    be_away(switch, away);
                }
                all.wait().await;
            }
            Ok(())
        }
    };
    let clock = MovableClock::start();
    // A name of its own: all of them have the same keys.
    let owner = OwnerToken::draw().unwrap();
    let consumer =
        Consumer::new(format!("outage-{}", owner.as_str()), FaultyStore::new(Arc::clone(&party.store)), handler)
            .key(|w| &w.id);
    let consumer = if at_most_once { consumer.at_most_once() } else { consumer };
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
    let deliver = async |receive_count: u32| {
        let batch: Vec<Message> = (0..COUNT).map(|n| message(n, &format!("k{n} ok"), receive_count)).collect();
        let start = Instant::now();
        let (now, margin) = (clock.now(), Duration::from_millis(MARGIN_DEFAULT_MS));
        let report = engine.process(&batch, InvocationTime::new(now, now.plus(INVOCATION), margin), &NoQueue).await;
        let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
        (words.join(" "), start.elapsed(), report.totals.usage.requests)
    };
    if at == At::Start {
        be_away(Arc::clone(&party.switch), away);
    }
    let (words, took, requests) = deliver(1).await;
    println!("{name}: {requests} requests, back after {took:?}");
    assert_eq!(words, ["completed"; COUNT].join(" "), "{name}");
    assert!(took >= away && took <= INVOCATION - Duration::from_millis(MARGIN_DEFAULT_MS), "{name}: {took:?}");
    clock.advance(INVOCATION * 2);
    assert_eq!(deliver(2).await.0, ["duplicate"; COUNT].join(" "), "{name}");
    assert_eq!(effects.lock().unwrap().len(), COUNT, "{name}: each effect once");
}

fn be_away(switch: Switch, away: Duration) {
    switch(true);
    tokio::spawn(async move {
        tokio::time::sleep(away).await;
        switch(false);
    });
}

/// When each store goes away, for how long in seconds, and whether its work runs at most once.
const OUTAGES: [(At, u64, bool); 3] = [(At::Effects, 3, false), (At::Start, 3, false), (At::Effects, 20, true)];

/// Outages of every store, all at once: each on a store, and with a switch, of its own.
async fn all_at_once(parties: &[&(dyn Fn() -> BoxFuture<'static, Party> + Sync)], longest_s: u64) {
    let mut outages = Vec::new();
    for party in parties {
        for (at, away_s, at_most_once) in OUTAGES.into_iter().filter(|(_, away_s, _)| *away_s <= longest_s) {
            outages.push(outlasts(party().await, at, Duration::from_secs(away_s), at_most_once));
        }
    }
    let start = Instant::now();
    join_all(outages).await;
    println!("all of them took {:?}", start.elapsed());
}

/// The lock table over a wire on which every request fares like this during the outage.
fn lock_table(dynamodb: &DynamoDb, name: &'static str, loss: Loss) -> impl Fn() -> BoxFuture<'static, Party> + Sync {
    let endpoint = dynamodb.over();
    move || {
        let wire = Wire::default();
        let store = Arc::new(LockTable::new(endpoint(&wire), "outages"));
        let switch = Arc::new(move |away: bool| wire.all(away.then_some(loss)));
        Box::pin(std::future::ready(Party { name: format!("the lock table, {name}"), store, switch }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_table_is_outlasted() {
    let dynamodb = DynamoDb::embedded().await;
    dynamodb.lock_table("outages").await;
    let throttled = lock_table(&dynamodb, "throttled", THROTTLED);
    let not_reached = lock_table(&dynamodb, "not reached", Loss::Request);
    all_at_once(&[&throttled, &not_reached], 3).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local, Redis, PostgreSQL and MariaDB: make test"]
async fn every_store_is_outlasted() {
    let (dynamodb, redis, postgres, mariadb) =
        (DynamoDb::local(), Redis::start(), Postgres::shared().await, MariaDb::shared().await);
    dynamodb.lock_table("outages").await;
    PostgresStore::connect(&postgres.url(), 1).await.unwrap().migrate().await.unwrap();
    MySqlStore::connect(&mariadb.url(), 1).await.unwrap().migrate().await.unwrap();
    let throttled = lock_table(&dynamodb, "throttled", THROTTLED);
    let not_reached = lock_table(&dynamodb, "not reached", Loss::Request);
    let on_redis = (redis.url(), redis.0.address.clone(), "Redis");
    let on_redis = [Way::Cut, Way::Silent].map(|way| {
        tapped(&on_redis, way, |url| {
            Box::pin(async move { Arc::new(RedisStore::open(&url).unwrap()) as Arc<dyn Store> })
        })
    });
    let on_postgres = (postgres.url(), postgres.address().to_owned(), "PostgreSQL");
    let on_postgres = [Way::Cut, Way::Silent].map(|way| {
        tapped(&on_postgres, way, |url| {
            Box::pin(
                async move { Arc::new(PostgresStore::connect(&url, CONNECTIONS).await.unwrap()) as Arc<dyn Store> },
            )
        })
    });
    let on_mariadb = (mariadb.url(), mariadb.address().to_owned(), "MariaDB");
    let on_mariadb = [Way::Cut, Way::Silent].map(|way| {
        tapped(&on_mariadb, way, |url| {
            Box::pin(async move { Arc::new(MySqlStore::connect(&url, CONNECTIONS).await.unwrap()) as Arc<dyn Store> })
        })
    });
    let on_clusters =
        [Way::Cut, Way::Silent].map(|way| move || -> BoxFuture<'static, Party> { Box::pin(on_cluster(way)) });
    let (redis, clusters) = (on_redis.each_ref(), on_clusters.each_ref());
    let (postgres, mariadb) = (on_postgres.each_ref(), on_mariadb.each_ref());
    let mut parties: Vec<&(dyn Fn() -> BoxFuture<'static, Party> + Sync)> = vec![&throttled, &not_reached];
    for n in 0..2 {
        parties.push(redis[n]);
        parties.push(clusters[n]);
        parties.push(postgres[n]);
        parties.push(mariadb[n]);
    }
    all_at_once(&parties, 20).await;
}

/// A cluster of its own, whose node with nearly all keys goes away while the other one stays and sends its clients there.
async fn on_cluster(way: Way) -> Party {
    let (nodes, tap) = Redis::tapped_cluster([["0", "0"], ["1", "16383"]]).await;
    let urls = format!("{},redis://claimant:claimant@{}/", nodes[0].url(), tap.address);
    let store = Arc::new(RedisStore::open_cluster(&urls).unwrap());
    let switch: Switch = Arc::new(move |away| {
        // They end with the switch.
        let _nodes = &nodes;
        way.switch(&tap, away);
    });
    Party { name: format!("a node of a Redis cluster, {way:?}"), store, switch }
}

/// What a tap does to connections during the outage.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// It cuts them, and refuses new ones.
    Cut,
    /// Nothing comes over them any more.
    Silent,
}

impl Way {
    fn switch(self, tap: &Tap, away: bool) {
        match self {
            Self::Cut => tap.shut(away),
            Self::Silent => tap.hush(away),
        }
    }
}

/// A server's URL, its address in it and its name.
type Server = (String, String, &'static str);

/// A store over a tap before its server.
fn tapped(
    (url, server, name): &Server,
    way: Way,
    open: fn(String) -> BoxFuture<'static, Arc<dyn Store>>,
) -> impl Fn() -> BoxFuture<'static, Party> + Sync {
    let (url, server, name) = (url.clone(), server.clone(), *name);
    move || {
        let (url, server) = (url.clone(), server.clone());
        Box::pin(async move {
            let tap = Tap::before(&server).await;
            let store = open(url.replace(&server, &tap.address)).await;
            let switch: Switch = Arc::new(move |away| way.switch(&tap, away));
            Party { name: format!("{name}, {way:?}"), store, switch }
        })
    }
}
