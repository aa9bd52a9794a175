//! Messages that come back later than a queue can hide them: sent again by a schedule, and a success only with that confirmed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::VISIBILITY_MAX_S;
use claimant_core::own_attributes::SENT_AGAIN_OF;
use claimant_core::{
    AttributeValue, BoxFuture, Confirmation, Consumer, Context, DeadLetter, Engine, HandlerError, HideAnswer,
    InvocationTime, MemoryStore, Message, Outcome, Queue, Report, Router, Routes, SendAgain, StoreErrorKind,
};
use claimant_testkit::logs::Logs;
use claimant_testkit::{Call, Fault, FaultyStore};

use super::payloads::{Rows, Shelf};
use super::routes::Lines;
use super::{TIMEOUT, words};

const DAYS: u64 = 3 * 86_400;

/// A queue with schedules.
#[derive(Default)]
struct Scheduling {
    /// The messages whose schedules it does not confirm.
    refused: Vec<usize>,
    silent: bool,
    asked: Mutex<Vec<SendAgain>>,
}

impl Queue for Scheduling {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn has_dead_letters(&self) -> bool {
        true
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        Box::pin(std::future::ready(vec![Confirmation::Confirmed; letters.len()]))
    }

    fn has_schedules(&self) -> bool {
        true
    }

    fn send_again<'a>(&'a self, messages: &'a [SendAgain], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        self.asked.lock().unwrap().extend(messages);
        if self.silent {
            return Box::pin(std::future::pending());
        }
        let answer = |message: &SendAgain| match self.refused.contains(&message.index) {
            true => Confirmation::Unconfirmed,
            false => Confirmation::Confirmed,
        };
        Box::pin(std::future::ready(messages.iter().map(answer).collect()))
    }
}

/// A consumer of bodies such as `"a 3600"`: a key, and after how many seconds its handler wants to be called again; or `reject`.
fn consumer(name: &str) -> Consumer<String> {
    on(name, FaultyStore::new(Arc::new(MemoryStore::new())))
}

fn on(name: &str, store: FaultyStore) -> Consumer<String> {
    let handler = |text: String, _: Context| async move {
        let word = text.split(' ').nth(1).unwrap_or_default();
        match word.parse() {
            Ok(seconds) => Err(HandlerError::retry("not yet").after(Duration::from_secs(seconds))),
            Err(_) if word == "reject" => Err(HandlerError::terminal("never")),
            Err(_) => Ok(()),
        }
    };
    Consumer::new(name, store, handler).key_of(|text: &String| text.split(' ').next().unwrap_or_default().to_owned())
}

fn messages(bodies: &[&str]) -> Vec<Message> {
    let message = |(number, body): (usize, &&str)| Message::new(format!("m{number}"), format!("{body:?}")).unwrap();
    bodies.iter().enumerate().map(message).collect()
}

async fn process(consumer: Consumer<String>, batch: &[Message], queue: &Scheduling) -> Report {
    let engine = Engine::with_defaults(consumer).unwrap().receives_max(3);
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    engine.process(batch, time, queue).await
}

/// For how many seconds each message is hidden, if it is.
fn hidden(report: &Report) -> Vec<Option<u64>> {
    report.entries().iter().map(|entry| entry.visible_after.map(|after| after.as_secs())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_is_a_success_once_its_schedule_is_confirmed() {
    let queue = Scheduling { refused: vec![3], ..Scheduling::default() };
    let most = VISIBILITY_MAX_S;
    let bodies =
        ["a 259200".to_owned(), format!("b {most}"), "c 77".to_owned(), "d 259200".to_owned(), "e ok".to_owned()];
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let report = process(consumer("c"), &messages(&bodies), &queue).await;
    assert_eq!(words(&report), "scheduled retry retry retry completed");
    assert_eq!(hidden(&report), [None, Some(most), Some(77), Some(most), None]);
    assert_eq!(report.failures().len(), 3);
    let asked = queue.asked.into_inner().unwrap();
    assert_eq!(asked.iter().map(|message| message.index).collect::<Vec<_>>(), [0, 3]);
    let after = asked[0].at.since(claimant_core::Clock::now(&claimant_core::SystemClock)).as_secs();
    assert!((DAYS - 5..=DAYS).contains(&after), "{after}");
}

/// It is dead-lettered then, whether another of its events fails, for this consumer or another one, or its schedule is not confirmed.
#[tokio::test(start_paused = true)]
async fn what_is_not_sent_again_is_shown_at_once_on_its_last_receive() {
    for (receive_count, back) in [(2, Some(VISIBILITY_MAX_S)), (3, Some(0)), (4, Some(VISIBILITY_MAX_S))] {
        let bodies = ["a 1 5\na 2 259200", "a 3 5\nb 4 259200", "a 5 259200", "a 6 259200"];
        let message = |(number, body): (usize, &&str)| Message::new(format!("m{number}"), *body).unwrap();
        let batch: Vec<_> =
            bodies.iter().enumerate().map(message).map(|message| message.with_receive_count(receive_count)).collect();
        let routes = Routes::by_kind().envelope(Lines).on("a", consumer("for-a")).on("b", consumer("for-b"));
        let router = Router::new(routes, 10).unwrap().receives_max(3);
        let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
        let queue = Scheduling { refused: vec![2], ..Scheduling::default() };
        let report = router.process(&batch, time, &queue).await;
        assert_eq!(words(report.all()), "retry retry retry scheduled");
        assert_eq!(hidden(report.all()), [back, back, back, None], "{receive_count}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_has_its_time_and_no_more() {
    let queue = Scheduling { silent: true, ..Scheduling::default() };
    let start = tokio::time::Instant::now();
    let report = process(consumer("c"), &messages(&["a 259200"]), &queue).await;
    assert!(start.elapsed() < TIMEOUT, "{:?}", start.elapsed());
    assert_eq!((words(&report).as_str(), hidden(&report)), ("retry", vec![Some(VISIBILITY_MAX_S)]));
}

/// Its handler may have to run again at once: whether its claim was let go is not known.
#[tokio::test(start_paused = true)]
async fn nothing_is_scheduled_whose_claim_is_not_known_to_be_settled() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    store.fail_next(Call::Settle, Fault::NotApplied(StoreErrorKind::Denied));
    let queue = Scheduling::default();
    let report = process(on("c", store), &messages(&["a 259200"]), &queue).await;
    assert_eq!(words(&report), "settle_unknown");
    assert!(queue.asked.into_inner().unwrap().is_empty());
}

/// An earlier delivery of it may do its work meanwhile, and that must be remembered until the copy comes.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_after_its_window() {
    let queue = Scheduling::default();
    let days = |days: u64| Duration::from_secs(days * 86_400);
    for (window, wanted) in [(4, "scheduled"), (3, "retry")] {
        let report = process(consumer("c").window(days(window)), &messages(&["a 259200"]), &queue).await;
        assert_eq!(words(&report), wanted, "{window} days");
    }
    let report = process(consumer("c").at_most_once(), &messages(&["a 259200", "b 99999999999"]), &queue).await;
    assert_eq!((words(&report).as_str(), hidden(&report)), ("scheduled retry", vec![None, Some(VISIBILITY_MAX_S)]));
}

#[tokio::test(start_paused = true)]
async fn its_receives_begin_anew_so_its_last_one_does_not_matter() {
    let queue = Scheduling::default();
    let [last, short] = ["a 259200", "b 77"].map(|body| messages(&[body]).remove(0).with_receive_count(3));
    let report = process(consumer("c"), &[last, short], &queue).await;
    assert_eq!((words(&report).as_str(), hidden(&report)), ("scheduled retry", vec![None, Some(0)]));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_came_twice_is_scheduled_once_and_a_copy_of_its_work_for_itself() {
    let queue = Scheduling::default();
    let batch = messages(&["a 259200", "a 259200"]);
    let report = process(consumer("c"), &[batch[0].clone(), batch[0].clone(), batch[1].clone()], &queue).await;
    assert_eq!(words(&report), "scheduled scheduled scheduled");
    let asked: Vec<_> = queue.asked.into_inner().unwrap().iter().map(|message| message.index).collect();
    assert_eq!(asked, [0, 2]);
}

/// It leaves its group, which goes on with the next delivery.
#[tokio::test(start_paused = true)]
async fn what_is_behind_it_in_its_group_does_not_overtake_it_in_its_batch() {
    let queue = Scheduling::default();
    let batch: Vec<_> =
        messages(&["a 259200", "b ok"]).into_iter().map(|message| message.with_ordered_group("g")).collect();
    let report = process(consumer("c"), &batch, &queue).await;
    assert_eq!(words(&report), "scheduled blocked");
}

#[tokio::test(start_paused = true)]
async fn each_consumer_has_it_in_its_report() {
    let routes = Routes::by_attribute("kind").on("a", consumer("for-a")).on("b", consumer("for-b"));
    let router = Router::new(routes, 10).unwrap();
    let batch: Vec<_> = messages(&["k 259200", "l ok", "m 259200", "n reject"]);
    let kind = |(number, message): (usize, Message)| {
        let kind = if number % 2 == 0 { "a" } else { "b" };
        message.with_attribute("kind", AttributeValue::text(kind))
    };
    let batch: Vec<_> = batch.into_iter().enumerate().map(kind).collect();
    let queue = Scheduling { refused: vec![2], ..Scheduling::default() };
    let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
    let report = router.process(&batch, time, &queue).await;
    assert_eq!(words(report.all()), "scheduled completed retry rejected");
    let by_consumer: Vec<_> = report.consumers().map(|(name, report)| format!("{name}: {}", words(report))).collect();
    assert_eq!(by_consumer, ["for-a: scheduled retry", "for-b: completed rejected"]);
}

/// What the other consumers of its events have done must be remembered, too.
#[tokio::test(start_paused = true)]
async fn a_message_of_several_events_is_sent_again_within_the_window_of_each_consumer() {
    let batch = [Message::new("m0", "a 1 ok\nb 2 259200").unwrap(), Message::new("m1", "b 3 ok\nb 4 259200").unwrap()];
    for (days, wanted, back) in
        [(4, "scheduled scheduled", [None, None]), (3, "retry scheduled", [Some(VISIBILITY_MAX_S), None])]
    {
        let window = Duration::from_secs(days * 86_400);
        let routes = Routes::by_kind().envelope(Lines).on("a", consumer("for-a").window(window));
        let router = Router::new(routes.on("b", consumer("for-b")), 10).unwrap();
        let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
        let queue = Scheduling::default();
        let report = router.process(&batch, time, &queue).await;
        assert_eq!((words(report.all()).as_str(), hidden(report.all())), (wanted, back.to_vec()), "{days} days");
    }
}

/// What a schedule sends: another message, which says of which one it is a copy.
fn copy(of: &Message, id: &str) -> Message {
    let copy = Message::new(id, of.body()).unwrap();
    copy.with_attribute(SENT_AGAIN_OF, AttributeValue::text(of.first_id().as_str()))
}

/// A consumer without a rule for keys, whose handler notes the body of each run and does what its word says.
fn without_a_key(runs: &Arc<Mutex<Vec<String>>>) -> Consumer<String> {
    let runs = Arc::clone(runs);
    let handler = move |text: String, _: Context| {
        runs.lock().unwrap().push(text.clone());
        async move {
            match text.split(' ').nth(1).unwrap_or_default().parse() {
                Ok(seconds) => Err(HandlerError::retry("not yet").after(Duration::from_secs(seconds))),
                Err(_) => Ok(()),
            }
        }
    };
    Consumer::new("c", FaultyStore::new(Arc::new(MemoryStore::new())), handler)
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_the_same_work_without_a_rule_for_keys_too() {
    let runs = Arc::<Mutex<Vec<String>>>::default();
    let router =
        Router::new(Routes::by_kind().envelope(Lines).on("x", without_a_key(&runs).attempts_max(3)), 10).unwrap();
    let time = || InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
    let queue = Scheduling::default();
    let mut message = Message::new("m0", "x 1 ok\nx 2 259200").unwrap();
    let logs = Logs::record();
    let (mut outcomes, mut why) = (Vec::new(), String::new());
    for number in 1..=4 {
        let reports = router.process(std::slice::from_ref(&message), time(), &queue).await;
        outcomes.push(words(reports.all()));
        if let Outcome::Rejected { rejection, .. } = &reports.all().entries()[0].outcome {
            why = rejection.to_string();
        }
        message = copy(&message, &format!("m{number}"));
    }
    // Its attempts are counted on, and what was done stays done. After the last one no schedule sends it again, only to be rejected.
    assert_eq!(outcomes, ["scheduled", "scheduled", "retry", "rejected"]);
    assert!(why.ends_with("as often as it may; the last error: not yet"), "{why}");
    assert_eq!(*runs.lock().unwrap(), ["1 ok", "2 259200", "2 259200", "2 259200"]);
    // Each line has the id that the record has.
    let lines = logs.with("message is scheduled");
    assert!(lines.iter().all(|line| line.contains("m0")) && lines[1].contains("m1"), "{lines:?}");
}

/// The schedule may be there without an answer: its message and the copy are one.
#[tokio::test(start_paused = true)]
async fn what_was_rejected_meanwhile_does_not_run_again() {
    let queue = Scheduling { refused: vec![0], ..Scheduling::default() };
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let first = messages(&["a 259200"]).remove(0);
    assert_eq!(words(&process(on("c", store.clone()), std::slice::from_ref(&first), &queue).await), "retry");
    let once = on("c", store.clone()).attempts_max(1);
    assert_eq!(words(&process(once, &[first.clone().with_receive_count(2)], &queue).await), "rejected");
    let report = process(on("c", store.clone()), &[copy(&first, "m9")], &queue).await;
    assert_eq!(words(&report), "rejected");
    // Nor does a redrive of SQS run it, which leaves it as it is: how to do so is said.
    let Outcome::Rejected { rejection, .. } = &report.entries()[0].outcome else { panic!("{report:?}") };
    assert!(rejection.to_string().contains("use `claimant dead redrive` or `claimant reset`"), "{rejection}");
    // That of an operator has another id, and is to run again.
    let redriven = Message::new("m8", first.body()).unwrap();
    assert_eq!(words(&process(on("c", store), &[redriven], &queue).await), "retry");
}

/// An earlier delivery of it may be done by then, and its payload gone: also of one that follows another message of its work.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_whose_payload_is_removed_when_it_is_done() {
    for (removes, receive_count, wanted, back) in
        [(true, 1, "retry", Some(VISIBILITY_MAX_S)), (true, 3, "retry", Some(0)), (false, 3, "scheduled", None)]
    {
        // Whichever of the two comes first.
        for whole in [0, 1] {
            let mut shelf = Shelf::new(&[("a", "\"a 259200\""), ("b", "\"b 259200\"")]);
            shelf.removes = removes;
            let pointing = |name: &str| Message::new(format!("at {name}"), format!("at {name}")).unwrap();
            let batch = [messages(&["a 259200"]).remove(0), pointing("a"), pointing("b")];
            let mut batch = batch.map(|message| message.with_receive_count(receive_count));
            batch.swap(0, whole);
            let (queue, logs) = (Scheduling::default(), Logs::record());
            let report = process(consumer("c").large_payloads(shelf), &batch, &queue).await;
            let (mut outcomes, mut hidden_for) = ([wanted; 3], [back; 3]);
            (outcomes[whole], hidden_for[whole]) = ("scheduled", None);
            assert_eq!((words(&report), hidden(&report)), (outcomes.join(" "), hidden_for.to_vec()), "{whole}");
            assert_eq!(logs.with("It comes back earlier").len(), if removes { 2 } else { 0 }, "removes: {removes}");
        }
    }
}

/// It is not removed then: another event of its message may need it.
#[tokio::test(start_paused = true)]
async fn an_event_of_several_is_sent_again_though_payloads_are_removed() {
    let mut shelf = Shelf::new(&[("a", "\"a 259200\""), ("b", "\"b 259200\"")]);
    shelf.removes = true;
    let routes = Routes::by_kind().envelope(Rows).on("order", consumer("c").large_payloads(shelf));
    let router = Router::new(routes, 10).unwrap();
    let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
    let batch = [Message::new("m0", "at a\nat b").unwrap()];
    assert_eq!(words(router.process(&batch, time, &Scheduling::default()).await.all()), "scheduled");
}
