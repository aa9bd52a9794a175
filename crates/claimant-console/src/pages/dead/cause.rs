//! The letters of one cause, drawn with what can be done with them, and one of them that is edited.

use claimant_operate::dead::Unseen;
use maud::{Markup, html};
use serde::{Serialize, Serializer};

use super::letters::{self, AFTER, DISCARD, Letter, REDRIVE, UNTIL, facts};
use crate::answer::Page;
use crate::console::FORM;
use crate::timeline::words::short;
use crate::ui::badge::{Tone, shape};
use crate::ui::nav::Tab;
use crate::ui::{form, text};

/// What becomes of letters that the page did not show, where it does not show all.
const NOT_SHOWN: &str =
    "One that was sent since this page was opened stays; one that was sent before and comes here later does not.";

/// The letters of one cause.
#[derive(Serialize)]
pub(super) struct Cause {
    pub(super) group: String,
    pub(super) queue: String,
    #[serde(flatten)]
    pub(super) found: Found,
    /// The queues of which letters are here.
    pub(super) sources: Vec<String>,
    /// Where one letter is edited.
    #[serde(skip)]
    pub(super) edit: Option<Edit>,
    #[serde(skip)]
    pub(super) is_local: bool,
    #[serde(skip)]
    pub(super) moves_on: MovesOn,
    /// Where acts are allowed.
    #[serde(skip)]
    pub(super) drawn: Option<Drawn>,
}

/// What was read.
#[derive(Serialize)]
pub(super) struct Found {
    pub(super) cause: Option<String>,
    pub(super) letters: Vec<Letter>,
    /// Where the next page begins.
    pub(super) next: Option<u64>,
    /// What may be left, and no page of it; of that, JSON has whether there may be any.
    #[serde(rename = "more", serialize_with = "any")]
    pub(super) unseen: Unseen,
    /// Whether letters were read: those of a deployed queue are read only on demand, since SQS counts it as a receive.
    pub(super) read: bool,
    /// Where this page begins, if not with the first letter.
    #[serde(skip)]
    pub(super) after: Option<String>,
}

fn any<S: Serializer>(unseen: &Unseen, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(unseen.any())
}

/// What becomes of letters that are read too often.
pub(super) struct MovesOn {
    /// After how many receives SQS moves them on, where pages receive them.
    pub(super) after: Option<u32>,
    /// What may have become of one that is gone.
    pub(super) gone: String,
}

/// What forms say of the page that they are on.
pub(super) struct Drawn {
    pub(super) form: String,
    /// When it was opened, in milliseconds since 1970: of all letters of the cause, those that were sent until then are meant.
    pub(super) until_ms: u64,
    /// The queue that the letters go back to, where it is known.
    pub(super) came_from: Option<String>,
    /// Where a letter can go.
    pub(super) others: Vec<String>,
}

/// One letter that is edited.
pub(super) struct Edit {
    /// Where a letter goes, as it was chosen.
    pub(super) to: Option<String>,
}

impl Page for Cause {
    const TAB: Tab = Tab::Dead;

    fn title(&self) -> String {
        match (&self.found.cause, &self.edit) {
            (_, Some(_)) => "Edit and send back".to_owned(),
            (Some(cause), _) => cause.clone(),
            (None, _) if !self.found.read => "Dead letters of one cause".to_owned(),
            (None, _) => "No letters of this cause".to_owned(),
        }
    }

    fn again(&self) -> Option<String> {
        self.drawn.as_ref().map(|drawn| format!("{}&{UNTIL}={}", self.path(), drawn.until_ms))
    }

    fn above(&self) -> Markup {
        let first = self.found.letters.first();
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
        match self.found.letters.first().zip(self.edit.as_ref()) {
            Some((letter, edit)) => self.edit(letter, edit),
            None if self.is_local => html! {},
            None => self.list(),
        }
    }

    fn summary(&self) -> Option<String> {
        let Found { letters, unseen, next, after, .. } = &self.found;
        let none = letters.is_empty() && !unseen.any() && next.is_none() && after.is_none();
        none.then(|| "No letter of this cause is here any more.".to_owned())
    }
}

impl Cause {
    /// Returns where this page is. Of a deployed queue it receives no letter there before that is asked for.
    fn path(&self) -> String {
        let after = self.found.after.as_ref().map_or_else(String::new, |after| format!("&{AFTER}={after}"));
        format!("{}{after}", letters::path(&self.group, &self.queue))
    }

    fn list(&self) -> Markup {
        let Found { letters, next, unseen, read, after, .. } = &self.found;
        let all = html! { a href="/dead" { "All dead letters" } };
        html! {
            (letters::careful(self.moves_on.after))
            @if !read {
                (letters::read_them(&text::path("/dead/", &self.group), &[("queue", &self.queue)]))
            } @else if letters.is_empty() && (unseen.any() || next.is_some()) {
                (text::empty("None of this cause so far", &html! { "Not all letters of the queue were looked at. " (all) }))
            } @else if letters.is_empty() && after.is_some() {
                (text::empty("No later letters of this cause", &html! { a href=(letters::path(&self.group, &self.queue)) { "From the first" } }))
            } @else if letters.is_empty() {
                (text::empty("Nothing left of this cause", &html! { "What was here was " (self.moves_on.gone) ". " (all) }))
            } @else {
                @if let Some(drawn) = &self.drawn { (self.acts(drawn)) }
                @for letter in letters { (self.letter(letter)) }
            }
            @if unseen.cut && !letters.is_empty() {
                p .soft { "The first " (letters.len()) " letters of this cause; there may be more." }
            }
            @if let Some(not_shown) = unseen.not_shown_in_words() {
                p .soft { (not_shown) ". Some may be of this cause, and none is among those that are shown." }
            }
            (self.stay_hidden())
            @if let Some(next) = next {
                p { a rel="next" href={ (letters::path(&self.group, &self.queue)) "&" (AFTER) "=" (next) } { "Later letters" } }
            }
        }
    }

    /// Says how many letters stay hidden that were read, also from an act that follows.
    fn stay_hidden(&self) -> Markup {
        html! { @if let Some(stay_hidden) = self.found.unseen.stay_hidden_in_words() { p .soft { (stay_hidden) } } }
    }

    /// Whether an act on all names each letter, so that it hits no other: what something else hides now was not shown. A page that is drawn
    /// again shows what comes, and by then the act on it may be under way.
    fn names_all(&self) -> bool {
        !self.is_local && !self.found.unseen.cut && self.found.next.is_none()
    }

    /// What can be done with all of them.
    fn acts(&self, drawn: &Drawn) -> Markup {
        let until = drawn.until_ms.to_string();
        let mut all =
            vec![(FORM, drawn.form.as_str()), ("queue", &self.queue), ("group", &self.group), (UNTIL, &until)];
        let (which, others) = match self.names_all() {
            true => ("that is shown here", "Others stay."),
            false => ("of this cause", NOT_SHOWN),
        };
        if self.names_all() {
            all.extend(self.found.letters.iter().map(|letter| ("id", letter.message_id.as_str())));
        }
        let parked = self.found.letters.iter().any(|letter| letter.why.outcome.as_deref() == Some("parked"));
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
            (self.came_since(drawn))
            @if drawn.came_from.is_none() { p .soft.small { (self.unknown(drawn)) } }
            @if parked {
                p .soft.small { "Parked work runs again only once its key is released: follow the key of a letter." }
            }
        }
    }

    /// Says beside the acts on all that some letters that are shown are none of these.
    fn came_since(&self, drawn: &Drawn) -> Markup {
        let sent = self.found.letters.iter().filter_map(|letter| letter.sent.sent_ms);
        let since = sent.filter(|sent_ms| *sent_ms > drawn.until_ms).count() as u64;
        html! {
            // There from the first, so that what comes into it is spoken.
            div role="status" {
                @if since > 0 {
                    p .notice.refused {
                        (shape(Tone::Warn))
                        span {
                            (text::counted(since, "letter that is shown was", "letters that are shown were"))
                            " sent since this page was opened. What is done to all leaves them: " a href=(self.path()) { "look again" }
                            " to mean them, too."
                        }
                    }
                }
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
        let edit = format!("{}&edit={}", self.path(), text::encoded(&letter.message_id));
        let (story, own) = (short(letter.story()), short(&letter.message_id));
        let what = format!("letter {story}");
        html! {
            article .letter.card id={ "letter-" (letter.message_id) } {
                h2 { (text::message(letter.story())) @if own != story { " " span .id.short.soft title=(letter.message_id) { "letter " (own) } } }
                (facts(letter))
                (text::scrolled(&format!("Body of {what}"), &letter.sent.body))
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
            (letters::careful(self.moves_on.after))
            (self.stay_hidden())
            (facts(letter))
            form .edit.card method="post" action=(REDRIVE) {
                @if let Some(drawn) = &self.drawn { (form::hidden(&self.one(letter, drawn))) }
                @if let Some(after) = &self.found.after { (form::hidden(&[(AFTER, after)])) }
                (form::field("Body", &html! { textarea name="body" rows=(rows) spellcheck="false" autocomplete="off" required { "\n" (letter.sent.body) } }))
                (form::field("To", &form::select("to", to, edit.to.as_deref())))
                div .acts {
                    button .main type="submit" { "Send and take it out of here" }
                    a href=(self.path()) { "Leave it as it is" }
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
