//! A page, or what an act has done, as HTML or JSON, and errors as both.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use claimant_core::Error;
use claimant_core::error::Chain;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Value, json};

use crate::ask::{Ask, Reader};
use crate::console::Console;
use crate::done::{Done, Notice};
use crate::refused::{Refused, status_of};
use crate::timeline::words::sentence;
use crate::ui::harmless::harmless;
use crate::ui::layout::{self, Frame};
use crate::ui::nav::Tab;

/// The field of a query that names a notice.
const NOTICE: &str = "notice";

/// What one address shows: serialised for a program, drawn for a person.
pub(crate) trait Page: Serialize {
    /// The part of the console that it belongs to.
    const TAB: Tab;

    /// Returns the same of this page, where pages of several parts share one type.
    fn tab(&self) -> Tab {
        Self::TAB
    }

    /// Returns the page's heading, which is its title too.
    fn title(&self) -> String;

    /// Returns what is above the live part and stays as it is: searches, explanations.
    fn above(&self) -> Markup {
        html! {}
    }

    /// Returns what is drawn again whenever something changes. Empty where the page has nothing of that kind.
    fn live(&self) -> Markup {
        html! {}
    }

    /// Returns what is below the live part and stays as it is: forms that someone may be filling in.
    fn below(&self) -> Markup {
        html! {}
    }

    /// Returns where the open page asks for its live part, if not where it is itself. So it says again what its forms mean: they stay as
    /// they were when it was opened, and the live part says where that has changed.
    fn again(&self) -> Option<String> {
        None
    }

    /// Returns the state of it all in a few words, for screen readers: spoken when it changes, so it should change seldom.
    fn summary(&self) -> Option<String> {
        None
    }
}

impl Ask {
    /// Answers with a page.
    pub(crate) fn page<P: Page>(&self, console: &Console, page: Result<P, Error>) -> Response {
        let page = match page {
            Ok(page) => page,
            Err(error) => return self.refused(console, P::TAB, &error),
        };
        if self.reader == Reader::Program {
            return Json(page).into_response();
        }
        let live = page.live();
        let again = page.again();
        let again = self.again(console).map(|own| again.as_deref().unwrap_or(own));
        let live = (!live.0.is_empty()).then(|| layout::live(again, page.summary().as_deref(), &live));
        if self.reader == Reader::OpenPage {
            return Html(harmless(live.unwrap_or_default().into_string())).into_response();
        }
        let title = page.title();
        let stream = console.source().is_sampled().then(layout::stream);
        let content = html! { (page.above()) @if let Some(live) = &live { @if let Some(stream) = &stream { (stream) } (live) } (page.below()) };
        self.whole(console, page.tab(), &title, &content, live.is_some())
    }

    /// Answers with what an act has done: 303 to where it is seen, or JSON.
    pub(crate) fn done(&self, console: &Console, tab: Tab, done: Result<Done, Error>) -> Response {
        let done = match done {
            Ok(done) => done,
            Err(error) => return self.refused(console, tab, &error),
        };
        if self.reader == Reader::Program {
            return Json(json!({ "notice": done.notice, "result": done.value })).into_response();
        }
        if console.is_stopping() {
            // No page is served after this answer.
            return self.whole_with(console, tab, "The console stops", (Some(done.notice), &html! {}), true);
        }
        let separator = if done.see.contains('?') { '&' } else { '?' };
        let place = format!("{}{separator}{NOTICE}={}", done.see, console.keep(done.notice));
        (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
    }

    /// Answers as [`done`](Self::done) does, but has a person see what did not work where the act was asked for: at `see`, with what was
    /// typed.
    pub(crate) fn done_at(
        &self,
        console: &Console,
        tab: Tab,
        done: Result<Done, Error>,
        see: impl FnOnce() -> String,
    ) -> Response {
        let done = match done {
            Err(error) if self.reader != Reader::Program => {
                Ok(Done::refused(sentence(&Chain(&error).to_string()), see(), Value::Null))
            }
            done => done,
        };
        self.done(console, tab, done)
    }

    /// Answers with an error: what is wrong, where, and how to fix it.
    pub(crate) fn refused(&self, console: &Console, tab: Tab, error: &Error) -> Response {
        self.failed(console, tab, status_of(error.kind()), Chain(error).to_string())
    }

    /// Answers that the console does not do that, whoever asks.
    pub(crate) fn forbidden(&self, console: &Console, why: String) -> Response {
        self.failed(console, Tab::Overview, StatusCode::FORBIDDEN, why)
    }

    /// Answers that there is no such thing: `There is no message 1234.`
    pub(crate) fn absent(&self, console: &Console, tab: Tab, what: &str) -> Response {
        self.failed(console, tab, StatusCode::NOT_FOUND, what.to_owned())
    }

    fn failed(&self, console: &Console, tab: Tab, status: StatusCode, text: String) -> Response {
        if self.reader == Reader::Program {
            return Refused::new(status, text, true).into_response();
        }
        let title = if status == StatusCode::NOT_FOUND { "Not here" } else { "That did not work" };
        let is_whole = self.reader != Reader::OpenPage;
        // As what became of an act: of a page that loads nothing else is spoken but its title.
        let error = html! { p .error role="alert" tabindex=[is_whole.then_some("-1")] autofocus[is_whole] { (text) } };
        let content = html! { (error) p { a href="/" { "Back to the overview" } } };
        if is_whole {
            return (status, self.whole(console, tab, title, &content, false)).into_response();
        }
        // It goes on asking: what does not work now may work the next time.
        let live = layout::live(self.again(console), None, &content);
        (status, Html(harmless(live.into_string()))).into_response()
    }

    /// Returns where a page that is open asks for its live part, where pages are drawn again.
    fn again(&self, console: &Console) -> Option<&str> {
        console.source().is_sampled().then_some(&self.uri)
    }

    /// Answers with a whole page, of which a part may be drawn again.
    fn whole(&self, console: &Console, tab: Tab, title: &str, content: &Markup, has_live: bool) -> Response {
        let notice = self.query.get(NOTICE).and_then(|number| number.parse().ok());
        let notice = notice.and_then(|number| console.notice(number));
        self.whole_with(console, tab, title, (notice, content), has_live)
    }

    fn whole_with(
        &self,
        console: &Console,
        tab: Tab,
        title: &str,
        (notice, content): (Option<Notice>, &Markup),
        has_live: bool,
    ) -> Response {
        let source = console.source();
        let frame = Frame {
            tab,
            title,
            place: &source.name(),
            read_only: !source.allows_writes(),
            is_live: has_live && source.is_sampled(),
            notice,
        };
        Html(harmless(layout::page(&frame, content).into_string())).into_response()
    }
}
