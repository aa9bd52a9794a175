//! After how many receives a queue dead-letters a message: pure.

use crate::limits::RECEIVES_MAX_DEFAULT;

/// The `maxReceiveCount` of the queue, where it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReceivesMax(pub(crate) Option<u32>);

impl ReceivesMax {
    fn assumed(self) -> u32 {
        self.0.unwrap_or(RECEIVES_MAX_DEFAULT)
    }

    /// Returns whether this is the last receive, where the usual number is assumed if none is known.
    pub(crate) fn is_last(self, receive: u32) -> bool {
        receive >= self.assumed()
    }

    /// Returns whether this is known to be the last receive. One that was received more often shows that the setting is wrong.
    pub(crate) fn is_known_last(self, receive: u32) -> bool {
        self.0 == Some(receive)
    }

    /// Returns whether one receive is left at most, where the usual number is assumed if none is known: not at the first one.
    pub(crate) fn is_nearly_last(self, receive: u32) -> bool {
        receive.saturating_add(1) >= self.assumed().max(2)
    }

    /// Returns how many are left; `None` where none is known, and more than the usual number show that there are others.
    pub(crate) fn left(self, receive: u32) -> Option<u32> {
        let usual = (receive <= RECEIVES_MAX_DEFAULT).then_some(RECEIVES_MAX_DEFAULT);
        self.0.or(usual).map(|max| max.saturating_sub(receive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_assumed_but_not_known() {
        // maxReceiveCount, receive; last, known to be, nearly last; left
        for (max, receive, wanted) in [
            (None, 3, (false, false, false, Some(2))),
            (None, 4, (false, false, true, Some(1))),
            (None, 5, (true, false, true, Some(0))),
            (None, 6, (true, false, true, None)),
            (Some(3), 2, (false, false, true, Some(1))),
            (Some(3), 3, (true, true, true, Some(0))),
            (Some(3), 4, (true, false, true, Some(0))),
            (Some(1), 0, (false, false, false, Some(1))),
            (Some(1), 1, (true, true, true, Some(0))),
        ] {
            let of = ReceivesMax(max);
            let seen = (of.is_last(receive), of.is_known_last(receive), of.is_nearly_last(receive), of.left(receive));
            assert_eq!(seen, wanted, "{receive} of {max:?}");
        }
    }
}
