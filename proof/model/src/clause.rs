//! Everything that can be switched off: the branches of the decisions, and the terms of the conditions.

use crate::conditions::{Kind, Term};

/// Something that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clause {
    /// A branch of a decision.
    Branch(Branch),
    /// A term of a condition of the lock table.
    Term(Kind, Term),
}

/// A branch of a decision; the text says what it does when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Branch {
    /// `decide`: a record in progress with the asking owner is its own earlier write.
    OwnClaim,
    /// `decide`: a lease is over only after the clock-skew margin.
    Skew,
    /// `decide`: a lease is still live at its very end.
    LeaseEnd,
    /// `decide`: a live lease keeps others out.
    LiveLease,
    /// `decide`: a record with a live lease has no window that is over.
    LiveInWindow,
    /// `decide`: a record whose window is over counts as absent.
    WindowOver,
    /// `decide`: a record counts until its window is over.
    WindowOpen,
    /// `decide`: another payload is a conflict.
    Conflict,
    /// `decide`: completed work is not claimed.
    Completed,
    /// `decide`: a consumer that parks abandoned work does not rerun it.
    ParkAbandoned,
    /// `decide`: a consumer that reruns abandoned work claims it.
    RerunAbandoned,
    /// `decide`: failed work is claimed.
    FailedClaimed,
    /// `decide`: a rejected message is not run again.
    RejectedSame,
    /// `decide`: another message runs rejected work again.
    RejectedOther,
    /// `decide`: parked work is not claimed.
    Parked,
    /// `decide`: a later claim has a later fence.
    Fence,
    /// `decide`: also where the window is over.
    FenceOverWindows,
    /// `decide`: attempts count on within a window.
    Attempts,
    /// `expiry`: the window of work in progress begins where its lease is over.
    WindowAfterLease,
    /// `settle`: the owner is the claim's.
    SettleOwner,
    /// `settle`: the fence is the claim's.
    SettleFence,
    /// `settle`: a record that shows the ending asked for is an earlier write of it.
    SettleOwnWrite,
    /// `settle`: a record that shows another ending is not.
    SettleOtherEnding,
    /// `settle`: only a claim in progress ends.
    SettleInProgress,
    /// `settle`: a claim whose record is gone is lost.
    SettleGone,
    /// `renew`: the status is in progress.
    RenewInProgress,
    /// `renew`: the owner is the claim's.
    RenewOwner,
    /// `renew`: the fence is the claim's.
    RenewFence,
    /// `renew`: no lease is made shorter.
    RenewLater,
    /// `renew`: a lease that is as long already is held.
    RenewOwnWrite,
}
