//! What a value leads to.

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
