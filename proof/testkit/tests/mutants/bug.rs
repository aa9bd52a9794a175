//! The bugs, each with the clause that forbids it.

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// Every call panics.
    Panics,
    /// Every call fails.
    Unreachable,
    UnreachableAndTells,
    UnreachableAndTellsPassword,
    /// No record is ever found by `get`.
    ReadsNothing,
    /// `get` panics.
    ReadPanics,
    /// `claim` never answers.
    ClaimHangs,
    /// Each call takes nearly all the time that it is given.
    TakesItsTime,
    /// Its client blocks a thread for longer than it may.
    SleepsInAThread,

    // What is written is not what was decided.
    IgnoresSkew,
    ParksWithoutWriting,
    ForgetsCreation,
    ComparesAllRules,
    CutsFingerprints,
    CutsResults,
    CutsErrors,
    StripsNul,
    TakesEmptyForNone,
    LowersMessageIds,
    KeepsSeconds,
    KeepsDoubles,
    ForgetsInterruptions,
    ForgetsLastErrors,
    FailedInCompanyIsRejected,
    AnswersInReverse,
    AnswersAHundred,
    SettlesTwentyFive,
    FirstOfBatchForAll,
    FirstResultForAll,

    // Reading and writing are two steps.
    BlindPut,
    ReadsThenClaims,
    ReadsThenSettles,
    GrantsRepeatedKeys,
    ClaimsAllUnguarded,
    /// Seen by whoever has two instances alone.
    LocksInItsProcess,
    LocksInTheOrderOfTheCall,

    // Guards.
    SettlesUnguarded,
    ChecksOwnerOnly,
    ChecksFenceOnly,
    RenewsUnguarded,
    ReadsThenRenews,
    SettlesAllUnguarded,

    // Own writes.
    RefusesOwnClaim,
    RefusesOwnClaimAfterLease,
    ForgetsTakeovers,
    ForgetsLastErrorOfOwnClaim,
    LosesOwnEnding,
    ReleasesTwice,
    RefreshesOwnEnding,

    // Fences.
    FenceStays,
    ReleaseDeletes,
    FenceRestartsWithWindow,

    // Completed is final.
    RerunsForAnotherMessage,
    OwnerReopens,
    RenewsCompleted,

    // Leases.
    ShortensLeases,
    ShowsTheEndAskedFor,

    // Expiry.
    TrustsTtl,
    ExpiresASecondEarly,
    RenewalKeepsExpiry,

    // Clocks.
    HasAClock,
    ClockNeverGoesBack,

    // Keys.
    FoldsCase,
    FoldsSharpS,
    FoldsAccents,
    TrimsKeys,
    CutsKeys,
    StopsAtNul,

    // Time given.
    Hangs,
    OverflowsTime,
    GuessesGranted,
    GuessesLost,
    CallsItThrottled,
    KeepsClaims,

    // Dropped calls.
    LeavesALock,
    WaitsForItsLock,
    MixesAnswers,
    WritesHalf,

    // Silence.
    TellsKey,
    TellsKeyInCause,
    TellsResult,
}

impl Bug {
    /// Every bug that one instance of a store can have and still answer, with the number of its clause.
    pub(crate) const ALL: &[(usize, Self)] = &[
        (1, Self::IgnoresSkew),
        (1, Self::ParksWithoutWriting),
        (1, Self::ForgetsCreation),
        (1, Self::ComparesAllRules),
        (1, Self::CutsFingerprints),
        (1, Self::CutsResults),
        (1, Self::CutsErrors),
        (1, Self::StripsNul),
        (1, Self::TakesEmptyForNone),
        (1, Self::LowersMessageIds),
        (1, Self::KeepsSeconds),
        (1, Self::KeepsDoubles),
        (1, Self::ForgetsInterruptions),
        (1, Self::ForgetsLastErrors),
        (1, Self::FailedInCompanyIsRejected),
        (1, Self::AnswersInReverse),
        (1, Self::AnswersAHundred),
        (1, Self::SettlesTwentyFive),
        (1, Self::FirstOfBatchForAll),
        (1, Self::FirstResultForAll),
        (2, Self::BlindPut),
        (2, Self::ReadsThenClaims),
        (2, Self::ReadsThenSettles),
        (2, Self::GrantsRepeatedKeys),
        (2, Self::ClaimsAllUnguarded),
        (2, Self::LocksInTheOrderOfTheCall),
        (3, Self::SettlesUnguarded),
        (3, Self::ChecksOwnerOnly),
        (3, Self::ChecksFenceOnly),
        (3, Self::RenewsUnguarded),
        (3, Self::ReadsThenRenews),
        (3, Self::ReadsThenSettles),
        (3, Self::SettlesAllUnguarded),
        (4, Self::RefusesOwnClaim),
        (4, Self::RefusesOwnClaimAfterLease),
        (4, Self::ForgetsTakeovers),
        (4, Self::ForgetsLastErrorOfOwnClaim),
        (4, Self::LosesOwnEnding),
        (4, Self::ReleasesTwice),
        (4, Self::RefreshesOwnEnding),
        (5, Self::FenceStays),
        (5, Self::ReleaseDeletes),
        (5, Self::FenceRestartsWithWindow),
        (6, Self::RerunsForAnotherMessage),
        (6, Self::OwnerReopens),
        (6, Self::RenewsCompleted),
        (7, Self::ShortensLeases),
        (7, Self::ShowsTheEndAskedFor),
        (8, Self::TrustsTtl),
        (8, Self::ExpiresASecondEarly),
        (8, Self::RenewalKeepsExpiry),
        (9, Self::HasAClock),
        (9, Self::ClockNeverGoesBack),
        (10, Self::FoldsCase),
        (10, Self::FoldsSharpS),
        (10, Self::FoldsAccents),
        (10, Self::TrimsKeys),
        (10, Self::CutsKeys),
        (10, Self::StopsAtNul),
        (11, Self::Hangs),
        (11, Self::OverflowsTime),
        (11, Self::GuessesGranted),
        (11, Self::GuessesLost),
        (11, Self::CallsItThrottled),
        (11, Self::KeepsClaims),
        (12, Self::LeavesALock),
        (12, Self::WaitsForItsLock),
        (12, Self::MixesAnswers),
        (12, Self::WritesHalf),
        (13, Self::TellsKey),
        (13, Self::TellsKeyInCause),
        (13, Self::TellsResult),
    ];
}
