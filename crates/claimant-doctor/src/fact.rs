//! What is known, and what is not.

/// A value, or that it cannot be known from where the doctor looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// It is this, a default where nothing is set.
    Known(T),
    /// It cannot be known: no check says anything that depends on it.
    #[default]
    Unknown,
}

impl<T> Fact<T> {
    /// Returns the value, if it is known; with `?`, a check ends as unanswered.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown => None,
        }
    }

    /// Returns the fact about something that follows from this.
    pub fn map<U>(self, follows: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(follows(value)),
            Self::Unknown => Fact::Unknown,
        }
    }
}

/// Returns whether all of these are so, each if it is known: one that is not so decides, whatever the others are.
pub(crate) fn all(each: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(true);
    for one in each {
        match one {
            Some(false) => return one,
            Some(true) => {}
            None => all = None,
        }
    }
    all
}

impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unknown, Self::Known)
    }
}
