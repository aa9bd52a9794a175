//! Tenants take turns: none is held up by what another one has waiting, or has running for long.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{Consumer, Context, Engine, HandlerError, Limit, MemoryStore, Message};
use futures_util::future::join;
use tokio::time::{Instant, sleep};

use super::support::deliver;

/// Whose messages were started, by when: a body is its tenant and how many milliseconds it takes.
type Runs = Arc<Mutex<Vec<(String, Duration)>>>;

fn engine(set: impl FnOnce(Consumer<String>) -> Consumer<String>) -> (Engine, Runs) {
    let (runs, start) = (Runs::default(), Instant::now());
    let noted = Arc::clone(&runs);
    let handler = move |body: String, _: Context| {
        let noted = Arc::clone(&noted);
        async move {
            let (tenant, takes) = body.split_once(' ').unwrap();
            noted.lock().unwrap().push((tenant.to_owned(), start.elapsed()));
            sleep(Duration::from_millis(takes.parse().unwrap())).await;
            Ok::<_, HandlerError>(())
        }
    };
    let consumer = set(Consumer::new("c", MemoryStore::new(), handler));
    (Engine::with_defaults(consumer).unwrap(), runs)
}

fn fair(consumer: Consumer<String>) -> Consumer<String> {
    consumer.tenant_of_message(|body, _| body.split_once(' ').unwrap().0.to_owned())
}

/// So many messages of each of these tenants, in this order, each taking so many milliseconds.
fn batch(of: &[(&str, usize, u64)]) -> Vec<Message> {
    let each = of.iter().flat_map(|(tenant, count, ms)| (0..*count).map(move |n| (tenant, n, ms)));
    let message = |(tenant, n, ms)| Message::new(format!("{tenant}-{n}"), format!("\"{tenant} {ms}\"")).unwrap();
    each.map(message).map(|message| message.with_receive_count(1)).collect()
}

/// Returns the tenants in the order of their runs, each by its letter.
fn order(runs: &Runs) -> String {
    runs.lock().unwrap().iter().map(|(tenant, _)| tenant.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_with_few_messages_does_not_wait_behind_one_with_many_for_the_limit() {
    let limited = |consumer: Consumer<String>| consumer.limit(Limit::new("ses").per_second(10)).concurrency(50);
    let sent = [("a", 100, 5), ("b", 5, 5), ("c", 2, 5)];
    let (by_turns, runs) = engine(|consumer| fair(limited(consumer)));
    let report = deliver(&by_turns, &batch(&sent), 60).await;
    assert_eq!(report.counts()["completed"], 107);
    // By turns, until the others have nothing left.
    let seen = order(&runs);
    let last_of_others = seen.rfind(['b', 'c']).unwrap();
    assert!(last_of_others < 14, "{seen}");
    // Without a rule they come in their order.
    let (plain, runs) = engine(limited);
    deliver(&plain, &batch(&sent), 60).await;
    assert_eq!(order(&runs), format!("{}bbbbbcc", "a".repeat(100)));
}

#[tokio::test(start_paused = true)]
async fn a_tenant_whose_messages_are_slow_does_not_keep_all_slots() {
    let sent = [("a", 12, 2_000), ("b", 40, 10)];
    let (by_turns, runs) = engine(|consumer| fair(consumer.concurrency(4)));
    let report = deliver(&by_turns, &batch(&sent), 60).await;
    assert_eq!(report.counts()["completed"], 52);
    let quick_done = runs.lock().unwrap().iter().filter(|(tenant, _)| tenant == "b").map(|(_, at)| *at).max();
    let (plain, runs) = engine(|consumer| consumer.concurrency(4));
    deliver(&plain, &batch(&sent), 60).await;
    let plain_done = runs.lock().unwrap().iter().filter(|(tenant, _)| tenant == "b").map(|(_, at)| *at).max();
    println!("{quick_done:?} against {plain_done:?}");
    assert!(quick_done.unwrap() < Duration::from_secs(1), "{quick_done:?}");
    assert!(plain_done.unwrap() > Duration::from_secs(5), "{plain_done:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_tenant_has_in_hand_counts_in_all_invocations() {
    let (engine, runs) = engine(|consumer| fair(consumer.concurrency(4)).expected(Duration::from_secs(1)));
    // Of four slots, the first invocation's tenant has two; in the other one, the tenants that have none come first.
    let (first, second) = (batch(&[("a", 2, 3_000)]), batch(&[("x", 1, 500), ("b", 4, 500)]));
    let again: Vec<_> = (0..6).map(|n| Message::new(format!("more-{n}"), "\"a 500\"").unwrap()).collect();
    let second: Vec<_> = again.into_iter().chain(second).map(|message| message.with_receive_count(1)).collect();
    let later = async {
        sleep(Duration::from_millis(1)).await;
        deliver(&engine, &second, 60).await
    };
    join(deliver(&engine, &first, 60), later).await;
    assert_eq!(&order(&runs)[..6], "aaxbbb", "{}", order(&runs));
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_last_receive_comes_first_whose_ever_it_is() {
    let (engine, runs) = engine(|consumer| fair(consumer.concurrency(1)));
    let engine = engine.receives_max(3);
    let mut messages = batch(&[("a", 3, 10), ("b", 2, 10)]);
    for (message, count) in messages.iter_mut().zip([3, 3, 1, 1, 2]) {
        *message = message.clone().with_receive_count(count);
    }
    deliver(&engine, &messages, 60).await;
    assert_eq!(order(&runs), "aabab");
}
