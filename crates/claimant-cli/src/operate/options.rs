//! The options that all commands of operators have.

use std::time::Duration;

use claimant_core::{Error, SecretUrl};
use claimant_operate::dead::find_dead_letter_queues;
use claimant_operate::open::OpenStore;
use claimant_operate::target::{Account, Place, Queue, StoreAddress, Target, is_of_account};
use claimant_operate::text::harmless;

use super::parse;
use crate::output::note;
use crate::running;

/// What to work on. Without any of these, it is the local cloud that runs on this machine.
// No doc comments that clap would show as the command's own: the one above is replaced by the command's.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "What to work on")]
pub(crate) struct TargetOptions {
    /// A running local cloud; the only one on this machine unless the URL of its control endpoint is given
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) local: Option<String>,

    /// A deployed CloudFormation stack: the tables and queues of its functions, with the credentials of the profile
    #[arg(long, value_name = "NAME", conflicts_with_all = ["local", "store"])]
    pub(crate) stack: Option<String>,

    /// The lock table, by its name or ARN (of several tables `a,b`), with the credentials of the profile; or one of a local cloud or a stack
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// The database of the records: postgres://…, mysql://…, redis://…, valkey://… or env:NAME, the variable that holds the URL
    #[arg(long, value_name = "URL", conflicts_with_all = ["local", "table"])]
    pub(crate) store: Option<String>,

    /// The prefix of the keys in Redis, where functions have set one (`RedisStore::prefix`) [default: claimant]
    #[arg(long, value_name = "TEXT", requires = "store")]
    pub(crate) prefix: Option<String>,

    /// A queue, by its URL; may be given several times. Of a local cloud or a stack its name is enough
    #[arg(long = "queue", value_name = "URL")]
    pub(crate) queues: Vec<String>,

    /// By how much the clocks of functions may differ, where consumers have set `.clock_skew`: 2s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub(crate) skew: Option<Duration>,

    /// The profile of the AWS configuration; with a local cloud it is refused [default: as the environment says]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// The AWS Region; with a local cloud it is refused [default: as the environment or the profile says]
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,
}

impl TargetOptions {
    /// Finds out what is there. The stores and queues that were asked for by name are the only ones, or come with an error.
    ///
    /// # Errors
    /// When nothing was named and no local cloud runs here, when it gives no answer, or does not have what was asked for.
    pub(crate) async fn open(&self) -> Result<Place, Error> {
        let mut place = self.open_whole().await?;
        if !self.queues.is_empty() {
            place.queues.retain(|queue| self.is_named(queue));
        }
        Ok(place)
    }

    /// As [`open`](Self::open), with all queues that are there, of which some may be named.
    ///
    /// # Errors
    /// As those of `open`.
    pub(crate) async fn open_whole(&self) -> Result<Place, Error> {
        let place = self.open_unchecked().await?;
        for asked in &self.queues {
            if place.queue(asked).is_none() {
                let known: Vec<_> = place.queues.iter().map(|queue| queue.name.clone()).collect();
                return Err(Error::invalid(format!("{} has no queue {asked}: it has {}", place.name, all(&known))));
            }
        }
        Ok(place)
    }

    /// As [`open_whole`](Self::open_whole), whatever queues were asked for: a function reads one that is gone, too.
    ///
    /// # Errors
    /// As those of `open`, but for queues.
    pub(crate) async fn open_unchecked(&self) -> Result<Place, Error> {
        let account = Account { profile: self.profile.clone(), region: self.region.clone() };
        let variable = std::env::var(running::VARIABLE).ok();
        let mut place = self.target(variable.as_deref())?.open(&account).await?;
        place.left_out.iter().for_each(|one| note(harmless(one)));
        if let Some(table) = &self.table {
            place.choose_table(table)?;
        }
        Ok(place)
    }

    /// As [`open`](Self::open), with the dead-letter queues of the queues that were asked for: for what looks for dead letters.
    ///
    /// # Errors
    /// As those of `open`.
    pub(crate) async fn open_with_dead_letters(&self) -> Result<Place, Error> {
        let mut place = self.open_whole().await?;
        let noted = place.left_out.len();
        find_dead_letter_queues(&mut place).await;
        place.left_out.iter().skip(noted).for_each(|one| note(harmless(one)));
        if self.queues.is_empty() {
            return Ok(place);
        }
        let dead: Vec<_> = place.dead_letter_queues().into_iter().map(|queue| queue.url.clone()).collect();
        let named = place.queues.iter().filter(|queue| self.is_named(queue));
        let of_named = named.flat_map(|queue| place.dead_letter_queues_of(queue)).map(str::to_owned);
        let of_named: Vec<String> = of_named.collect();
        place.queues.retain(|queue| self.is_named(queue) || of_named.contains(&queue.name));
        for queue in &mut place.queues {
            queue.is_dead_letter_queue = dead.contains(&queue.url);
        }
        Ok(place)
    }

    /// Opens the stores of a place. Beside those that are there, says which tables functions name that are not.
    ///
    /// # Errors
    /// When there is none, or a database gives no answer.
    pub(crate) async fn open_stores(&self, place: &Place) -> Result<Vec<OpenStore>, Error> {
        if self.table.is_none() && !place.stores.is_empty() {
            place.absent_tables().iter().for_each(|one| note(harmless(one)));
        }
        place.open_stores(self.skew).await
    }

    /// Whether this queue was asked for.
    pub(crate) fn is_named(&self, queue: &Queue) -> bool {
        self.queues.iter().any(|asked| queue.is_called(asked))
    }

    /// `variable` is the value of the variable that names a local cloud, which says the same as `--local=URL`.
    fn target(&self, variable: Option<&str>) -> Result<Target, Error> {
        let variable = variable.filter(|url| !url.is_empty());
        let given = self.local.as_deref().filter(|url| !url.is_empty());
        if let (None, Some(_), Some(option)) = (given, variable, self.of_account()) {
            return Err(Error::invalid(format!(
                "{option} is of an AWS account, and {name} names the local cloud to work on: unset that to work on the account \
                 (env -u {name} claimant …)",
                name = running::VARIABLE
            )));
        }
        if variable.is_some() && self.store.is_some() && !self.queues.is_empty() {
            return Err(Error::invalid(format!(
                "--queue beside --store is of no local cloud, and {name} names the one to work on: leave one of the two out, or unset that \
                 (env -u {name} claimant …)",
                name = running::VARIABLE
            )));
        }
        if let Some(stack) = &self.stack {
            return Ok(Target::Stack(stack.clone()));
        }
        let by_url = self.queues.iter().any(|queue| queue.contains("://"));
        // A database is where its URL says.
        let given = given.or(variable.filter(|_| self.store.is_none()));
        if given.or(self.local.as_deref()).is_some() || (self.table.is_none() && self.store.is_none() && !by_url) {
            return self.local_cloud(given);
        }
        let table = self.table.clone().map(StoreAddress::Table);
        let url = self.store.as_deref().map(store_url).transpose()?;
        let store = url.map(|url| StoreAddress::Url { url, prefix: self.prefix.clone() });
        Ok(Target::Named { store: table.or(store), queues: self.queues.clone() })
    }

    /// Whoever chooses credentials means an account, and not what runs on this machine.
    fn local_cloud(&self, given: Option<&str>) -> Result<Target, Error> {
        if self.profile.is_some() || self.region.is_some() {
            return Err(Error::invalid(
                "--profile and --region are of an AWS account, and a local cloud takes neither: say what is meant in the account with \
                 --stack NAME, --table NAME or --queue URL",
            ));
        }
        given.map_or_else(running_cloud, |url| Ok(Target::Local(url.to_owned())))
    }

    /// Returns what among the options is of an AWS account and nothing else.
    fn of_account(&self) -> Option<&str> {
        let options = [("--stack", &self.stack), ("--profile", &self.profile), ("--region", &self.region)];
        let named = options.into_iter().filter_map(|(name, value)| value.as_ref().map(|_| name));
        let addresses = self.table.iter().chain(&self.queues).map(String::as_str);
        named.chain(addresses.filter(|address| is_of_account(address))).next()
    }
}

/// The URL, or that in a variable.
fn store_url(option: &str) -> Result<SecretUrl, Error> {
    // Where it is the URL itself, nothing fails.
    let failed = |why| Error::invalid(format!("--store {option}: {why}"));
    parse::of_variable(option).map(SecretUrl::new).map_err(failed)
}

fn all(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The one local cloud of this machine.
fn running_cloud() -> Result<Target, Error> {
    match running::found().as_slice() {
        [url] => Ok(Target::Local(url.clone())),
        [] => Err(Error::invalid(format!(
            "there is nothing to work on: no local cloud runs here (`claimant local`){}. Say what is meant with --local=URL, \
             --stack NAME, --table NAME, --store URL or --queue URL",
            looked_for()
        ))),
        several => Err(Error::invalid(format!(
            "{} local clouds run here: choose one with --local=URL, of {}",
            several.len(),
            several.join(", ")
        ))),
    }
}

/// Where a local cloud was looked for: one that was started with another environment is announced elsewhere.
fn looked_for() -> String {
    let places: Vec<_> = running::places().iter().map(|place| place.display().to_string()).collect();
    if places.is_empty() {
        return String::new();
    }
    format!("; it was looked for in {}, by XDG_RUNTIME_DIR and TMPDIR", places.join(" and "))
}

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct OutputOptions {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl OutputOptions {
    /// Says beside text in which stack, account and Region that is which is asked for, where it is in an account: the same names are in
    /// staging and production.
    pub(crate) fn note_where(self, place: &Place) {
        let all = place.all_whereabouts();
        if !self.json && !all.is_empty() {
            note(harmless(&format!("In {}.", all.join("; "))));
        }
    }
}

/// How something is written.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WriteOptions {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask; needed where there is no terminal to ask on
    #[arg(long)]
    pub(crate) yes: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        target: TargetOptions,
    }

    /// As in a shell beside a local cloud, where nobody means production.
    #[test]
    fn where_the_variable_names_a_local_cloud_nothing_of_an_account_is_worked_on() {
        const CLOUD: &str = "http://127.0.0.1:1";
        const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
        // Without a Region.
        const LEGACY: &str = "https://queue.amazonaws.com/123456789012/orders";
        let target = |args: &[&str], variable| {
            let typed = Typed::try_parse_from([&["claimant"], args].concat()).unwrap();
            typed.target.target(variable).map_err(|error| error.to_string())
        };
        let local = |url: &str| Ok(Target::Local(url.to_owned()));
        let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/locks";
        for args in [
            &[][..],
            &["--local"],
            &["--table", "locks"],
            &["--queue", "orders"],
            &["--table", "locks", "--queue", "http://127.0.0.1:2/000000000000/orders"],
            &["--queue", "http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/orders"],
        ] {
            assert_eq!(target(args, Some(CLOUD)), local(CLOUD), "{args:?}");
        }
        assert_eq!(target(&["--local=http://127.0.0.1:3", "--table", "t"], Some(CLOUD)), local("http://127.0.0.1:3"));
        for (args, named) in [
            (&["--stack", "shop"][..], "--stack"),
            (&["--table", "locks", "--profile", "prod"], "--profile"),
            (&["--region", "eu-west-1"], "--region"),
            (&["--table", arn], arn),
            (&["--queue", QUEUE], QUEUE),
            (&["--store", "postgres://h/d", "--queue", QUEUE], QUEUE),
            (&["--queue", LEGACY], LEGACY),
        ] {
            let why = target(args, Some(CLOUD)).unwrap_err();
            let says = format!("{named} is of an AWS account, and CLAIMANT_LOCAL_URL names the local cloud");
            assert!(why.starts_with(&says) && why.contains("env -u CLAIMANT_LOCAL_URL claimant"), "{args:?}: {why}");
            // Set to nothing is not set.
            let unset = [None, Some("")].map(|variable| target(args, variable));
            assert!(unset.iter().all(|target| !matches!(target, Ok(Target::Local(_)))), "{args:?}: {unset:?}");
        }
        for queue in ["orders", "http://127.0.0.1:2/000000000000/orders"] {
            let args = ["--store", "redis://h", "--queue", queue];
            let why = target(&args, Some(CLOUD)).unwrap_err();
            assert!(why.contains("--queue beside --store") && why.contains("env -u CLAIMANT_LOCAL_URL"), "{why}");
            assert!(matches!(target(&args, None), Ok(Target::Named { .. })), "{queue}");
        }
        let store = target(&["--store", "postgres://h/d"], Some(CLOUD)).unwrap();
        assert!(matches!(store, Target::Named { store: Some(StoreAddress::Url { .. }), .. }), "{store:?}");
    }
}
