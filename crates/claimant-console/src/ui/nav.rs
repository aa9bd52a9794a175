//! The parts of the console.

use maud::{Markup, html};

/// A part of the console, by the page that it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Overview,
    Messages,
    Keys,
    Dead,
    Effects,
    Send,
    Faults,
    Doctor,
}

impl Tab {
    const ALL: [Self; 8] =
        [Self::Overview, Self::Messages, Self::Keys, Self::Dead, Self::Effects, Self::Send, Self::Faults, Self::Doctor];

    /// Returns its name and the path of its first page.
    pub(crate) fn link(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "/"),
            Self::Messages => ("Messages", "/messages"),
            Self::Keys => ("Keys", "/keys"),
            Self::Dead => ("Dead letters", "/dead"),
            Self::Effects => ("Effects", "/effects"),
            Self::Send => ("Send", "/send"),
            Self::Faults => ("Faults", "/faults"),
            Self::Doctor => ("Doctor", "/doctor"),
        }
    }
}

/// Draws the list of the parts, this one marked.
pub(crate) fn nav(current: Tab) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for tab in Tab::ALL {
                    @let (name, path) = tab.link();
                    li { a href=(path) aria-current=[(tab == current).then_some("page")] { (name) } }
                }
            }
        }
    }
}
