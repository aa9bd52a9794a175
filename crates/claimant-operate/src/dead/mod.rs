//! Dead letters: read, grouped, sent back, discarded; those that a function copied and those that SQS moved alike.
//!
//! | module | holds |
//! | --- | --- |
//! | `letter` | [`DeadLetter`]: where it came from ([`Origin`]), why ([`Why`]), what it holds |
//! | `fingerprint` | [`Fingerprint`]: what dead letters of one cause have in common |
//! | `group` | [`Groups`]: dead letters of one cause, counted |
//! | `field` | [`FieldPath`]: one field of a JSON body, read and replaced |
//! | `selection` | [`Selection`]: which dead letters are meant, by their [`Ids`] or otherwise |
//! | `outgoing` | the copy that goes back to a queue, and the [`Edit`] of its body |
//! | `queue` | [`DeadLetterQueue`]: what is asked of SQS |
//! | `depth` | [`Depth`]: how many messages it holds |
//! | `sources` | the queues that a dead-letter queue serves |
//! | `named` | what queues are that were named by their URLs alone |
//! | `look` | letters of a local cloud, seen without receiving them |
//! | `walk` | every letter once, as far as SQS shows it |
//! | `pace` | how many a second |
//! | `report` | what is asked of an act ([`Bounds`], [`Observer`]), and what it did ([`Report`]) |
//! | `acts` | reading and discarding |
//! | `save` | [`SaveFile`]: the file that discarded letters are saved in |
//! | `redrive` | sending back |
//! | `unsent` | what schedules could not send |
//!
//! SQS has no way to look at a message but to receive it, so a letter that is read is hidden from other readers for a moment, and its
//! receive count grows. Of a local cloud letters are read without that ([`DeadLetterQueue::open_in`]).

mod acts;
mod depth;
mod field;
mod fingerprint;
mod group;
mod letter;
mod look;
mod named;
mod outgoing;
mod pace;
mod queue;
mod redrive;
mod report;
mod save;
mod selection;
mod sources;
mod unsent;
mod walk;

pub use depth::Depth;
pub use field::FieldPath;
pub use fingerprint::Fingerprint;
pub use group::{Group, Groups};
pub use letter::{DeadLetter, MOVED, Origin, Why, is_saved};
pub use look::Page;
pub use named::find_dead_letter_queues;
pub use outgoing::Edit;
pub use pace::RATE_MAX_PER_S;
pub use queue::DeadLetterQueue;
pub use report::{Bounds, Done, Observer, PROBLEMS_MAX, Problem, Progress, Report, Unseen};
pub use save::SaveFile;
pub use selection::{By, Ids, Selection};
pub(crate) use unsent::{Request, is_no_message, is_request};
pub use walk::{LOOKED_AT_MAX, QUEUES_AT_ONCE};
