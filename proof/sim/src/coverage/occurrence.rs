//! What a scenario can meet, by name.

/// Defines [`Occurrence`]: a variant for each row of docs/reliability.md ("Figures"), in that order.
macro_rules! occurrences {
    ($($name:ident: $text:literal,)*) => {
        /// What can go wrong in a run. Its number is that of its row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Occurrence {
            $(#[doc = $text] $name,)*
        }

        impl Occurrence {
            /// All, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number of its row, from 1 on.
            #[must_use]
            pub const fn number(self) -> usize {
                self as usize + 1
            }

            /// Says what it is.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

occurrences! {
    KilledBeforeClaim: "killed before the claim",
    KilledBeforeAnswer: "killed after the claim applied, before the answer",
    KilledInHandler: "killed inside the handler",
    KilledAfterEffect: "killed after the effect, before complete",
    KilledAfterCompletion: "killed after complete, before returning",
    DeletionFails: "returned, but the deletion fails",
    ClaimTriedAgain: "claim applied, answer lost, tried again",
    CompletionAnswerLost: "complete applied, answer lost",
    CompletionUnresolved: "completion unresolved until the end",
    LateClaim: "delayed claim lands after its sender gave up",
    LateRenewal: "delayed old renewal lands late",
    RenewalAfterSettle: "delayed renewal lands after settle",
    OvertakenCompletes: "lease ends mid-handler, B claims, A completes",
    StaleRelease: "stale release after takeover",
    OwnerReturnsToNothing: "TTL deletes the record, the stale owner returns",
    ExpiredNotDeleted: "expired record not yet deleted",
    ClockFarOff: "clock jumps, or is far off",
    FrozenIdle: "frozen after returning, thawed later",
    KeyTwiceInBatch: "one key twice in a batch",
    SeveralInvocations: "several invocations in one process",
    BusyElsewhere: "duplicate while in progress elsewhere",
    BusyNearEnd: "busy retries near maxReceiveCount",
    GroupFails: "FIFO: a message of a group fails before others",
    BadBody: "bad body",
    NoMessageId: "a record without messageId",
    ClaimsPartlyThrottled: "some of several claims throttled",
    HandlerPanics: "handler panics",
    HandlerHangs: "handler never returns: pending, or blocking",
    Terminated: "SIGTERM",
    LargeBatch: "10,000 messages, all failing",
    LargeResult: "result larger than is kept",
    StoreUnreachable: "store unreachable for the whole invocation",
    VisibilityRunsOut: "visibility runs out while the handler runs",
    MappingWithoutReports: "mapping without ReportBatchItemFailures",
    DeadLetteringFails: "dead-lettering fails",
    HandlerAborts: "a handler aborts its process, with others in its batch",
    ThreadBlocked: "a handler blocks its thread for good, and others come after it",
    LongOutage: "the store is away for more than 10 s after an effect, and is asked again",
    RedrivenUnderNewId: "no key rule: a message is redriven under a new id",
    RuleChanged: "another fingerprint rule between a message and its retry or copy",
    ProcessCrowded: "invocations of one process have more to do than it may do at once",
    NoTimeNearEnd: "no time for a message, and it comes back near maxReceiveCount",
    BusyThenFree: "a busy key is free while its message waits for it",
    BusyTooLong: "a busy key is still busy when the wait for it is over",
    NotFetched: "a payload cannot be fetched",
    ItemsFail: "some items of a call fail",
    CallBreaks: "a call of several items panics, never returns or loses its process",
    SharedMessageFails: "a message for several consumers fails",
    StrayRejected: "a kind that no route takes is rejected",
    StrayIgnored: "a kind that no route takes is ignored",
    OperatorActs: "an operator acts on abandoned, parked or rejected work",
    OperatorOvertaken: "a record changes between an operator's read and write",
    OperatorDies: "an operator dies between reading and writing",
    OperatorRefused: "an operator wants a key that is busy or completed",
    RunsAfterOperator: "a key runs again after an operator acted on it",
    BreakerOpens: "a breaker opens",
    BreakerCloses: "a breaker is closed again",
    BreakerOwnerDies: "a process dies that has opened a breaker, or probes it",
    ScheduleSends: "a schedule sends a message again",
    ScheduledNotDeleted: "a schedule is made, and its message is not deleted",
    ScheduledAlready: "a message is to be scheduled that has a schedule",
    HiddenAsLongAsCan: "a message waits as long as its queue can hide it, and not as long as it should",
    IntakePaused: "the intake is paused",
    PauseInterrupted: "a process dies or is stopped between two steps of a pause",
    IntakeResumed: "a paused intake is resumed before its time",
    SlotRefused: "a slot of a limit is refused, since another process has it",
    SlotTakenOver: "a slot of a limit is taken over from a process that let it go, or died",
    KilledBeforeEnding: "killed while the ending of done work waits for others",
    LookedAtAndDone: "a key is looked at before it is claimed, and is done",
    RedrivenAmidFaults: "a dead letter is moved back while faults go on",
    ReadsPartlyThrottled: "some of several records are not read, for want of capacity",
}
