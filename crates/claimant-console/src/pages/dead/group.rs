//! `/dead/GROUP`: the letters of one cause, and one of them being edited.

use axum::extract::{Path, State};
use axum::response::Response;
use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::dead::{DeadLetter, Ids, Page as Letters, Selection};
use maud::{Markup, html};
use serde::Serialize;

use super::letters::{self, BODY_SHOWN, DISCARD, LOOKS_MAX, Letter, REDRIVE, UNTIL};
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::{Console, FORM};
use crate::timeline::words::short;
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::text;

/// What becomes of letters that the page did not show, where it does not show all.
const NOT_SHOWN: &str = "One that is sent later stays; one that was sent before and comes here later does not.";

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
    let after = ask.query.number("after", u64::MAX, 0..=u64::MAX)?;
    let page = dead.page(&selection, (after != u64::MAX).then_some(after), PAGE_MAX, LOOKS_MAX).await?;
    let mut letters: Vec<_> = page.letters.iter().map(|letter| Letter::of(letter, edited.is_some())).collect();
    if edited.is_some() && letters.is_empty() {
        return Ok(Err(not_there(&page)));
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
    // By this machine's clock, which may be behind that of SQS; what is shown is meant in any case.
    let until_ms = letters.iter().filter_map(|letter| letter.sent.sent_ms).fold(now_ms, u64::max);
    let others = letters::destinations(place, &dead);
    let to = draft.as_ref().and_then(|draft| draft.get("to")).map(str::to_owned).or_else(|| came_from.clone());
    let to = to.filter(|to| others.contains(to));
    let drawn = Drawn { form: console.new_form(), until: until_ms.to_string(), came_from, others };
    Ok(Ok(Cause {
        edit: edited.map(|_| Edit { to }),
        group,
        queue: name.to_owned(),
        cause: page.letters.first().map(|letter| letter.cause()),
        sources,
        letters,
        next: page.next,
        more: page.more,
        is_local: place.is_local(),
        drawn: console.source().allows_writes().then_some(drawn),
    }))
}

/// Says that a letter is not among those that were looked at.
fn not_there(page: &Letters) -> String {
    if page.more || page.next.is_some() {
        let read = text::counted(page.looked_at as u64, "letter that was read", "letters that were read");
        return format!("It is not among the {read}, and there are more: claimant dead show finds it by its id.");
    }
    "There is no such dead letter any more: it was sent back or discarded.".to_owned()
}

#[derive(Serialize)]
struct Cause {
    group: String,
    queue: String,
    cause: Option<String>,
    letters: Vec<Letter>,
    /// Where the next page begins.
    next: Option<u64>,
    /// Whether there may be more, and no page of them.
    more: bool,
    /// The queues of which letters are here.
    sources: Vec<String>,
    /// Where one letter is edited.
    #[serde(skip)]
    edit: Option<Edit>,
    #[serde(skip)]
    is_local: bool,
    /// Where acts are allowed.
    #[serde(skip)]
    drawn: Option<Drawn>,
}

/// What forms say of the page that they are on.
struct Drawn {
    form: String,
    /// When it was drawn, in milliseconds since 1970.
    until: String,
    /// The queue that the letters go back to, where it is known.
    came_from: Option<String>,
    /// Where a letter can go.
    others: Vec<String>,
}

struct Edit {
    /// Where a letter goes, as it was chosen.
    to: Option<String>,
}

impl Page for Cause {
    const TAB: Tab = Tab::Dead;

    fn title(&self) -> String {
        match (&self.cause, &self.edit) {
            (_, Some(_)) => "Edit and send back".to_owned(),
            (Some(cause), _) => cause.clone(),
            (None, _) => "No letters of this cause".to_owned(),
        }
    }

    fn above(&self) -> Markup {
        let first = self.letters.first();
        html! {
            p .lead {
                a href="/dead" { "Dead letters" } " · " (self.queue) " · " code { (self.group) }
                @if let Some(letter) = first {
                    " · " (letter.why.consumer.as_deref().unwrap_or("unknown")) " " (letters::outcome(letter.why.outcome.as_deref()))
                }
            }
        }
    }

    fn live(&self) -> Markup {
        if self.is_local && self.edit.is_none() {
            self.list()
        } else {
            html! {}
        }
    }

    fn below(&self) -> Markup {
        match self.letters.first().zip(self.edit.as_ref()) {
            Some((letter, edit)) => self.edit(letter, edit),
            None if self.is_local => html! {},
            None => self.list(),
        }
    }

    fn summary(&self) -> Option<String> {
        let none = self.letters.is_empty() && !self.more && self.next.is_none();
        none.then(|| "No letter of this cause is here any more.".to_owned())
    }
}

impl Cause {
    fn list(&self) -> Markup {
        html! {
            @if self.letters.is_empty() && (self.more || self.next.is_some()) {
                (text::empty("None of this cause so far", &html! { "Not all letters of the queue were looked at. " a href="/dead" { "All dead letters" } }))
            } @else if self.letters.is_empty() {
                (text::empty("Nothing left of this cause", &html! { "Its letters were sent back or discarded. " a href="/dead" { "All dead letters" } }))
            } @else {
                @if let Some(drawn) = &self.drawn { (self.acts(drawn)) }
                @for letter in &self.letters { (self.letter(letter)) }
            }
            @if self.more && !self.letters.is_empty() {
                p .soft { "The first " (self.letters.len()) " letters of this cause; there may be more." }
            }
            @if let Some(next) = self.next {
                p { a rel="next" href={ (letters::path(&self.group, &self.queue)) "&after=" (next) } { "Later letters" } }
            }
        }
    }

    /// Whether an act on all names each letter, so that it hits no other. A page that is drawn again shows what comes, and by then the act
    /// on it may be under way.
    fn names_all(&self) -> bool {
        !self.is_local && !self.more && self.next.is_none()
    }

    /// What can be done with all of them.
    fn acts(&self, drawn: &Drawn) -> Markup {
        let mut all =
            vec![(FORM, drawn.form.as_str()), ("queue", &self.queue), ("group", &self.group), (UNTIL, &drawn.until)];
        let (which, others) = match self.names_all() {
            true => ("that is shown here", "Others stay."),
            false => ("of this cause", NOT_SHOWN),
        };
        if self.names_all() {
            all.extend(self.letters.iter().map(|letter| ("id", letter.message_id.as_str())));
        }
        let parked = self.letters.iter().any(|letter| letter.why.outcome.as_deref() == Some("parked"));
        html! {
            div .acts {
                @if let Some(to) = &drawn.came_from {
                    (form::confirm("Send all back", &format!(
                        "Every letter {which} goes back to {to}, and is deleted here once SQS has confirmed the copy. {others}"
                    ), &form::act(REDRIVE, "Send all back", &all)))
                }
                (form::confirm("Discard all", &format!("Every letter {which} is deleted. They are first saved to a file on this machine. {others}"),
                    &form::act(DISCARD, "Discard all", &all)))
            }
            @if drawn.came_from.is_none() { p .soft.small { (self.unknown(drawn)) } }
            @if parked {
                p .soft.small { "Parked work does not run again until its key is released: follow the key of a letter." }
            }
        }
    }

    /// Says that it is not known where letters go back to.
    fn unknown(&self, drawn: &Drawn) -> String {
        let known = match self.sources.as_slice() {
            [] => "No queue is known that they belong to".to_owned(),
            several => format!("They may belong to any of {}", several.join(", ")),
        };
        if drawn.others.is_empty() {
            return format!("{known}: claimant dead redrive takes it (--to).");
        }
        format!("{known}: \"Edit and send\" asks for it with each, and claimant dead redrive takes it for all (--to).")
    }

    fn letter(&self, letter: &Letter) -> Markup {
        let edit = format!("{}&edit={}", letters::path(&self.group, &self.queue), text::encoded(&letter.message_id));
        let what = format!("letter {}", short(&letter.message_id));
        html! {
            article .letter.card id={ "letter-" (letter.message_id) } {
                h2 { (text::message(letter.story())) }
                (facts(letter))
                pre .body tabindex="0" aria-label="Body" { (text::spread(&letter.sent.body)) }
                @if let Some(bytes) = letter.sent.cut_from {
                    p .soft.small { "The first 4 KiB of " (text::grouped(bytes as u64)) " bytes." @if self.drawn.is_some() { " " a href=(edit) { "The whole body" } } }
                }
                @if let Some(drawn) = &self.drawn {
                    @let one = self.one(letter, drawn);
                    div .acts {
                        @if let Some(to) = &drawn.came_from {
                            @let back = form::act_on(REDRIVE, "Send back", &what, &one);
                            @if self.is_local { (back) } @else {
                                (form::confirm_on("Send back", &what, &format!("The letter goes back to {to}."), &back))
                            }
                        }
                        @if !drawn.others.is_empty() {
                            a .button href=(edit) aria-label={ "Edit and send " (what) } { "Edit and send" }
                        }
                        (form::confirm_on("Discard", &what, "The letter is deleted. It is first saved to a file on this machine.",
                            &form::act_on(DISCARD, "Discard it", &format!("({what})"), &one)))
                    }
                }
            }
        }
    }

    /// Returns the hidden fields of a form about one letter.
    fn one<'p>(&'p self, letter: &'p Letter, drawn: &'p Drawn) -> [(&'static str, &'p str); 4] {
        [(FORM, &drawn.form), ("queue", &self.queue), ("id", &letter.message_id), ("group", &self.group)]
    }

    fn edit(&self, letter: &Letter, edit: &Edit) -> Markup {
        let rows = letter.sent.body.lines().take(24).count().clamp(6, 24);
        let none = edit.to.is_none().then_some(("", "Choose a queue"));
        let others = self.drawn.iter().flat_map(|drawn| &drawn.others);
        let to = none.into_iter().chain(others.map(|queue| (queue.as_str(), queue.as_str())));
        html! {
            (facts(letter))
            form .edit.card method="post" action=(REDRIVE) {
                @if let Some(drawn) = &self.drawn { (form::hidden(&self.one(letter, drawn))) }
                (form::field("Body", &html! { textarea name="body" rows=(rows) spellcheck="false" autocomplete="off" { "\n" (letter.sent.body) } }))
                (form::field("To", &form::select("to", to, edit.to.as_deref())))
                div .acts {
                    button .main type="submit" { "Send and take it out of here" }
                    a href=(letters::path(&self.group, &self.queue)) { "Leave it as it is" }
                }
            }
            @if let Some(record) = &letter.why.record {
                p .soft.small {
                    "Another body under the key " (text::key(record)) " is a conflict if the key was used already: forget the key first, or give the body a new one."
                }
            }
        }
    }
}

/// What is known of a letter, beside its body.
fn facts(letter: &Letter) -> Markup {
    html! {
        dl .facts {
            dt { "How it came" } dd { (letter.how) }
            @if let Some(error) = &letter.why.error { dt { "Error" } dd { (error) } }
            @if let Some(record) = &letter.why.record { dt { "Key" } dd { (text::key(record)) } }
            @if let Some(attempt) = letter.why.attempt { dt { "Run" } dd { (attempt) } }
            @if let Some(at) = letter.sent.sent_ms { dt { "Sent" } dd { (text::time(at)) } }
            dt { "Received" } dd { (text::counted(u64::from(letter.receives), "time", "times")) }
            @if letter.redrives > 0 { dt { "Sent back before" } dd { (text::counted(u64::from(letter.redrives), "time", "times")) } }
            @if let Some(group) = &letter.sent.message_group { dt { "Message group" } dd { (group) } }
            @for (name, value) in &letter.sent.attributes { dt { (name) } dd { (value) } }
        }
    }
}
