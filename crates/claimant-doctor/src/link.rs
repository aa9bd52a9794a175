//! What a value leads to.

use crate::fact::{Fact, all};

/// What something refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// The one of this id.
    Here(String),
    /// One that is not described here, by its ARN or name.
    Elsewhere(String),
    /// What the parts of one value lead to, which commas separate.
    Several {
        /// The value.
        text: String,
        /// Its parts.
        links: Vec<Link>,
    },
}

impl Link {
    /// Returns whether this leads to what has the id.
    pub fn is(&self, id: &str) -> bool {
        self.each().any(|link| matches!(link, Self::Here(here) if here == id))
    }

    /// Returns the links in one value, separated by commas there; most values are one.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        let several =
            if let Self::Several { links, .. } = self { links.as_slice() } else { std::slice::from_ref(self) };
        several.iter()
    }

    /// Returns the id, ARN or name.
    pub fn text(&self) -> &str {
        match self {
            Self::Here(text) | Self::Elsewhere(text) | Self::Several { text, .. } => text,
        }
    }
}

/// What a mapping invokes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invoked {
    /// The function.
    pub function: Fact<Link>,
    /// The alias or version of it that is named, if one is: for Lambda each is another function.
    pub qualifier: Fact<Option<String>>,
}

impl Invoked {
    /// Returns whether Lambda counts both as one function: each version or alias of one is another.
    pub(crate) fn is(&self, other: &Self) -> Fact<bool> {
        let function = || is_same(self.function.known()?, other.function.known()?);
        let qualifier = || Some(self.qualifier.known()? == other.qualifier.known()?);
        all([function(), qualifier()]).into()
    }

    /// Returns the function as Lambda writes it, with the alias or version as far as that is known.
    pub fn text(&self) -> String {
        let function = self.function.known().map_or("?", Link::text);
        match self.qualifier.known() {
            Some(Some(qualifier)) => format!("{function}:{qualifier}"),
            _ => function.to_owned(),
        }
    }
}

/// Whether two links lead to one function; of a name and an ARN that has it that cannot be known.
fn is_same(one: &Link, other: &Link) -> Option<bool> {
    let name = |link: &Link| link.text().rsplit(':').next().map(str::to_owned);
    if one == other { Some(true) } else { (name(one) != name(other)).then_some(false) }
}
