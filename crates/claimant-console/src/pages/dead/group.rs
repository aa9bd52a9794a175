//! `/dead/GROUP`: reads the letters of one cause, or one of them that is edited.

use axum::extract::{Path, State};
use axum::response::Response;
use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::dead::{DeadLetter, Ids, Page as Letters, Selection, Unseen};

use super::cause::{Cause, Drawn, Edit, Found, MovesOn};
use super::letters::{self, BODY_SHOWN, LOOKS_MAX, Letter, UNTIL};
use crate::ask::{Ask, Reader};
use crate::console::Console;
use crate::ui::nav::Tab;

/// Letters on one page.
const PAGE_MAX: usize = 25;

pub(super) async fn show(State(console): State<Console>, Path(group): Path<String>, ask: Ask) -> Response {
    match page(&console, &ask, group).await {
        Ok(Ok(page)) => ask.page(&console, Ok(page)),
        Ok(Err(why)) => ask.absent(&console, Tab::Dead, &why),
        Err(error) => ask.refused(&console, Tab::Dead, &error),
    }
}

/// Returns the page; why there is none, where the letter that is to be edited is not there.
async fn page(console: &Console, ask: &Ask, group: String) -> Result<Result<Cause, String>, Error> {
    let place = console.place();
    let name = ask.query.required("queue")?;
    let now_ms = SystemClock.now().as_millis();
    let edited = ask.query.get("edit").filter(|_| console.source().allows_writes());
    let dead = letters::open(place, name).await?;
    let dead = if edited.is_some() { dead } else { dead.with_bodies_of(BODY_SHOWN) };
    let selection = Selection { ids: Ids::now(edited), ..Selection::groups([group.as_str()]) };
    selection.check()?;
    let after = ask.query.number(letters::AFTER, u64::MAX, 0..=u64::MAX)?;
    let after = (after != u64::MAX).then_some(after);
    // Those of a deployed queue are received, and no page does that again and again by itself: after an act, or from a link to it alone.
    let read = place.is_local() || edited.is_some() || ask.query.flag(letters::READ)?;
    let page = if read { dead.page(&selection, after, PAGE_MAX, LOOKS_MAX).await? } else { Letters::default() };
    let mut letters: Vec<_> = page.letters.iter().map(|letter| Letter::of(letter, edited.is_some())).collect();
    if edited.is_some() && letters.is_empty() {
        let unseen = Unseen { cut: page.unseen.cut || page.next.is_some(), ..page.unseen };
        let gone = || format!("There is no such dead letter any more: it was {}.", letters::gone(&dead));
        return Ok(Err(letters::not_among("It", page.looked_at, unseen).unwrap_or_else(gone)));
    }
    let draft = edited.and_then(|_| console.draft(&ask.query));
    if let (Some(draft), Some(letter)) = (&draft, letters.first_mut()) {
        draft.all("body").next().unwrap_or_default().clone_into(&mut letter.sent.body);
    }
    let sources = letters::sources(&dead);
    // Of a queue that serves several, a letter that a function copied does not say where it came from. One of SQS does, and so do all of
    // its cause.
    let only = <&[String; 1]>::try_from(sources.as_slice()).map(|[only]| only.as_str()).ok();
    let came_from = page.letters.first().and_then(DeadLetter::source).or(only).map(str::to_owned);
    // By this machine's clock. It may be behind that of SQS: what is shown is meant in any case. Where it is ahead, what is sent in that
    // time is meant, too.
    let shown_ms = letters.iter().filter_map(|letter| letter.sent.sent_ms).fold(now_ms, u64::max);
    let until_ms =
        if ask.reader == Reader::OpenPage { ask.query.number(UNTIL, shown_ms, 0..=u64::MAX)? } else { shown_ms };
    let others = letters::destinations(place, &dead);
    let to = draft.as_ref().and_then(|draft| draft.get("to")).map(str::to_owned).or_else(|| came_from.clone());
    let to = to.filter(|to| others.contains(to));
    let acts = console.source().allows_writes() && read;
    let drawn = acts.then(|| Drawn { form: console.new_form(), until_ms, came_from, others });
    Ok(Ok(Cause {
        edit: edited.map(|_| Edit { to }),
        group,
        queue: name.to_owned(),
        sources,
        found: Found {
            cause: page.letters.first().map(|letter| letter.cause()),
            letters,
            next: page.next,
            unseen: page.unseen,
            read,
            after: after.map(|after| after.to_string()),
        },
        is_local: place.is_local(),
        moves_on: MovesOn { after: letters::moves_on_after(&dead), gone: letters::gone(&dead) },
        drawn,
    }))
}
