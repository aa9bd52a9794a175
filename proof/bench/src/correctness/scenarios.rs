//! The scenarios, and what is good or bad in each.

use std::time::Duration;

use claimant_core::Error;
use tokio::time::sleep;

use super::Seen;
use super::stage::{Fate, SHORT_MS, Stage, Who};
use crate::contestant::{COMPLETE, FAIL, REMAINING_MS};

/// How long a worker that answered before its handler ended may still write: one request.
const LATE_WRITE: Duration = Duration::from_millis(500);
/// How often a message that cannot be read is delivered.
const BAD_DELIVERIES: u32 = 4;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    SentTwice,
    TwiceInABatch,
    CopyOfUnfinished,
    DiesAndComesBackEarly,
    DiesAndComesBackLate,
    FailsOnce,
    FailsLate,
    CompletesLate,
    BadBody,
    NoKey,
    NoKeyOfTwo,
    OtherPayload,
}

impl Scenario {
    pub(crate) const ALL: [Self; 12] = [
        Self::SentTwice,
        Self::TwiceInABatch,
        Self::CopyOfUnfinished,
        Self::DiesAndComesBackEarly,
        Self::DiesAndComesBackLate,
        Self::FailsOnce,
        Self::FailsLate,
        Self::CompletesLate,
        Self::BadBody,
        Self::NoKey,
        Self::NoKeyOfTwo,
        Self::OtherPayload,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::SentTwice => "finished work is sent again",
            Self::TwiceInABatch => "one key twice in a batch",
            Self::CopyOfUnfinished => "a copy of work that is in progress",
            Self::DiesAndComesBackEarly => "the worker is killed; its message comes back before the lease ends",
            Self::DiesAndComesBackLate => "the same, after the lease has ended",
            Self::FailsOnce => "the handler fails; its message comes back at once",
            Self::FailsLate => "a worker's lease ends, a second one takes over, then the first one's handler fails",
            Self::CompletesLate => "the same, and the first one's handler completes",
            Self::BadBody => "a body that is not JSON among good ones, delivered four times",
            Self::NoKey => "three messages without the key's field",
            Self::NoKeyOfTwo => "the same, where the key is made of two fields",
            Self::OtherPayload => "the key of finished work with another payload",
        }
    }

    pub(super) async fn play(self, stage: &mut Stage<'_>) -> Result<Seen, Error> {
        match self {
            Self::SentTwice => sent_twice(stage).await,
            Self::TwiceInABatch => twice_in_a_batch(stage).await,
            Self::CopyOfUnfinished => copy_of_unfinished(stage).await,
            Self::DiesAndComesBackEarly => dies(stage, false).await,
            Self::DiesAndComesBackLate => dies(stage, true).await,
            Self::FailsOnce => fails_once(stage).await,
            Self::FailsLate => late(stage, FAIL).await,
            Self::CompletesLate => late(stage, COMPLETE).await,
            Self::BadBody => bad_body(stage).await,
            Self::NoKey => no_key(stage, ["no-key-1", "no-key-2", "no-key-3"], Who::A).await,
            Self::NoKeyOfTwo => {
                let order = stage.order("two-fields", "");
                stage.complete(Who::D, &order).await?;
                no_key(stage, ["no-key-4", "no-key-5", "no-key-6"], Who::D).await
            }
            Self::OtherPayload => other_payload(stage).await,
        }
    }
}

async fn sent_twice(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let (first, copy) = (stage.order("sent-twice", ""), stage.order("sent-twice", ""));
    stage.complete(Who::A, &first).await?;
    Ok(match stage.fate(Who::B, &copy).await? {
        Fate::Ran => Seen::bad("run twice"),
        Fate::Back => Seen::bad("comes back"),
        Fate::Gone => Seen::good("one run"),
    })
}

async fn twice_in_a_batch(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let (first, copy) = (stage.order("twice", ""), stage.order("twice", ""));
    let (_, done) = stage.deliver(Who::A, &[&first, &copy]).await?;
    Ok(match (done.ran, done.failed.len()) {
        (2.., _) => Seen::bad("run twice"),
        (1, 0) => Seen::good("one run"),
        (1, 1) => Seen::price("one run; one comes back"),
        _ => Seen::bad("both come back"),
    })
}

/// The first worker is at it when the copy comes, and the copy comes again when it is done.
async fn copy_of_unfinished(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let (first, copy) = (stage.order("unfinished", ""), stage.order("unfinished", ""));
    stage.begin(Who::A, &first, REMAINING_MS).await?;
    let fate = stage.fate(Who::B, &copy).await?;
    stage.tell(Who::A, &first, COMPLETE)?;
    stage.end(Who::A).await?;
    Ok(match fate {
        Fate::Ran => Seen::bad("run beside it"),
        Fate::Gone => Seen::bad("acknowledged too early"),
        Fate::Back => match stage.fate(Who::B, &copy.again()).await? {
            Fate::Gone => Seen::good("held back"),
            Fate::Back => Seen::bad("held back for ever"),
            Fate::Ran => Seen::bad("run twice"),
        },
    })
}

async fn dies(stage: &mut Stage<'_>, late: bool) -> Result<Seen, Error> {
    let message = stage.order(if late { "dies-late" } else { "dies-early" }, "");
    stage.begin(Who::A, &message, if late { SHORT_MS } else { REMAINING_MS }).await?;
    stage.kill(Who::A).await?;
    let again = message.again();
    Ok(match (late, if late { stage.fate_at_last(Who::B, &again).await? } else { stage.fate(Who::B, &again).await? }) {
        (_, Fate::Gone) => Seen::bad("acknowledged: lost"),
        (false, Fate::Back) => Seen::good("held back"),
        (false, Fate::Ran) => Seen::bad("run within the lease"),
        (true, Fate::Back) => Seen::bad("held back for ever"),
        (true, Fate::Ran) => Seen::good("taken over"),
    })
}

async fn fails_once(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let message = stage.order("fails-once", "");
    stage.tell(Who::A, &message, FAIL)?;
    stage.hand_over(Who::A, &[&message], REMAINING_MS).await?;
    let (_, done) = stage.end(Who::A).await?;
    if done.failed.is_empty() {
        return Ok(Seen::bad("acknowledged: lost"));
    }
    let again = message.again();
    Ok(match stage.fate(Who::B, &again).await? {
        Fate::Ran => Seen::good("run again"),
        Fate::Gone => Seen::bad("acknowledged: lost"),
        Fate::Back => match stage.fate_at_last(Who::B, &again).await? {
            Fate::Ran => Seen::price("run again, later"),
            Fate::Back => Seen::price("held back"),
            Fate::Gone => Seen::bad("acknowledged: lost"),
        },
    })
}

/// A's lease ends while its handler blocks. B takes over and stays at it; A's handler ends; C gets the message.
async fn late(stage: &mut Stage<'_>, how: &str) -> Result<Seen, Error> {
    let message = stage.order(&format!("late-{how}"), "");
    stage.begin(Who::A, &message, SHORT_MS).await?;
    let again = message.again();
    if !stage.take_over(Who::B, &again).await? {
        stage.tell(Who::A, &message, how)?;
        stage.end(Who::A).await?;
        return Ok(Seen::bad("no takeover"));
    }
    stage.tell(Who::A, &message, how)?;
    let (_, first) = stage.end(Who::A).await?;
    sleep(LATE_WRITE).await;
    let fate = stage.fate(Who::C, &again.again()).await?;
    stage.tell(Who::B, &message, COMPLETE)?;
    stage.end(Who::B).await?;
    Ok(match (fate, first.failed.is_empty()) {
        (Fate::Ran, _) => Seen::bad("a third runs beside the second"),
        (Fate::Gone, _) => Seen::bad("the second's claim is overwritten"),
        // Of a handler that fails this is a fault: it would be acknowledged.
        (Fate::Back, true) if how == FAIL => Seen::bad("acknowledged: lost"),
        (Fate::Back, true) => Seen::price("acknowledged; the second's claim stands"),
        (Fate::Back, false) => Seen::good("the second's claim stands"),
    })
}

async fn bad_body(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let (first, last) = (stage.order("good-1", ""), stage.order("good-2", ""));
    let mut bad = stage.message("bad", "{\"order_id\": not JSON".to_owned());
    let (_, done) = stage.deliver(Who::A, &[&first, &bad, &last]).await?;
    match (done.ran, done.failed.as_slice()) {
        (3.., _) => return Ok(Seen::bad("run as an empty one")),
        (2, [one]) if *one == bad.id => {}
        (2, []) => return Ok(Seen::bad("acknowledged: lost")),
        (2, _) => return Ok(Seen::price("good ones run, and come back")),
        _ => return Ok(Seen::bad("stops the good ones")),
    }
    for _ in 1..BAD_DELIVERIES {
        bad = bad.again();
        match stage.fate(Who::A, &bad).await? {
            Fate::Back => {}
            Fate::Gone => return Ok(Seen::bad("acknowledged at last: lost")),
            Fate::Ran => return Ok(Seen::bad("run at last")),
        }
    }
    Ok(Seen::good("it alone comes back"))
}

async fn no_key(stage: &mut Stage<'_>, names: [&str; 3], who: Who) -> Result<Seen, Error> {
    let messages = names.map(|name| stage.message(name, format!("{{\"customer\": \"{name}\", \"told\": \"{name}\"}}")));
    let (_, done) = stage.deliver(who, &messages.each_ref()).await?;
    let copies = messages.each_ref().map(super::stage::Message::again);
    Ok(match (done.ran, done.failed.len()) {
        (0, 3) => Seen::good("refused"),
        (3, 0) => match stage.deliver(who, &copies.each_ref()).await?.1.ran {
            0 => Seen::good("one run each"),
            _ => Seen::price("run, and run again when sent again"),
        },
        (0, 0) => Seen::bad("acknowledged: lost"),
        (ran, failed) if ran + failed < 3 => Seen::bad("one run, the others lost"),
        // Those that come back do so while the first one is in progress, and then?
        _ => match stage.deliver(who, &copies.each_ref()).await?.1 {
            again if again.ran == 0 && again.failed.is_empty() => Seen::bad("one run, the others lost"),
            _ => Seen::price("one run, the others come back"),
        },
    })
}

async fn other_payload(stage: &mut Stage<'_>) -> Result<Seen, Error> {
    let (first, other) = (stage.order("payload", "ten pounds"), stage.order("payload", "twenty pounds"));
    stage.complete(Who::A, &first).await?;
    Ok(match stage.fate(Who::B, &other).await? {
        Fate::Ran => Seen::price("run"),
        Fate::Back => Seen::good("refused"),
        Fate::Gone => Seen::price("acknowledged, not run"),
    })
}
