//! Every act of the pages, by a click, and what became of it in queues and tables.

use claimant_tests::browser::Page;
use serde_json::{Value, json};

use super::stage::Stage;
use crate::cloud::wait_for;

const ORDERS: &str = "OrderQueue";
const DEAD: &str = "OrderDeadLetterQueue";

/// An address that no mail is sent to: its order is rejected, and dead-lettered at once.
const NOBODY: &str = "nobody";

/// The buttons of `/send`.
const SEND: &str = "button[name=preset][value='']";
const TWICE: &str = "button[name=preset][value=twice]";
const BULK: &str = "button[name=preset][value=bulk]";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn samples_are_sent_as_the_buttons_say() {
    let stage = Stage::start(&["order-confirmation", "audit", "loyalty"]).await;
    let page = stage.browser.page();
    let open_of = |queue: &str, sample: &str| {
        stage.open(&page, &format!("/send?queue={queue}"));
        page.click(&format!("text={sample}"));
        page.until("its form", "location.search.includes('sample=')");
    };
    let open = |sample: &str| open_of(ORDERS, sample);
    // Each button, the messages that it sends, and the mails of all so far: copies of a message are one mail.
    let (mut sent, mut mails) = (0, 0);
    for (button, messages, more) in [(SEND, 1, 1), (TWICE, 2, 1), (BULK, 40, 20)] {
        open("An order");
        let said = stage.act(&page, button);
        (sent, mails) = (sent + messages, mails + more);
        assert!(said.starts_with(&format!("{messages} message")), "{said}");
        assert_eq!(stage.sent(ORDERS), sent, "{said}");
        stage.drained().await;
        assert_eq!(stage.mails(), mails, "{said}");
    }
    // What was sent can be followed.
    page.click(".sent a");
    page.until("its page", "location.pathname.startsWith('/messages/')");
    // An edited body, each of its copies in another envelope.
    open("An order");
    page.fill("textarea[name=body]", &Stage::body_of("edited", "ada@example.com"));
    page.choose("select[name=envelope]", "each");
    page.click("text=More");
    page.fill("input[name=copies]", "4");
    stage.act(&page, SEND);
    stage.drained().await;
    assert_eq!((stage.sent(ORDERS), stage.mails()), (sent + 4, mails + 1));
    assert_eq!(stage.mails_of("edited"), 1);
    // A FIFO queue with its groups, and a notification of S3.
    open_of("LoyaltyQueue.fifo", "Points earned");
    stage.act(&page, BULK);
    open_of("AuditQueue", "A new object in a bucket");
    stage.act(&page, SEND);
    stage.drained().await;
    let done = |record: &str| stage.records(record).iter().filter(|r| r.text("status") == Some("COMPLETED")).count();
    assert_eq!((stage.sent("LoyaltyQueue.fifo"), done("loyalty#"), done("audit#")), (40, 20, 1));
    // What no envelope carries is refused, in words.
    open("A body that is not JSON");
    page.choose("select[name=envelope]", "eventbridge");
    let said = stage.act(&page, SEND);
    assert!(said.contains("EventBridge carries a JSON object"), "{said}");
    assert_eq!(stage.sent(ORDERS), sent + 4);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn acts_on_a_key_change_its_record_and_what_comes_next() {
    let stage = Stage::start(&["order-confirmation"]).await;
    for id in ["release", "reset", "forget", "resolve"] {
        stage.order(id, NOBODY);
    }
    stage.drained().await;
    let page = stage.browser.page();
    let act = |id: &str, act: &str, force: bool| {
        // Found by the search, as a person would.
        stage.open(&page, "/keys");
        page.fill("input[name=text]", id);
        page.press("Enter");
        page.until("what was found", "location.search.includes('text=')");
        page.click(&format!("a[href='/keys/order%2Dconfirmation%23{id}']"));
        page.until("the page of the key", "!!document.querySelector('select[name=act]')");
        page.choose("select[name=act]", act);
        page.fill("input[name=why]", "the test says so");
        if force {
            page.click("input[name=force]");
        }
        stage.act(&page, "text=Do it")
    };
    let record = |id: &str| {
        let record = stage.record(&format!("order-confirmation#{id}")).expect("it is there");
        (record.text("status").map(str::to_owned), record.number("attempts"), record.text("note").map(str::to_owned))
    };
    for (id, status, attempts) in
        [("release", "FAILED", 0), ("reset", "FAILED", 0), ("forget", "FAILED", 0), ("resolve", "COMPLETED", 1)]
    {
        assert_eq!(record(id).0.as_deref(), Some("REJECTED"), "{id}");
        let said = act(id, id, false);
        let (now, runs, note) = record(id);
        assert_eq!((now.as_deref(), runs), (Some(status), Some(attempts)), "{id}: {said}");
        let note = note.unwrap_or_default();
        assert!(note.contains(id) && note.ends_with("the test says so"), "{note}");
    }
    // A key is copied as it is, with each of its blanks.
    stage.order("  two  blanks ", NOBODY);
    stage.drained().await;
    let shown = "$'order-confirmation#  two  blanks '";
    stage.open(&page, "/keys");
    assert!(page.text("main").contains(shown), "{}", page.text("main"));
    page.click("a.id[href*='two']");
    page.until("the page of the key", "!!document.querySelector('select[name=act]')");
    assert_eq!(page.text("h1"), shown);
    page.choose("select[name=act]", "release");
    let said = stage.act(&page, "text=Do it");
    assert!(said.contains(shown), "{said}");
    // A key that was forgotten is as if it had never been; one that was resolved is done.
    stage.order("forget", "ada@example.com");
    stage.order("resolve", NOBODY);
    stage.drained().await;
    assert_eq!((stage.mails_of("forget"), stage.mails_of("resolve"), stage.depth(DEAD)), (1, 0, 5));
    // What is done is forgotten only by force, and then done again.
    let said = act("forget", "forget", false);
    assert_eq!(record("forget").0.as_deref(), Some("COMPLETED"), "{said}");
    assert!(page.count(".notice.refused") == 1 && said.contains("forget"), "{said}");
    act("forget", "forget", true);
    stage.order("forget", "ada@example.com");
    stage.drained().await;
    assert_eq!(stage.mails_of("forget"), 2);
    // A page means the record that it was opened with, whatever it shows by then, and says where that is another one.
    let path = "/keys/order%2Dconfirmation%23reset";
    stage.open(&page, path);
    page.choose("select[name=act]", "forget");
    page.click("input[name=force]");
    stage.post(path, &json!({ "act": "resolve" }));
    page.until("it to say so", "!!document.querySelector('#live .notice a')");
    let said = stage.act(&page, "text=Do it");
    assert!(said.contains("has gone on since it was looked at"), "{said}");
    assert_eq!(record("reset").0.as_deref(), Some("COMPLETED"), "{said}");
    page.choose("select[name=act]", "forget");
    page.click("input[name=force]");
    let said = stage.act(&page, "text=Do it");
    assert!(said.contains("forgotten"), "{said}");
    // And that it was done twice is the first thing that the page of effects says.
    stage.open(&page, "/effects");
    assert!(page.text("[role=alert]").contains("2 mails of"), "{}", page.text("main"));
    stage.end().await;
}

/// The file that a notice names.
fn saved(said: &str) -> &str {
    said.split_whitespace().last().expect("where it was saved").trim_end_matches('.')
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn dead_letters_are_sent_back_edited_and_discarded() {
    let stage = Stage::start(&["order-confirmation"]).await;
    let ids: Vec<_> = ["one", "two", "three", "four"].map(|id| stage.order(id, NOBODY)).into();
    stage.send(ORDERS, "<script>window.ran = 1</script>");
    stage.drained().await;
    assert_eq!(stage.depth(DEAD), 5);
    let page = stage.browser.page();
    let open_group = |cause: &str| {
        stage.open(&page, "/dead");
        let find = format!(
            "[...document.querySelectorAll('main a[href^=\"/dead/\"]')].find(a => a.innerText.includes({}))",
            json!(cause)
        );
        page.until("the group", &format!("!!{find}"));
        let path = page.eval(&format!("(a => a.pathname + a.search)({find})"));
        stage.open(&page, path.as_str().expect("a path"));
    };
    let letter = |of: &str| {
        let find = format!("[...document.querySelectorAll('.letter')].find(l => l.innerText.includes({}))", json!(of));
        page.until("the letter", &format!("!!{find}"));
        format!("#{}", page.eval(&format!("{find}.id")).as_str().expect("an id"))
    };
    let refused = "not an e-mail address";
    // Its body is text. Discarded, with a copy in a file.
    open_group("not valid JSON");
    assert!(page.text(".letter .body").contains("<script>window.ran"), "{}", page.text("main"));
    page.click("text=Discard all");
    let said = stage.act(&page, "form[action='/dead/discard']:not(:has([name=id])) button");
    assert_eq!(stage.depth(DEAD), 4, "{said}");
    let file = saved(&said);
    assert!(std::fs::read_to_string(file).expect("it is there").contains("window.ran"), "{file}");
    std::fs::remove_file(file).expect("it is ours");
    // One of a cause: it is rejected once more, since nothing has changed, and one is discarded.
    open_group(refused);
    stage.act(&page, &format!("{} form[action='/dead/redrive'] button", letter("one")));
    stage.drained().await;
    wait_for("the letter to be back", || stage.depth(DEAD) == 4).await;
    open_group(refused);
    let two = letter("two");
    page.click(&format!("{two} details.confirm summary"));
    let said = stage.act(&page, &format!("{two} form[action='/dead/discard'] button"));
    assert_eq!(stage.depth(DEAD), 3, "{said}");
    std::fs::remove_file(saved(&said)).expect("it is ours");
    // One that is edited: another order, with another address.
    open_group(refused);
    page.click(&format!("{} a.button", letter("three")));
    page.until("its form", "!!document.querySelector('textarea[name=body]')");
    page.fill("textarea[name=body]", &Stage::body_of("three-b", "ada@example.com"));
    stage.act(&page, "text=Send and take it out of here");
    stage.drained().await;
    assert_eq!((stage.depth(DEAD), stage.mails_of("three-b"), stage.mails()), (2, 1, 1));
    // All of a cause, whose keys were forgotten and whose mails are taken now: each of them is done.
    for id in ["one", "four"] {
        stage.post(&format!("/keys/order-confirmation%23{id}"), &json!({ "act": "resolve", "why": "sent by hand" }));
    }
    open_group(refused);
    page.click("text=Send all back");
    let said = stage.act(&page, "form[action='/dead/redrive']:not(:has([name=id])) button");
    stage.drained().await;
    assert_eq!((stage.depth(DEAD), stage.mails()), (0, 1), "{said}");
    // The first message's own page knows of its copies.
    stage.open(&page, &format!("/messages/{}", ids[0]));
    page.until_text("Copied to OrderDeadLetterQueue by its function");
    stage.end().await;
}

/// A fault of `/faults`: the button, whether its function has to be chosen, and the queue whose next message meets it.
struct Fault {
    button: &'static str,
    queue: &'static str,
    /// How often the work of that message is done at most: once, but where its process ends or an answer is lost on the way to a
    /// system that deduplicates nothing.
    effects_max: usize,
}

const fn fault(button: &'static str, queue: &'static str) -> Fault {
    Fault { button, queue, effects_max: 1 }
}

const fn twice(button: &'static str, queue: &'static str) -> Fault {
    Fault { effects_max: 2, ..fault(button, queue) }
}

const PAYMENTS: &str = "PaymentQueue";

const FAULTS: [Fault; 13] = [
    twice("Kill a process at its next claim", ORDERS),
    twice("Freeze a process for 5 s at its next claim", ORDERS),
    fault("Kill its processes now", ORDERS),
    twice("Freeze it for 40 s: longer than its time", ORDERS),
    fault("Lose the answer to the next claim", ORDERS),
    fault("Lose the answer to the next completion", ORDERS),
    fault("Throttle it for 10 s", ORDERS),
    fault("Throttle completions for 10 s", ORDERS),
    fault("Cut it off for 10 s", ORDERS),
    fault("Refuse mails for 10 s", ORDERS),
    twice("Lose the answer to the next mail", ORDERS),
    fault("Refuse charges for 10 s", PAYMENTS),
    fault("Lose the answer to the next charge", PAYMENTS),
];

impl Fault {
    /// Returns the effects of the work of this id.
    fn effects_of(&self, stage: &Stage, id: &str) -> usize {
        if self.queue == ORDERS {
            return stage.mails_of(id);
        }
        stage.cloud.gateway().charges().iter().filter(|charge| charge.key.as_deref() == Some(id)).count()
    }
}

/// The fault that was switched on last.
fn newest(stage: &Stage) -> Value {
    stage.json("/faults")["faults"][0].clone()
}

fn switch_on(stage: &Stage, page: &Page, fault: &Fault) -> u64 {
    stage.open(page, "/faults");
    if fault.button.contains("rocess") || fault.button.starts_with("Freeze") {
        page.choose("select[name=function]", "OrderConfirmationFunction");
    }
    let said = stage.act(page, &format!("text={}", fault.button));
    assert!(said.starts_with("Fault "), "{said}");
    newest(stage)["id"].as_u64().expect("it has a number")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the functions' binaries and a browser: make test"]
async fn each_fault_begins_and_ends_and_nothing_is_lost() {
    let stage = Stage::start(&["order-confirmation", "payment"]).await;
    let page = stage.browser.page();
    // Those that meet a process now need one.
    stage.order("first", "ada@example.com");
    stage.drained().await;
    for (number, fault) in FAULTS.iter().enumerate() {
        let button = fault.button;
        let id = switch_on(&stage, &page, fault);
        let work = format!("work-{number}");
        match fault.queue {
            ORDERS => stage.order(&work, "ada@example.com"),
            queue => {
                stage.send(queue, &json!({ "order_id": work, "amount_cents": 100, "currency": "EUR" }).to_string())
            }
        };
        let met = || newest(&stage)["acted"].as_u64() > Some(0);
        wait_for(&format!("«{button}» to meet something"), met).await;
        let ended = newest(&stage)["ended_ms"].is_u64();
        let end = format!("form[action='/faults/end']:has(input[value='{id}']) button");
        stage.open(&page, "/faults");
        assert_eq!(page.count(&end), u64::from(!ended), "«{button}»: {}", page.text("main"));
        // By hand, where it does not end by itself; a process that is frozen goes on then.
        if !ended {
            stage.act(&page, &end);
        } else if button.starts_with("Freeze") {
            stage.post("/faults/end", &json!({ "id": id }));
        }
        assert!(newest(&stage)["ended_ms"].is_u64(), "«{button}» acts");
        stage.drained().await;
        let effects = fault.effects_of(&stage, &work);
        assert!((1..=fault.effects_max).contains(&effects), "«{button}»: {effects}");
    }
    assert_eq!((stage.depth(DEAD), stage.depth("PaymentDeadLetterQueue")), (0, 0));
    // The first, and another one for each that was killed.
    assert!(stage.cloud.function("order-confirmation").expect("it runs").counters().cold_starts >= 3);
    // Twice where nobody can know that it was done: the page says so.
    stage.open(&page, "/effects");
    assert!(page.text("[role=alert]").contains("2 mails of"), "{}", page.text("main"));
    stage.end().await;
}
