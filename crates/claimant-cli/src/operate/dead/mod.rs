//! `claimant dead`: dead letters.
//!
//! | module | holds |
//! | --- | --- |
//! | `which` | the options that say which dead letters, and of which queues |
//! | `look` | `list`, `group` and `show` |
//! | `several` | looks at several queues, side by side |
//! | `seen` | what they have seen of several queues |
//! | `acts` | an act on several queues: the question before it, and what came of it |
//! | `send` | `redrive` and `discard` |

mod acts;
mod look;
mod seen;
mod send;
pub(super) mod several;
pub(crate) mod which;

use claimant_core::Error;

use crate::exit::Ended;

/// Look at dead letters, send them back, discard them: those that functions copied and those that SQS moved alike.
///
/// SQS has no way to look at a message but to receive it: letters that are read are hidden from other readers for a moment, two
/// minutes at most if this command is killed, and their receive count grows.
#[derive(Debug, clap::Args)]
pub(crate) struct Dead {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Group(look::Group),
    List(look::List),
    Show(look::Show),
    Redrive(send::Redrive),
    Discard(send::Discard),
}

/// Does what is asked.
pub(crate) async fn run(dead: Dead) -> Result<Ended, Error> {
    match dead.command {
        Command::Group(options) => look::group(options).await,
        Command::List(options) => look::list(options).await,
        Command::Show(options) => look::show(options).await,
        Command::Redrive(options) => send::redrive(options).await,
        Command::Discard(options) => send::discard(options).await,
    }
}
