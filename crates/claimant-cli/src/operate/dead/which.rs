//! Which dead letters, and of which queues.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use claimant_core::error::Chain;
use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use claimant_operate::dead::{DeadLetterQueue, FieldPath, Progress, QUEUES_AT_ONCE, Report, Selection};
use claimant_operate::keys::Keys;
use claimant_operate::target::{Place, is_same_queue, sibling};
use claimant_operate::text::typed;
use futures_util::future::join_all;

use crate::operate::interrupt::Stop;
use crate::operate::options::{OutputOptions, TargetOptions};
use crate::operate::{parse, table};
use crate::output::note;
use crate::progress::Display;

/// Which dead letters: those that fit every option that is given.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which dead letters")]
pub(crate) struct Which {
    /// Of this group, as `claimant dead group` shows it; to look at it, 4 of its digits are enough. May be given several times
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,

    /// Of this consumer; or moved by SQS from this queue
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,

    /// Of this outcome; `moved` by SQS after too many receives
    #[arg(long, value_name = "OUTCOME", value_parser = ["rejected", "conflict", "parked", "moved"])]
    outcome: Option<String>,

    /// With this text in their error, in whatever case
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,

    /// Of this record: the id that lists show, consumer#key also of a hashed key
    #[arg(long, value_name = "KEY", value_parser = parse::key())]
    record: Option<String>,

    /// Sent so long ago or longer: 90s, 15m, 6h, 2d
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    older_than: Option<Duration>,

    /// Sent within this time
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    newer_than: Option<Duration>,

    /// With this value in a field of their JSON body, such as customer.id=c-7. May be given several times
    #[arg(long = "where", value_name = "FIELD=VALUE", value_parser = field)]
    fields: Vec<(FieldPath, String)>,
}

impl Which {
    /// Returns what is meant; these ids alone, where there are any.
    ///
    /// # Errors
    /// When the record's id is none.
    pub(crate) fn selection(&self, ids: &[String]) -> Result<Selection, Error> {
        let now = SystemClock.now();
        let ago = |time: Duration| now.minus(time);
        let ids_of = |record: &String| {
            let failed = |error| Error::invalid(format!("--record {}: {}", typed(record), Chain(&error)));
            Keys::ids(record, None).map_err(failed)
        };
        let records = self.record.as_ref().map(ids_of).transpose()?.unwrap_or_default();
        Ok(Selection {
            groups: self.groups.clone(),
            consumer: self.consumer.clone(),
            outcome: self.outcome.clone(),
            error: self.error.clone(),
            records: records.iter().map(|id| id.as_str().to_owned()).collect(),
            sent_until: self.older_than.map(ago),
            sent_since: self.newer_than.map(ago),
            fields: self.fields.clone(),
            ..Selection::ids(ids)
        })
    }
}

/// A queue that is meant: its name, and it, or why it cannot be opened.
pub(in crate::operate) type Opened = (String, Result<DeadLetterQueue, Error>);

/// Opens the dead-letter queues that are meant: those of the queues that are named, or all that are known. One that cannot be opened hides
/// none of the others.
///
/// # Errors
/// When there is none, the only one cannot be opened, or one is named whose messages are at work.
pub(super) async fn open(target: &TargetOptions, output: OutputOptions) -> Result<Vec<Opened>, Error> {
    open_with_place(target, Some(output)).await.map(|(_, queues)| queues)
}

/// As [`open`], with the place that they are in, which is said beside this output.
///
/// # Errors
/// As those of `open`.
pub(super) async fn open_with_place(
    target: &TargetOptions,
    output: Option<OutputOptions>,
) -> Result<(Place, Vec<Opened>), Error> {
    let place = target.open_whole().await?;
    output.into_iter().for_each(|output| output.note_where(&place));
    if target.queues.is_empty() && !place.left_out.is_empty() {
        let known: Vec<_> = place.dead_letter_queues().into_iter().map(|queue| queue.name.as_str()).collect();
        let which = if known.is_empty() {
            "name one".to_owned()
        } else {
            format!("say which are meant with --queue, of {}; name one that is not among them", known.join(", "))
        };
        return Err(Error::invalid(format!(
            "not all dead-letter queues of {} are known: {which} by its URL, with --queue and without --stack",
            place.name
        )));
    }
    let mut urls: Vec<String> = if target.queues.is_empty() {
        place.dead_letter_queues().into_iter().map(|queue| queue.url.clone()).collect()
    } else {
        let (mut urls, all_dead) = (Vec::new(), place.dead_letter_queues());
        for queue in place.queues.iter().filter(|queue| target.is_named(queue)) {
            let dead = place.dead_letter_queue_urls_of(queue);
            let is_dead = all_dead.iter().any(|dead| dead.url == queue.url);
            if dead.is_empty() || is_dead {
                urls.push(queue.url.clone());
            } else {
                urls.extend(dead);
            }
        }
        urls
    };
    urls.sort();
    let urls = each_once(urls);
    if urls.is_empty() {
        return Err(Error::invalid(format!(
            "{} has no dead-letter queue that is known: name it by its URL, with --queue and without --stack",
            place.name
        )));
    }
    let mut asked = Vec::new();
    for some in urls.chunks(QUEUES_AT_ONCE) {
        asked.extend(join_all(some.iter().map(|url| open_one(&place, url))).await);
    }
    let (mut opened, only): (Vec<Opened>, _) = (Vec::new(), urls.len() == 1);
    for (url, asked) in urls.into_iter().zip(asked) {
        match asked {
            Ok(queue) => {
                if !queue.is_known() {
                    check_not_at_work(&place, &queue)?;
                }
                let is_same = |known: &DeadLetterQueue| is_same_queue(known.url(), queue.url());
                if !opened.iter().any(|(_, known)| known.as_ref().is_ok_and(is_same)) {
                    opened.push((queue.name().to_owned(), Ok(queue)));
                }
            }
            Err(error) if only => return Err(error),
            Err(error) => opened.push((url.rsplit('/').next().unwrap_or(&url).to_owned(), Err(error))),
        }
    }
    Ok((place, opened))
}

/// Returns the URL of each queue once: SQS has several hosts for it.
fn each_once(urls: Vec<String>) -> Vec<String> {
    let mut each: Vec<String> = Vec::new();
    for url in urls {
        if !each.iter().any(|known| is_same_queue(known, &url)) {
            each.push(url);
        }
    }
    each
}

/// Opens the dead-letter queue at this URL, or that of the queue there.
async fn open_one(place: &Place, url: &str) -> Result<DeadLetterQueue, Error> {
    let queue = DeadLetterQueue::open_in(place, url).await?;
    match queue.moves_on_to() {
        // A queue that letters come from was named, and its messages are at work.
        Some(name) if !queue.is_known() => DeadLetterQueue::open_in(place, sibling(queue.url(), name)).await,
        _ => Ok(queue),
    }
}

/// Checks that a queue that is not known for a dead-letter queue is none whose messages are at work: to read them would hide them from
/// their function.
///
/// # Errors
/// When a function reads it.
fn check_not_at_work(place: &Place, queue: &DeadLetterQueue) -> Result<(), Error> {
    let name = queue.name();
    match place.functions.iter().find(|function| function.queues.iter().any(|read| read == name)) {
        None => Ok(()),
        Some(reader) => Err(Error::invalid(format!(
            "{name} has no dead letters: {} reads it, and it has no dead-letter queue that is known",
            reader.name
        ))),
    }
}

/// Shows progress on a terminal, and ends the work in order at the first Ctrl-C or SIGTERM.
pub(crate) struct Watch<'a> {
    display: Display,
    began: Instant,
    about: u64,
    /// What was looked at before.
    before: Progress,
    /// Whether nothing is done: what would be done counts as done in its reports.
    dry_run: bool,
    stop: &'a Stop,
}

/// Begins to listen for Ctrl-C and SIGTERM, for all queues.
pub(crate) fn stop() -> Stop {
    Stop::listen("Ending; what was read is shown to others again. Ctrl-C again ends at once.")
}

impl<'a> Watch<'a> {
    /// Begins to watch a look at so many letters, about, or an act on them.
    pub(crate) fn begin(about: u64, dry_run: bool, stop: &'a Stop) -> Self {
        let (display, began) = (Display::when_long(), Instant::now());
        Self { display, began, about, before: Progress::default(), dry_run, stop }
    }

    /// Begins to watch a look at so many more, after what was looked at.
    pub(super) fn goes_on(&mut self, about: u64) {
        self.about += about;
    }

    /// Counts what was looked at until here as before.
    pub(super) fn has_done(&mut self, progress: Progress) {
        self.before = [self.before, progress].into_iter().sum();
    }

    /// Shows the progress, and says whether to go on.
    pub(crate) fn step(&mut self, progress: Progress) -> ControlFlow<()> {
        let progress = [self.before, progress].into_iter().sum();
        if progress != Progress::default() || self.about > 0 {
            self.display.show_text(self.began.elapsed(), self.figures(progress));
        }
        if self.stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn figures(&self, Progress { looked_at, selected, done, .. }: Progress) -> String {
        let done = if done > 0 && !self.dry_run { format!(", {done} done") } else { String::new() };
        format!("{looked_at} of about {} read, {selected} fit{done}", self.about)
    }

    /// Ends the line of progress, if there is one.
    pub(crate) fn end(&mut self) {
        self.display.end();
    }

    /// Says something else, on a line of its own.
    pub(in crate::operate) fn note(&mut self, what: String) {
        self.end();
        note(what);
    }
}

/// Returns a warning, where letters that are looked at too often are moved on.
pub(crate) fn careful(queue: &DeadLetterQueue) -> Option<String> {
    let count = queue.moves_on_after().filter(|_| !queue.is_only_looked_at())?;
    Some(format!("careful: SQS moves its messages on after {count} receives, and reading is receiving"))
}

/// Says of a queue how many of its letters stay hidden that were read, where some do.
pub(crate) fn note_stay_hidden(queue: &str, report: &Report, watch: &mut Watch<'_>) {
    if let Some(words) = report.unseen.stay_hidden_in_words() {
        watch.note(format!("{queue}: {words}"));
    }
}

/// Returns so many dead letters in words.
pub(crate) fn letters(count: usize) -> String {
    if count == 1 { "1 dead letter".to_owned() } else { format!("{count} dead letters") }
}

/// Returns how long ago this was, if it is known.
pub(crate) fn age(time: Option<Timestamp>) -> String {
    time.map(table::age).unwrap_or_default()
}

/// A field and a value: `customer.id=c-7`.
pub(crate) fn field(text: &str) -> Result<(FieldPath, String), String> {
    let (path, value) = text.split_once('=').ok_or("write FIELD=VALUE")?;
    Ok((FieldPath::parse(path).map_err(|e| e.to_string())?, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options() {
        let (path, value) = field("a.b=c=d").unwrap();
        assert_eq!((path.to_string().as_str(), value.as_str()), ("a.b", "c=d"));
        assert!(field("a").is_err() && field("=b").is_err());
    }

    #[test]
    fn a_queue_of_two_hosts_is_one() {
        let [one, same, other] = ["sqs.eu-west-1.amazonaws.com/1/a", "eu-west-1.queue.amazonaws.com/1/a", "sqs/1/b"]
            .map(|url| format!("https://{url}"));
        assert_eq!(each_once(vec![one.clone(), other.clone(), same]), [one, other]);
        assert_eq!(each_once(vec!["a".to_owned(), "b".to_owned()]).len(), 2);
    }

    /// What would be done counts in the report of a look, as before a question.
    #[tokio::test]
    async fn nothing_is_said_to_be_done_in_a_look() {
        let stop = stop();
        for (dry_run, done, figures) in [
            (true, 2, "3 of about 9 read, 2 fit"),
            (false, 2, "3 of about 9 read, 2 fit, 2 done"),
            (false, 0, "3 of about 9 read, 2 fit"),
        ] {
            let progress = Progress { looked_at: 3, selected: 2, done, copied: 0 };
            assert_eq!(Watch::begin(9, dry_run, &stop).figures(progress), figures);
        }
        // A look at more queues goes on with the line.
        let mut watch = Watch::begin(0, true, &stop);
        let progress = Progress { looked_at: 3, selected: 1, ..Progress::default() };
        for _ in 0..2 {
            watch.goes_on(4);
            assert!(watch.step(progress).is_continue());
            watch.has_done(progress);
        }
        assert_eq!(watch.figures(watch.before), "6 of about 8 read, 2 fit");
    }
}
