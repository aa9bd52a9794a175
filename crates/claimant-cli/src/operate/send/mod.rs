//! `claimant send`: messages for trying things out.

mod shown;

use std::ops::ControlFlow;
use std::path::PathBuf;

use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::send::{
    Batch, Envelope, MESSAGES_MAX, NUMBER, Sample, Samples, Sender, SentBefore, Wrapping, fresh_number,
};
use claimant_operate::target::{Place, Queue};
use claimant_operate::text::harmless;

use self::shown::counted;
use super::interrupt::Stop;
use super::options::{OutputOptions, TargetOptions, WriteOptions};
use super::{body, confirm, parse};
use crate::exit::Ended;
use crate::output::{note, say_json};

// In the help of clap, an n in braces is a line break; one in bold is not.
const ENDS: &str = "\
In the body and the group, {\u{1b}[1mn\u{1b}[0m} becomes a number that no earlier message had: the same in the copies of a message. So
  claimant send OrderQueue --sample 'An order' --count 10 --copies 2
sends ten orders, each twice.

Samples are read below --directory: from samples/*.json and tests/samples/*.json, which are as
  {\"queue\": \"OrderQueue\", \"samples\": [{\"title\": \"An order\", \"body\": {\"order_id\": \"ord-{\u{1b}[1mn\u{1b}[0m}\"}}]}
(and \"envelope\" and \"group\"), and from the functions' events in events/*.json and tests/events/*.json.

Exit codes: 0 where SQS confirmed every message, 1 where it did not or the question was answered with no, 2 where nothing could be \
sent, 130 where Ctrl-C or SIGTERM ended it.";

/// Send messages to a queue: a sample, a file or a text, in an envelope, twice, out of order, in bulk.
///
/// To a local cloud at once; to a queue of an account after a question.
#[derive(Debug, clap::Args)]
#[command(after_help = ENDS)]
pub(crate) struct Send {
    /// The queue, by its name, its URL or its name in the template; or the function that reads it [default: the only queue]
    #[arg(value_name = "QUEUE")]
    to: Option<String>,

    #[command(flatten)]
    what: What,

    #[command(flatten)]
    how: How,

    /// Show the messages, without sending them
    #[arg(long)]
    dry_run: bool,

    /// Do not ask; needed for a queue of an account where there is no terminal to ask on
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
struct What {
    /// A sample, by its title or a part of it that only one has
    #[arg(long, value_name = "TITLE", conflicts_with_all = ["body", "file", "message"])]
    sample: Option<String>,

    /// This text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["file", "message"])]
    body: Option<String>,

    /// The text in this file; - for standard input. What `claimant dead discard --save` wrote is refused: its lines are letters
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The message of a local cloud with this id once more, to its queue: its body, its group and its attributes, without claimant's own
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    message: Option<String>,

    /// List the samples
    #[arg(long, conflicts_with_all = ["sample", "body", "file", "message"])]
    samples: bool,

    /// The directory of the template, below which samples are [default: that of a local cloud's template; where it has none, and in an account, this one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
struct How {
    /// What it comes in: plain, sns, eventbridge, eventbridge-sns, cloudevents, s3 or s3-sns (the body is an object's key), or each:
    /// each copy another way [default: the sample's, or plain]
    #[arg(long, value_name = "NAME")]
    envelope: Option<Envelope>,

    /// The detail-type of EventBridge, or the type of a CloudEvent [default: the body's own type]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// The source of an event of EventBridge, or of a CloudEvent
    #[arg(long, value_name = "SOURCE", default_value = "claimant.send")]
    source: String,

    /// How many different messages
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MESSAGES_MAX as i64))]
    count: u32,

    /// How often each is sent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MESSAGES_MAX as i64))]
    copies: u32,

    /// Mix the order up; the same way for the same seed
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1")]
    shuffle: Option<u64>,

    /// The message group, which a FIFO queue needs [default: the sample's]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// An attribute of the type String; may be given several times
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = parse::name_and_value)]
    attributes: Vec<(String, String)>,

    /// Hide the messages so long at first, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=900))]
    delay: u32,

    /// What the placeholder n in braces becomes: give it again to send the same messages again [default: a number that is new]
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
}

/// Sends messages, or lists samples.
pub(crate) async fn run(options: Send) -> Result<Ended, Error> {
    let place = options.target.open().await?;
    let samples = match &options.what.directory {
        Some(directory) => Samples::below(directory),
        None => Samples::of_project(place.template_directory()),
    };
    samples.problems.iter().for_each(|problem| note(harmless(problem)));
    if options.what.samples {
        let queue = options.to.as_deref().map(|to| place.queue_for(Some(to))).transpose()?;
        shown::list(&samples, queue, options.output);
        return Ok(Ended::Well);
    }
    let before = before(&place, &options.what).await?;
    let queue = match (&options.to, &before) {
        (None, Some(before)) => before.queue(&place)?,
        (to, _) => place.queue_for(to.as_deref())?,
    };
    let sender = Sender::new(place.sqs(), &queue.url);
    let now = SystemClock.now();
    // What was sent before stays as it is.
    let fresh = if before.is_some() { NUMBER.to_owned() } else { fresh_number(now) };
    let number = options.how.number.clone().unwrap_or(fresh);
    let batch = batch(&options, &samples, queue, before)?;
    let messages = batch.plan(&number, now, sender.is_fifo())?;
    let whereabouts = place.whereabouts(&queue.url);
    if options.dry_run {
        confirm::note_at(whereabouts.as_deref());
        shown::plan(&messages, queue, options.output);
        return Ok(Ended::Well);
    }
    options.output.note_where(&place);
    let stop = Stop::listen("Ending after this request. Ctrl-C again ends at once.");
    if !place.is_local() {
        let question = format!("Send {} to {}?", counted(messages.len()), queue.name);
        let question = confirm::at(&question, whereabouts.as_deref());
        let write = WriteOptions { yes: options.yes, ..WriteOptions::default() };
        match confirm::answered(&question, &write, &stop).await? {
            Some(true) => {}
            Some(false) => return Ok(Ended::WithFaults),
            None => return Ok(Ended::Interrupted),
        }
    }
    let mut go_on = || if stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let report = sender.send_while(&batch, &messages, &mut go_on).await?;
    if options.output.json {
        let mut document = report.to_json();
        document["queue"] = queue.name.as_str().into();
        document["number"] = number.into();
        say_json(&document);
    } else {
        shown::report(&report, queue, &number);
    }
    Ok(match report.sent {
        sent if sent == messages.len() => Ended::Well,
        _ if stop.is_asked() => Ended::Interrupted,
        0 if report.unknown == 0 => Ended::NotDone,
        _ => Ended::WithFaults,
    })
}

/// The message that is to be sent again, if one is.
async fn before(place: &Place, what: &What) -> Result<Option<SentBefore>, Error> {
    match &what.message {
        Some(id) => {
            let before = SentBefore::of(place, id).await?;
            before.check_message(place)?;
            Ok(Some(before))
        }
        None => Ok(None),
    }
}

fn batch(options: &Send, samples: &Samples, queue: &Queue, before: Option<SentBefore>) -> Result<Batch, Error> {
    let What { sample, body, file, .. } = &options.what;
    let How { envelope, kind, source, count, copies, shuffle, group, attributes, delay, .. } = &options.how;
    let sample = sample.as_deref().map(|title| chosen(samples, title, queue)).transpose()?;
    let group = group.clone().or_else(|| before.as_ref()?.group.clone()).or_else(|| sample?.group.clone());
    let kept = before.as_ref().map(|before| before.attributes.clone()).unwrap_or_default();
    let body = match (before, sample, body, file) {
        (Some(before), ..) => before.body,
        (None, Some(sample), ..) => sample.body.clone(),
        (None, None, Some(body), _) => body.clone(),
        (None, None, None, Some(file)) => body::read(file)?,
        (None, None, None, None) => {
            return Err(Error::invalid(
                "say what to send: --sample TITLE (--samples lists them), --body TEXT, --file FILE or --message ID",
            ));
        }
    };
    // Both fit: they are 10,000 at most.
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    Ok(Batch {
        body,
        envelope: envelope.or(sample.map(|sample| sample.envelope)).unwrap_or_default(),
        wrapping: Wrapping { source: source.clone(), kind: kind.clone() },
        count: number(*count),
        copies: number(*copies),
        shuffle: *shuffle,
        group,
        before: kept,
        attributes: attributes.clone(),
        delay_s: *delay,
    })
}

/// The sample with this title, or the only one of the queue whose title has it in it.
fn chosen<'s>(samples: &'s Samples, title: &str, queue: &'s Queue) -> Result<&'s Sample, Error> {
    let own: Vec<_> = samples.of_queue(queue).collect();
    if let Some(sample) = own.iter().find(|sample| sample.title == title) {
        return Ok(sample);
    }
    let part = title.to_lowercase();
    let fits: Vec<_> = own.iter().filter(|sample| sample.title.to_lowercase().contains(&part)).collect();
    let titles =
        |samples: &[&&Sample]| samples.iter().map(|sample| sample.title.as_str()).collect::<Vec<_>>().join("; ");
    match fits.as_slice() {
        [only] => Ok(only),
        [] if own.is_empty() => Err(Error::invalid(format!(
            "no sample of {} was found: --directory says where the template is, and --help where samples are",
            queue.name
        ))),
        [] => Err(Error::invalid(format!(
            "{} has no sample {title}: it has {}",
            queue.name,
            titles(&own.iter().collect::<Vec<_>>())
        ))),
        several => Err(Error::invalid(format!("say which sample is meant: {}", titles(several)))),
    }
}
