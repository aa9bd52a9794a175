//! Every limit, named, with its unit last; relations between them are asserted when this compiles.

/// The default clock-skew margin ε: two hosts kept by NTP differ by far less.
pub const SKEW_DEFAULT_MS: u64 = 1_000;

/// The largest clock-skew margin that may be set.
pub const SKEW_MAX_MS: u64 = 60_000;

/// How long a queue keeps a message at most.
pub const QUEUE_RETENTION_MAX_S: u64 = 14 * 86_400;

/// The default deduplication window: longer than any message can wait in its queue.
pub const WINDOW_DEFAULT_S: u64 = 15 * 86_400;

/// The shortest deduplication window that may be set.
pub const WINDOW_MIN_S: u64 = 60;

/// The longest deduplication window that may be set.
pub const WINDOW_MAX_S: u64 = 10 * 365 * 86_400;

/// The last time that every store keeps exactly, in milliseconds since the epoch: the largest whole number below which an
/// `f64`, in which some servers calculate, holds every whole number. It is in the year 287396.
pub const TIME_MAX_MS: u64 = (1 << 53) - 1;

/// How many messages a process works on at once, unless set.
pub const CONCURRENCY_DEFAULT: usize = 10;

/// The largest concurrency that may be set: each running message holds a task and a store request.
pub const CONCURRENCY_MAX: usize = 1_000;

/// How many records a store can claim or settle in one request: the smallest limit of any store.
pub const STORE_BATCH_MAX: usize = 25;

/// Claims are taken ahead of free slots only as far as their messages then wait no longer than this.
pub(crate) const CLAIM_AHEAD_MAX_MS: u64 = 250;

/// The most claims that are taken ahead of free slots, so that memory and open claims are bounded.
pub(crate) const CLAIM_AHEAD_MAX: usize = 4 * STORE_BATCH_MAX;

/// As many endings as this may wait for their answer, beside the concurrency; with more, nothing else is claimed.
pub(crate) const UNSETTLED_MAX: usize = CLAIM_AHEAD_MAX + 2 * STORE_BATCH_MAX;

/// With less time than this left, nothing more is claimed: the answer could come too late, and hold up its key.
pub(crate) const START_MIN_MS: u64 = 100;

/// The longest that one call for claims or settlements is given; one that fails is made again as long as there is time.
pub const STORE_CALL_MAX_MS: u64 = 5_000;

/// How much earlier a store has to answer than the engine gives up on it, so that the answers which it has by then count.
pub(crate) const STORE_GUARD_MS: u64 = 50;

/// How long the engine waits before it calls a store again that gave no answer; then twice as long each time.
pub(crate) const STORE_RETRY_BASE_MS: u64 = 50;

/// The longest such wait: a store that is back is noticed about as soon. In an outage of 20 s, each request is sent again at
/// most 50 times.
pub(crate) const STORE_RETRY_MAX_MS: u64 = 1_000;

/// How long a completion that the store refuses is tried again: a role that is being changed, or a table's key, is in order again within
/// seconds. Where a permission is really missing, invocations last so much longer.
pub(crate) const REFUSED_RETRY_MAX_MS: u64 = 10_000;

/// The longest that one call to a store is given, its tries included: no invocation lasts longer.
pub const STORE_BUDGET_MAX_MS: u64 = LEASE_MAX_MS;

/// The first wait between the tries of one call to a store; then doubling.
pub(crate) const STORE_TRY_BASE_MS: u64 = 24;

/// With less time than this left, a call to a store is not tried again.
pub(crate) const STORE_RETRY_LEFT_MIN_MS: u64 = 20;

/// The most events that the envelopes of a message's routes may open, and those of a consumer in each of them. All are worked on in one
/// invocation, or the message comes back.
pub const EVENTS_MAX: usize = 100;

/// How much larger the contents of a batch get when they are unpacked, all together: they are in memory at once. What finds no room
/// there is not started, and comes back. Routes that unpack have as much of their own.
pub const UNPACKED_BATCH_MAX_BYTES: usize = 128 << 20;

/// Messages are unpacked and decoded in this part of the time that is left: a quarter. Until they are, nothing else goes on.
pub(crate) const UNPACK_PART: u32 = 4;

/// For so long in any case: what is rejected is known without time for a handler.
pub(crate) const UNPACK_MIN_MS: u64 = 100;

/// The longest that may be set for waiting for a busy key in the invocation: its key is asked for at most 50 times.
pub const BUSY_WAIT_MAX_MS: u64 = 20_000;

/// How many dead letters are sent in one request: the queue's limit.
pub const DEAD_LETTERS_BATCH_MAX: usize = 10;

/// Payloads that messages only point to are fetched in this part of the time that is left: a quarter.
pub(crate) const FETCH_PART: u32 = 4;

/// How long a payload waits at most for those before it whose size is not known: none of them should hang, and most answer at once.
pub(crate) const ROOM_TURN_MAX_MS: u64 = 500;

/// It waits for this part of the time for fetching at most: a quarter.
pub(crate) const ROOM_TURN_PART: u32 = 4;

/// How many messages are deleted together before their payloads are removed: where that is not confirmed, all of their payloads stay.
pub(crate) const DELETIONS_TOGETHER: usize = 10;

/// How many requests at once delete messages that are done, and then remove their payloads.
pub(crate) const REMOVALS_MAX: usize = 8;

/// How long an ending waits for others to be written with where something waits for it.
pub(crate) const SETTLE_LINGER_MS: u64 = 5;

/// How long it waits at least where nothing does: the thread of a quick handler, too, can be kept waiting for a core.
pub(crate) const SETTLE_LINGER_MIN_MS: u64 = 20;

/// The longest that an ending waits for others: what was done and not written is done again if the process dies then.
pub(crate) const SETTLE_LINGER_MAX_MS: u64 = 100;

/// How many messages one call of a batch handler gets at most, unless set: as many as a store claims in one request.
pub const ITEMS_DEFAULT: usize = STORE_BATCH_MAX;

/// The largest number that may be set for it: each item takes up one message of the concurrency.
pub const ITEMS_MAX: usize = CONCURRENCY_MAX;

/// How long a call of a batch handler that is not full waits for claims that are on their way.
pub(crate) const CALL_LINGER_MS: u64 = 10;

/// The shortest renewed lease that may be set: each is renewed three times.
pub const LEASE_MIN_MS: u64 = 3_000;

/// The longest renewed lease, and the longest timeout of a handler: as long as an invocation can last.
pub const LEASE_MAX_MS: u64 = 900_000;

/// How long before the invocation's deadline the engine has returned, unless set.
pub const MARGIN_DEFAULT_MS: u64 = 500;

/// The largest margin that may be set.
pub const MARGIN_MAX_MS: u64 = 60_000;

/// The part of an invocation kept for settling claims after the last handler was cancelled, at most.
pub const SETTLE_RESERVE_MAX_MS: u64 = 1_000;

/// How long a cancelled handler has to stop; one that does not is taken to be blocking its thread.
pub const CANCEL_GRACE_MS: u64 = 100;

/// How long a handler waits for a thread before it gets one of others: the threads are then taken to be blocked.
pub(crate) const THREAD_WAIT_MS: u64 = 250;

/// How often the engine checks the threads that handlers run on.
pub(crate) const THREADS_LOOK_MS: u64 = 100;

/// The most threads that handlers are given at once; a consumer with a larger concurrency shares them.
pub const THREADS_MAX: usize = 64;

/// With so many threads blocked by handlers that were left behind, a process starts no fresh ones, and takes no more work.
pub const BLOCKED_MAX: usize = 100;

/// How many threads beyond those for the handlers of one moment a runtime has that is made because a handler blocked a thread: so many
/// more may be blocked there.
pub(crate) const THREADS_RESERVE: usize = 20;

/// The most threads of all runtimes for handlers, blocked ones included. Half of a process's are left for the function's own.
pub(crate) const HANDLER_THREADS_MAX: usize = PROCESS_THREADS_MAX / 2;

/// The fewest threads that a process may have anywhere: what a function's environment has, processes counted.
const PROCESS_THREADS_MAX: usize = 1_024;

/// How much longer than the invocation's deadline a lease lasts.
pub const LEASE_MARGIN_MS: u64 = 1_000;

/// The first delay before a failed message is tried again.
pub const BACKOFF_BASE_MS: u64 = 2_000;

/// By how much each further delay is longer. Five receives, the usual limit, then take five minutes: an outage of that
/// length is waited out, and does not end in the dead-letter queue.
pub const BACKOFF_FACTOR: u64 = 5;

/// The most calls that a breaker can count.
pub const BREAKER_CALLS_MAX: u32 = 64;

/// The shortest time for which a breaker can be open before it is probed.
pub const BREAKER_OPEN_MIN_MS: u64 = 1_000;

/// The longest time for which a breaker is open before it is probed again, unless it is set to more; and the most that can be set is
/// five times as much.
pub const BREAKER_OPEN_MAX_MS: u64 = 60_000;

/// No breaker is claimed for nearly as long, however it is set: a lease that ends later was made by a clock that is far off.
pub(crate) const BREAKER_LEASE_MAX_MS: u64 = 15 * 60_000;

/// How often a process that waits for an open breaker reads its record.
pub const BREAKER_LOOK_MS: u64 = 5_000;

/// So many calls in a row have to be answered for a breaker to be closed again, if there are so many messages.
pub const BREAKER_PROBES: u32 = 3;

/// For how long a breaker that was closed again is remembered: one that opens meanwhile is open for longer.
pub(crate) const BREAKER_WINDOW_S: u64 = 600;

/// For how long an open breaker pauses the intake at least. A request to switch it off can be carried out as late as
/// [`INTAKE_LATE_MS`] after it was made, and its return must come later; half a minute is for making the requests.
pub const BREAKER_PAUSE_MIN_MS: u64 = INTAKE_LATE_MS + 30_000;

/// For how long an open breaker pauses the intake at most, until messages are tried again: what is visible in the queue then is late by
/// as much.
pub const BREAKER_PAUSE_MAX_MS: u64 = 2 * BREAKER_PAUSE_MIN_MS;

/// How late a request to switch an intake off can be carried out: signed requests are refused after five minutes, and clocks differ by
/// half a minute at most.
pub const INTAKE_LATE_MS: u64 = 330_000;

/// How long the requests that pause an intake may take in all.
pub const INTAKE_CALLS_MAX_MS: u64 = 15_000;

/// How long those that resume it may take in all: a mapping that is still being switched off takes up to a minute.
pub(crate) const INTAKE_RESUME_MAX_MS: u64 = 60_000;

/// The time between two tries to pause or to resume it, where it refuses for the moment. Each makes up to three requests, of interfaces that
/// all of an account share.
pub(crate) const INTAKE_AGAIN_MS: u64 = 5_000;

/// How many receives a message must have left to be hidden only until the intake's return; one with fewer waits longer, so that they
/// last.
pub const BREAKER_RECEIVES_SPARE: u32 = 3;

/// For how long a message is hidden that an open breaker held back, after its first receive; then doubling.
pub(crate) const BREAKER_HIDDEN_MS: u64 = 300_000;

/// The largest rate, in the time that it is for, and the most messages at once that a limit can allow.
pub const LIMIT_CALLS_MAX: u32 = 100_000;

/// The shortest time that a rate can be for.
pub const LIMIT_PER_MIN_MS: u64 = 1_000;

/// The longest time that a rate can be for: the time between two calls is no longer than that.
pub const LIMIT_PER_MAX_MS: u64 = 60_000;

/// Into how many slots a limit is split, unless set.
pub const LIMIT_SLOTS_DEFAULT: u32 = 10;

/// The most slots that a limit can be split into.
pub const LIMIT_SLOTS_MAX: u32 = 100;

/// How long a slot of a limit is leased; renewed at half of it while it is needed.
pub const LIMIT_LEASE_MS: u64 = 15_000;

/// How late a call may be for the next one in its slot to be on time again. By as much a burst can be larger than the slots.
pub const LIMIT_LATE_MS: u64 = 20;

/// How long before the end of a slot's lease a message must be visible again for a turn in it: what queues round up, and take to
/// deliver.
pub(crate) const LIMIT_BACK_MS: u64 = 3_000;

/// How long the plan of a limit holds: what all processes go by. Renewed in its second half by whoever looks at it then.
pub const LIMIT_PLAN_MS: u64 = 30_000;

/// In how much time those looks are.
pub(crate) const LIMIT_PLAN_SPREAD_MS: u64 = 2_000;

/// How long before the plan's end it is looked at again where it was not renewed.
pub(crate) const LIMIT_PLAN_LAST_MS: u64 = 4_000;

/// How long the other processes know that one has no slot.
pub(crate) const LIMIT_WANTED_MS: u64 = 6_000;

/// How often a process with more than one slot looks whether another one has none; one with a single slot three times less often.
pub(crate) const LIMIT_LISTEN_MS: u64 = 5_000;

/// How often it looks where that was so.
pub(crate) const LIMIT_MARKED_MS: u64 = 2_000;

/// How long a process keeps its only slot before it lets others have it that have none, or sixty times as long as between two calls where
/// that is more.
pub(crate) const LIMIT_TERM_MS: u64 = 60_000;

/// How long a process leaves a slot to others that it has let go for them.
pub(crate) const LIMIT_LEFT_MS: u64 = 2_000;

/// How long a process that was granted a slot, or has none and was refused one, waits before it asks for one that may be free.
pub(crate) const LIMIT_NEXT_MS: u64 = 100;

/// How often a process without a slot asks for one that was not free; and how long one has had its first slot when it asks for another.
pub const LIMIT_ASK_MS: u64 = 1_000;

/// How often a process that has a slot asks for another one at least: less often each time that none was free.
pub(crate) const LIMIT_MORE_MS: u64 = 15_000;

/// Keys are claimed for calls that begin within this time.
pub(crate) const LIMIT_AHEAD_MS: u64 = 500;

/// For how long a slot's record is kept that nobody holds.
pub(crate) const LIMIT_WINDOW_S: u64 = 60;

/// The first delay before a rejected message is shown again, on its way to the dead-letter queue; then doubling.
pub(crate) const REJECTED_BASE_MS: u64 = 1_000;

/// The longest delay before a failed message is tried again, unless the handler asks for more.
pub const BACKOFF_MAX_MS: u64 = 900_000;

/// After how many receives a queue gives a message to its dead-letter queue, unless set: the usual limit.
pub const RECEIVES_MAX_DEFAULT: u32 = 5;

/// The largest number of receives that a queue takes for it.
pub const RECEIVES_MAX: u32 = 1_000;

/// The longest time for which a failed message is hidden: a queue allows 12 hours from when it was received, and an
/// invocation can have had it for 15 minutes.
pub const VISIBILITY_MAX_S: u64 = 43_200 - 900;

/// By how much later than asked a message may be sent again by a schedule: so long one is tried whose queue cannot be reached.
pub(crate) const SENT_AGAIN_LATE_S: u64 = 86_400;

const _: () = assert!(WINDOW_DEFAULT_S > QUEUE_RETENTION_MAX_S);
const _: () = assert!(WINDOW_MIN_S <= WINDOW_DEFAULT_S && WINDOW_DEFAULT_S <= WINDOW_MAX_S);
const _: () = assert!(SKEW_DEFAULT_MS <= SKEW_MAX_MS);
// A record's window never ends before its lease and the margin are over: see "What each clause is for" in docs/reliability.md.
const _: () = assert!(SKEW_MAX_MS <= WINDOW_MIN_S * 1_000);
const _: () = assert!(STORE_RETRY_BASE_MS >= 2 && STORE_RETRY_BASE_MS <= STORE_RETRY_MAX_MS);
const _: () = assert!(CANCEL_GRACE_MS * 2 <= SETTLE_RESERVE_MAX_MS);
// As many runtimes can be made after the first one that, before so many threads are blocked, fewer than the reserve are on one of them.
const _: () = assert!(
    (HANDLER_THREADS_MAX - THREADS_MAX - 1) / (THREADS_MAX + 1 + THREADS_RESERVE) * THREADS_RESERVE >= BLOCKED_MAX
);
const _: () = assert!(BACKOFF_BASE_MS >= 2 && BACKOFF_BASE_MS <= BACKOFF_MAX_MS);
const _: () = assert!(BACKOFF_MAX_MS <= VISIBILITY_MAX_S * 1_000);
// A renewal hides a message for so long at most: never longer than a queue allows, which would answer as of one that is gone.
const _: () = assert!(LEASE_MAX_MS + LEASE_MARGIN_MS + SKEW_MAX_MS <= VISIBILITY_MAX_S * 1_000);
const _: () = assert!(MARGIN_DEFAULT_MS <= MARGIN_MAX_MS);
const _: () = assert!(BREAKER_WINDOW_S >= WINDOW_MIN_S && BREAKER_CALLS_MAX == u64::BITS);
const _: () = assert!(LIMIT_WINDOW_S >= WINDOW_MIN_S && LIMIT_SLOTS_DEFAULT <= LIMIT_SLOTS_MAX);
const _: () = assert!(CONCURRENCY_DEFAULT <= CONCURRENCY_MAX);
