//! Every limit of the inbox, named, with its unit last.

use claimant_core::limits::CANCEL_GRACE_MS;

/// The longest event type, in bytes.
pub const EVENT_TYPE_MAX_BYTES: usize = 128;

/// The default limit of attempts. With the backoff in between they take one to two hours: longer than most outages.
pub const ATTEMPTS_DEFAULT: u32 = 12;

/// The largest limit of attempts that may be set.
pub const ATTEMPTS_MAX: u32 = 1_000_000;

/// The default timeout of a handler.
pub const TIMEOUT_DEFAULT_MS: u64 = 30_000;

/// The default poll interval of an idle worker.
pub const POLL_DEFAULT_MS: u64 = 1_000;

/// The shortest poll interval of an idle worker.
pub const POLL_MIN_MS: u64 = 10;

/// The longest poll interval of an idle worker.
pub const POLL_MAX_MS: u64 = 3_600_000;

/// The longest delay that a handler can ask for: ten years. A row waits in its table, which hides nothing.
pub const AFTER_MAX_S: u64 = 10 * 365 * 86_400;

/// The longest that an attempt takes beside its handler's timeout: its message is taken, its transaction begins, its handler is cancelled, and
/// its transaction ends.
pub(crate) const AROUND_ATTEMPT_MAX_MS: u64 = 2 * BEGIN_MAX_MS + CANCEL_GRACE_MS + 2 * STATEMENT_MAX_MS;

/// The longest that a first statement may take, which may have to open a connection.
pub(crate) const BEGIN_MAX_MS: u64 = 5_000;

/// The longest that one short statement may take: silence on a connection that died while the function was frozen leaves
/// time for another one.
pub(crate) const STATEMENT_MAX_MS: u64 = 2_000;

/// How many bytes of bodies a second a statement that stores is given beside that: 32 Mbit.
pub(crate) const BODIES_BYTES_PER_S: u64 = 4 << 20;

/// The longest that any call is given: no invocation lasts longer.
pub(crate) const CALL_MAX_MS: u64 = 900_000;

/// The longest that a message that is taken waits for its turn within a limit: it is taken half a second before.
pub(crate) const TURN_MAX_MS: u64 = 2_000;

/// How many more due messages are read than are processed at once: some wait for others of their group.
pub(crate) const WINDOW_SPARE: u32 = 100;

/// The most due messages that are read, if the first ones are all being processed or wait for others.
pub(crate) const WINDOW_MAX: u32 = 20_000;

/// How long a free slot waits for others, so that several messages are taken by one statement.
pub(crate) const GATHER_MS: u64 = 5;

const _: () = assert!(ATTEMPTS_DEFAULT <= ATTEMPTS_MAX && ATTEMPTS_MAX < i32::MAX as u32);
const _: () = assert!(POLL_MIN_MS <= POLL_DEFAULT_MS && POLL_DEFAULT_MS <= POLL_MAX_MS);
