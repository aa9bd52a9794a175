//! A claim: the owned right to work on a key.

use std::fmt;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::key::{InvalidValue, RecordId, hex};
use crate::transaction::AnyTransaction;

/// Random bytes in an [`OwnerToken`].
const OWNER_TOKEN_BYTES: usize = 16;

/// Who holds a claim: a fresh random token for each attempt to claim.
///
/// Never a request id or a message id: both repeat. Drawn from the operating system each time, because a
/// process restored from a snapshot shares any random state it had.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerToken(Arc<str>);

impl OwnerToken {
    /// Draws a token that no other claim has.
    ///
    /// # Errors
    /// When the operating system gives no random bytes. The message must then be reported failed.
    pub fn draw() -> Result<Self, InvalidValue> {
        let mut bytes = [0; OWNER_TOKEN_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|e| InvalidValue(format!("the operating system gave no random bytes for an owner token: {e}")))?;
        Ok(Self(hex(&bytes).into()))
    }

    /// Returns the token as a record holds it; stores use this to read one back, tests to name one.
    #[must_use]
    pub fn from_stored(token: impl Into<String>) -> Self {
        Self(token.into().into())
    }

    /// Returns the token itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns its first bytes, which tell owners apart in logs and settle nothing.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.0.get(..6).unwrap_or_default()
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first bytes tell owners apart in a trace; the whole token would let a reader settle the claim.
        write!(f, "OwnerToken({}…)", self.prefix())
    }
}

/// A number that grows by one with every claim of a key; a later fence beats an earlier one.
///
/// Hand it to a system that can refuse a write with an older one. It starts again at 1 only after a record
/// was deleted at the end of its deduplication window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// The fence of a key's first claim.
    pub const FIRST: Self = Self(1);

    /// Returns the fence with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the fence of the next claim.
    #[must_use]
    pub const fn next(self) -> Self {
        // OK because a key claimed a thousand times a second would take half a billion years to get there.
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The owned right to work on a key, until its lease ends.
///
/// Linear: not `Clone`, and consumed by settling it. Dropping one does no I/O; its key becomes claimable again
/// when the lease is over.
#[must_use = "a claim that is not settled blocks its key until the lease ends"]
#[derive(Debug)]
pub struct Claim {
    /// The record that is claimed.
    pub id: RecordId,
    /// Who claimed it.
    pub owner: OwnerToken,
    /// Which claim of the key this is.
    pub fence: Fence,
    /// Until when the claim is honoured.
    pub lease_until: Timestamp,
    /// Which run of the handler for this key this is: 1 for the first.
    pub attempt: u32,
    /// How many owners left the key in progress since a handler's run of it last came to an end: 0 where it was not taken over. Those that were
    /// taken over one right after the other, without being set aside, count as one. Where the answer to the claim was lost, as many as are known, and at
    /// least one of a key that was claimed before.
    pub interruptions: u32,
    /// The error of the last run of the handler that ended, at most [`ERROR_MAX_BYTES`](crate::record::ERROR_MAX_BYTES) bytes, where the record
    /// has it.
    pub last_error: Option<Box<str>>,
    /// The transaction that ends with the claim, from a [`Transactional`](crate::Transactional) store.
    pub transaction: Option<AnyTransaction>,
}

impl Claim {
    /// Returns whether an earlier owner had left the key in progress, and no handler's run of it has come to an end since.
    #[must_use]
    pub const fn is_taken_over(&self) -> bool {
        self.interruptions > 0
    }
}
