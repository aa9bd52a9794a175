//! Several consumers behind one queue: each message to its own, in the order of its group, and one outcome for each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::CONCURRENCY_DEFAULT;
use claimant_core::report::{Outcome, Report};
use claimant_core::{
    BoxFuture, Confirmation, Consumer, Context, DeadLetter, Envelope, Event, HandlerError, HideAnswer, InvocationTime,
    Lease, MemoryStore, Message, Queue, Rejection, Router, RouterReport, Routes,
};
use fastrand::Rng;

use super::TIMEOUT;

/// What ran, in its order: consumer and key.
type Runs = Arc<Mutex<Vec<String>>>;

/// A consumer of bodies such as `"a ok"`: the consumer's kind, a key and what its handler does.
fn consumer(name: &'static str, runs: &Runs) -> Consumer<String> {
    let runs = Arc::clone(runs);
    let handler = move |text: String, _: Context| {
        let runs = Arc::clone(&runs);
        async move {
            let (key, action) = text.split_once(' ').unwrap_or_default();
            runs.lock().unwrap().push(format!("{name}/{key}"));
            match action {
                "slow" => tokio::time::sleep(Duration::from_millis(500)).await,
                "long" => tokio::time::sleep(Duration::from_secs(5)).await,
                "fail" => return Err(HandlerError::retry("not now")),
                "reject" => return Err(HandlerError::terminal("never")),
                _ => {}
            }
            Ok(())
        }
    };
    Consumer::new(name, MemoryStore::new(), handler)
        .key_of(|text| text.split(' ').next().unwrap_or_default().to_owned())
}

/// A body of lines `kind key action`, each an event of its own.
pub(super) struct Lines;

impl Envelope for Lines {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let event = |line: &str| {
            let (kind, content) = line.split_once(' ').ok_or_else(|| Rejection::new("a line without a kind"))?;
            let mut event = Event::default();
            event.kind = Some(kind.to_owned());
            Ok(message.clone().opened(format!("{content:?}"), event))
        };
        message.body().lines().map(event).collect()
    }
}

fn routes(runs: &Runs) -> Routes {
    let routes = Routes::by_kind().envelope(Lines);
    routes.on("a", consumer("for-a", runs)).on("b", consumer("for-b", runs)).on("c", consumer("for-c", runs))
}

fn messages(bodies: &[(&str, &str)]) -> Vec<Message> {
    let message = |(number, (group, body)): (usize, &(&str, &str))| {
        let message = Message::new(format!("m{number}"), *body).unwrap();
        if group.is_empty() { message } else { message.with_ordered_group(*group) }
    };
    bodies.iter().enumerate().map(message).collect()
}

/// A queue with a dead-letter queue, which takes all but what it is told to refuse; for that it needs a second.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) refused: Vec<usize>,
    pub(super) taken: Mutex<Vec<(usize, String)>>,
    pub(super) hidden: Mutex<Vec<usize>>,
}

impl Queue for Letters {
    fn hide(&self, index: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        self.hidden.lock().unwrap().push(index);
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn has_dead_letters(&self) -> bool {
        true
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        let answer = |letter: &DeadLetter| match self.refused.contains(&letter.index) {
            true => Confirmation::Unconfirmed,
            false => {
                self.taken.lock().unwrap().push((letter.index, letter.consumer.as_str().to_owned()));
                Confirmation::Confirmed
            }
        };
        let answers: Vec<_> = letters.iter().map(answer).collect();
        Box::pin(async move {
            if answers.contains(&Confirmation::Unconfirmed) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            answers
        })
    }
}

async fn process(router: &Router, batch: &[Message], queue: &Letters) -> RouterReport {
    let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
    let report = router.process(batch, time, queue).await;
    let is_one = |report: &Report| report.entries().iter().all(|entry| entry.details.events == 1);
    assert!(report.consumers().all(|(_, report)| is_one(report)), "each is one event");
    report
}

fn words(report: &RouterReport) -> String {
    super::words(report.all())
}

/// Returns the outcomes of each consumer, by its name.
fn by_consumer(report: &RouterReport) -> Vec<String> {
    report.consumers().map(|(name, report)| format!("{name}: {}", super::words(report))).collect()
}

#[tokio::test(start_paused = true)]
async fn each_message_goes_to_the_consumer_of_its_kind() {
    let runs = Runs::default();
    let router = Router::new(routes(&runs), CONCURRENCY_DEFAULT).unwrap();
    let batch =
        messages(&[("", "a 1 ok"), ("", "b 1 ok"), ("", "a 1 ok"), ("", "d 1 ok"), ("", "c 2 fail"), ("", "nothing")]);
    let queue = Letters::default();
    let report = process(&router, &batch, &queue).await;
    assert_eq!(words(&report), "completed completed duplicate rejected retry rejected");
    let wanted = ["for-a: completed duplicate", "for-b: completed", "for-c: retry", "unrouted: rejected rejected"];
    assert_eq!(by_consumer(&report), wanted);
    assert_eq!(*queue.taken.lock().unwrap(), [(3, "unrouted".to_owned()), (5, "unrouted".to_owned())]);
    let usage = report.all().totals.usage.requests;
    let of_consumers: u64 = report.consumers().map(|(_, report)| report.totals.usage.requests).sum();
    assert!(usage > 0 && usage == of_consumers, "{usage} {of_consumers}");
    assert_eq!(runs.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_no_route_takes_is_rejected_unless_the_function_says_otherwise() {
    let runs = Runs::default();
    let batch = messages(&[("", "d 1 ok"), ("g", "d 2 ok"), ("", "nothing")]);
    let refusing = Letters { refused: vec![0], ..Letters::default() };
    for (routes, queue, wanted) in [
        (routes(&runs), Letters::default(), "rejected rejected rejected"),
        (routes(&runs), refusing, "rejected rejected rejected"),
        (routes(&runs).acknowledge_unknown(), Letters::default(), "ignored ignored rejected"),
        (routes(&runs).otherwise(consumer("rest", &runs)), Letters::default(), "completed completed rejected"),
    ] {
        let router = Router::new(routes, CONCURRENCY_DEFAULT).unwrap();
        let report = process(&router, &batch, &queue).await;
        assert_eq!(words(&report), wanted);
        let failed: Vec<_> = report.all().failures().into_iter().map(|id| id.as_str()).collect();
        assert_eq!(failed, if queue.refused.is_empty() { vec![] } else { vec!["m0"] });
        let back = |index: usize| report.all().entries()[index].visible_after.is_some();
        assert_eq!(back(0), !queue.refused.is_empty());
    }
}

/// S4: the first ten are refused after the others were taken.
#[tokio::test(start_paused = true)]
async fn each_message_that_no_route_takes_has_its_own_answer_whichever_request_ends_first() {
    let router = Router::new(routes(&Runs::default()), CONCURRENCY_DEFAULT).unwrap();
    let refusing = Letters { refused: (0..10).collect(), ..Letters::default() };
    let report = process(&router, &messages(&[("", "d 1 ok"); 20]), &refusing).await;
    let failed: Vec<_> = report.all().failures().into_iter().map(|id| id.as_str().to_owned()).collect();
    assert_eq!(failed, (0..10).map(|n| format!("m{n}")).collect::<Vec<_>>());
}

/// S8, where nobody takes them: none may leave the queue before the one in front of it has.
#[tokio::test(start_paused = true)]
async fn messages_of_a_group_that_no_route_takes_keep_their_order() {
    let runs = Runs::default();
    let batch = messages(&[("g", "d 1 ok"), ("g", "d 2 ok"), ("h", "d 3 ok"), ("h", "d 4 ok"), ("", "d 5 ok")]);
    let router = Router::new(routes(&runs), CONCURRENCY_DEFAULT).unwrap();
    let refusing = Letters { refused: vec![0], ..Letters::default() };
    let report = process(&router, &batch, &refusing).await;
    assert_eq!(words(&report), "rejected blocked rejected rejected rejected");
    let failed: Vec<_> = report.all().failures().into_iter().map(|id| id.as_str()).collect();
    assert_eq!(failed, ["m0", "m1"]);
    let mut taken: Vec<_> = refusing.taken.lock().unwrap().iter().map(|(index, _)| *index).collect();
    assert!(taken.iter().position(|index| *index == 2) < taken.iter().position(|index| *index == 3), "{taken:?}");
    taken.sort_unstable();
    assert_eq!(taken, [2, 3, 4]);
}

/// S4: one copy of a message of several events, once all of them are done, and never while one is to be tried again.
#[tokio::test(start_paused = true)]
async fn a_message_of_several_events_is_done_when_all_are() {
    for group in ["", "g"] {
        type Case<'a> = (&'a str, &'a str, &'a [(usize, &'a str)]);
        let cases: &[Case<'_>] = &[
            ("a 1 ok\nb 1 ok\na 2 ok", "completed", &[]),
            ("a 1 ok\nb 1 fail\nc 1 ok", "retry", &[]),
            ("a 1 reject\nb 1 ok\nc 1 reject", "rejected", &[(0, "for-a")]),
            ("a 1 ok\nb 1 ok\nd 1 ok", "rejected", &[(0, "unrouted")]),
            ("a 1 reject\nb 1 fail", "retry", &[]),
            ("d 1 reject\na 1 fail", "retry", &[]),
        ];
        for (body, wanted, letters) in cases {
            let runs = Runs::default();
            let router = Router::new(routes(&runs), CONCURRENCY_DEFAULT).unwrap();
            let queue = Letters::default();
            let report = process(&router, &messages(&[(group, body), (group, "b 9 ok")]), &queue).await;
            let next = if group == "g" && *wanted == "retry" { "blocked" } else { "completed" };
            assert_eq!(words(&report), format!("{wanted} {next}"), "{body:?} {:?}", by_consumer(&report));
            let taken: Vec<_> = queue.taken.lock().unwrap().clone();
            assert_eq!(taken, letters.iter().map(|(index, name)| (*index, (*name).to_owned())).collect::<Vec<_>>());
            // Without a confirmed copy it stays, and blocks its group.
            if *wanted == "rejected" {
                let refusing = Letters { refused: vec![0], ..Letters::default() };
                let router = Router::new(routes(&runs), CONCURRENCY_DEFAULT).unwrap();
                let report = process(&router, &messages(&[(group, body), (group, "b 9 ok")]), &refusing).await;
                let next = if group == "g" { "blocked" } else { "completed" };
                assert_eq!(words(&report), format!("rejected {next}"), "{body:?}");
                assert_eq!(report.all().failures()[0].as_str(), "m0");
                let mut parts = report.consumers().flat_map(|(_, report)| report.entries());
                assert!(!parts.any(|entry| matches!(entry.outcome, Outcome::Rejected { dead_lettered: true, .. })));
            }
        }
    }
}

/// S8: in a group nothing runs after a failure, whichever consumers the messages are for, and nothing out of order.
#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_order_across_routes() {
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let mut pick = |from: &[&'static str]| from[random.usize(..from.len())];
        let mut line = |number: usize| {
            let kind = pick(&["a", "a", "b", "c", "d"]);
            format!("{kind} {number} {}", pick(&["ok", "ok", "ok", "slow", "slow", "fail", "reject"]))
        };
        let bodies: Vec<_> =
            (0..12).map(|n| if n % 5 == 4 { format!("{}\n{}", line(n), line(n + 100)) } else { line(n) }).collect();
        let groups: Vec<_> = (0..12).map(|_| pick(&["g", "g", "h", ""])).collect();
        let batch: Vec<_> = groups.iter().copied().zip(bodies.iter().map(String::as_str)).collect();
        let runs = Runs::default();
        let routes = if seed % 2 == 0 { routes(&runs).acknowledge_unknown() } else { routes(&runs) };
        let router = Router::new(routes, CONCURRENCY_DEFAULT).unwrap();
        let report = process(&router, &messages(&batch), &Letters::default()).await;
        let shown = format!("seed {seed}: {batch:?} {}", words(&report));
        assert_eq!(report.all().entries().len(), batch.len(), "{shown}");
        let runs = runs.lock().unwrap().clone();
        for group in ["g", "h"] {
            let of_group: Vec<_> = (0..batch.len()).filter(|index| groups[*index] == group).collect();
            let failed = of_group.iter().position(|index| !report.all().entries()[*index].outcome.is_success());
            // What ran, in the order of the group, up to the first failure.
            let mut ran = Vec::new();
            'messages: for (position, index) in of_group.iter().enumerate() {
                for line in bodies[*index].lines() {
                    let words: Vec<_> = line.split(' ').collect();
                    if words[0] != "d" {
                        ran.push(format!("for-{}/{}", words[0], words[1]));
                    }
                    if words[0] != "d" && words[2] == "fail" {
                        assert_eq!(failed, Some(position), "{shown}");
                        break 'messages;
                    }
                }
            }
            let seen: Vec<_> = runs.iter().filter(|run| ran.contains(run)).collect();
            assert_eq!(seen, ran.iter().collect::<Vec<_>>(), "{shown}");
            for index in of_group.iter().skip(failed.map_or(usize::MAX, |failed| failed + 1)) {
                assert_eq!(report.all().entries()[*index].outcome, Outcome::Blocked, "{shown}");
                let keys = bodies[*index].lines().map(|line| line.split(' ').nth(1).unwrap());
                keys.for_each(|key| assert!(!runs.iter().any(|run| run.ends_with(&format!("/{key}"))), "{shown}"));
            }
        }
    }
}

/// An envelope that takes longer to open than a batch without time has.
struct Tough;

impl Envelope for Tough {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        std::thread::sleep(Duration::from_millis(120));
        Lines.open(message)
    }
}

/// Shown at once, what a function cannot start because it never has time would be dead-lettered within seconds.
#[tokio::test]
async fn without_time_what_is_not_opened_stays_as_hidden_as_the_rest() {
    let runs = Runs::default();
    let router = Router::new(Routes::by_kind().envelope(Tough).on("a", consumer("for-a", &runs)), 1).unwrap();
    let time = InvocationTime::new(router.now(), router.now(), Duration::from_millis(500));
    let report = router.process(&messages(&[("", "a 1 ok"), ("", "a 2 ok")]), time, &Letters::default()).await;
    assert_eq!(words(&report), "not_started not_started");
    assert_eq!(by_consumer(&report), ["for-a: not_started", "unrouted: not_started"]);
    assert!(report.all().entries().iter().all(|entry| entry.visible_after.is_none()), "{:?}", report.all().entries());
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_hides_the_message_that_its_event_came_in() {
    let runs = Runs::default();
    let renewed = |name| consumer(name, &runs).lease(Lease::Renewed(Duration::from_secs(3)));
    let routes = Routes::by_kind().envelope(Lines).on("a", renewed("for-a")).on("b", renewed("for-b"));
    let (router, queue) = (Router::new(routes, CONCURRENCY_DEFAULT).unwrap(), Letters::default());
    let report = process(&router, &messages(&[("", "a 1 ok"), ("", "b 1 long")]), &queue).await;
    assert_eq!(words(&report), "completed completed");
    let hidden = queue.hidden.into_inner().unwrap();
    assert!(!hidden.is_empty() && hidden.iter().all(|index| *index == 1), "{hidden:?}");
}
