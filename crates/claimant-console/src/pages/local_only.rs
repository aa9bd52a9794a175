//! What there is of a local cloud alone.

use axum::response::Response;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::ui::nav::Tab;
use crate::ui::text;

/// A page that says that a deployed stack has nothing of this kind.
#[derive(Serialize)]
pub(super) struct LocalOnly {
    #[serde(skip)]
    tab: Tab,
    only_local: bool,
    why: &'static str,
}

/// Answers that this page is of a local cloud, and why; nothing where the console shows one.
pub(super) fn local_only(console: &Console, ask: &Ask, tab: Tab, why: &'static str) -> Option<Response> {
    (!console.place().is_local()).then(|| ask.page(console, Ok(LocalOnly { tab, only_local: true, why })))
}

impl Page for LocalOnly {
    const TAB: Tab = Tab::Overview;

    fn tab(&self) -> Tab {
        self.tab
    }

    fn title(&self) -> String {
        self.tab.link().0.to_owned()
    }

    fn below(&self) -> Markup {
        text::empty("Only in a local cloud", &html! { (self.why) })
    }
}
