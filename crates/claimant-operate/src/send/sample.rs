//! Messages that a project keeps in files.

use std::fs;
use std::path::{Path, PathBuf};

use claimant_core::Error;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::envelope::Envelope;
use crate::queue::Queue;

/// The most samples that are read.
pub const SAMPLES_MAX: usize = 500;

/// The most bytes of a file of samples.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// Where samples are, below the directory of a template: messages of their own, and events of functions.
const DIRECTORIES: [(&str, Kind); 4] = [
    ("samples", Kind::Samples),
    ("tests/samples", Kind::Samples),
    ("events", Kind::Events),
    ("tests/events", Kind::Events),
];

/// A message that a project keeps in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Sample {
    /// What it is: the words of its file, or the name of the event with the number of the record.
    pub title: String,
    /// The name of its queue, as the template has it.
    pub queue: String,
    /// Its body, in which `{n}` may stand for a number.
    pub body: String,
    /// What it usually comes in.
    pub envelope: Envelope,
    /// Its message group, where its queue is FIFO.
    pub group: Option<String>,
}

/// `Debug` shows no body.
impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sample").field("title", &self.title).field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// The samples of a project.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Those that were read, the project's own first; of each file in its order.
    pub found: Vec<Sample>,
    /// The files that could not be used, each with the reason.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Samples,
    Events,
}

/// What a file of samples has: `{"queue": "OrderQueue", "samples": [{"title": "An order", "body": {"order_id": "ord-{n}"}}]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    queue: String,
    samples: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    title: String,
    /// A text as it is, anything else as its JSON, without white space.
    body: Box<RawValue>,
    #[serde(default)]
    envelope: Option<String>,
    #[serde(default)]
    group: Option<String>,
}

impl Samples {
    /// Reads the samples below a directory: of the files `samples/*.json` and `tests/samples/*.json`, and the records of the
    /// functions' events in `events/*.json` and `tests/events/*.json`. [`SAMPLES_MAX`] at most. What cannot be read is a problem and not an error.
    #[must_use]
    pub fn below(directory: &Path) -> Self {
        let mut samples = Self::default();
        for (name, kind) in DIRECTORIES {
            let Ok(entries) = fs::read_dir(directory.join(name)) else { continue };
            let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
            files.sort();
            for path in files {
                match read(&path, kind) {
                    Ok(found) => samples.found.extend(found),
                    Err(why) => samples.problems.push(format!("{}: {why}", path.display())),
                }
                samples.found.truncate(SAMPLES_MAX);
            }
        }
        samples
    }

    /// Reads the samples of a project: [below](Self::below) the directory of its template, if that is known, and below the one here where there are
    /// none, as beside a template that a build wrote into a directory of its own.
    #[must_use]
    pub fn of_project(template_directory: Option<&Path>) -> Self {
        let own = template_directory.map(Self::below);
        own.filter(|own| !own.found.is_empty() || !own.problems.is_empty())
            .unwrap_or_else(|| Self::below(Path::new(".")))
    }

    /// Returns those of this queue, by its name in the template, or by its own where it has one. Where a queue that was named by its URL has a
    /// name that CloudFormation made, `shop-OrderQueue-1A2B3C`, its name in the template is read from there.
    pub fn of_queue<'s>(&'s self, queue: &Queue) -> impl Iterator<Item = &'s Sample> + use<'s> {
        let made_of = queue.name.strip_suffix(".fifo").unwrap_or(&queue.name).rsplit('-').nth(1);
        let made_of = made_of.filter(|_| queue.logical_id.is_none()).map(str::to_owned);
        let queue = Queue { logical_id: queue.logical_id.clone().or(made_of), ..queue.clone() };
        self.found.iter().filter(move |sample| sample.queue == queue.name || queue.is_of(&sample.queue))
    }
}

fn read(path: &Path, kind: Kind) -> Result<Vec<Sample>, Error> {
    let unreadable = |e| Error::invalid("it cannot be read as text").caused_by(e);
    if fs::metadata(path).map_err(unreadable)?.len() > FILE_MAX_BYTES {
        return Err(Error::invalid(format!("it has more than {FILE_MAX_BYTES} bytes")));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    // Some editors begin a file with a byte order mark, which is no JSON.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match kind {
        Kind::Samples => of_file(text),
        Kind::Events => {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("event");
            of_event(name, text)
        }
    }
}

fn of_file(text: &str) -> Result<Vec<Sample>, Error> {
    let file: File = serde_json::from_str(text).map_err(|e| {
        Error::invalid(format!(
            "it is no file of samples, such as {{\"queue\": \"OrderQueue\", \"samples\": [{{\"title\": \"An order\", \"body\": {{}}}}]}}: {e}"
        ))
    })?;
    let sample = |entry: Entry| {
        let envelope = entry.envelope.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let json = entry.body.get();
        let body = serde_json::from_str::<String>(json).unwrap_or_else(|_| compact(json));
        Ok(Sample { title: entry.title, queue: file.queue.clone(), body, envelope, group: entry.group })
    };
    file.samples.into_iter().map(sample).collect()
}

/// Returns JSON without the white space around its tokens; every value keeps its very bytes.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let kept = json.chars().filter(|char| {
        let starts_or_ends = *char == '"' && !is_escaped;
        is_escaped = is_text && *char == '\\' && !is_escaped;
        is_text ^= starts_or_ends;
        is_text || starts_or_ends || !char.is_ascii_whitespace()
    });
    kept.collect()
}

/// The records of a function's event. Something else that is JSON has none.
fn of_event(name: &str, text: &str) -> Result<Vec<Sample>, Error> {
    let event: Value = serde_json::from_str(text).map_err(|e| Error::invalid(format!("it is not JSON: {e}")))?;
    let records = event["Records"].as_array().map_or(&[][..], Vec::as_slice);
    let sample = |(number, record): (usize, &Value)| {
        let title = if records.len() == 1 { name.to_owned() } else { format!("{name} {}", number + 1) };
        Some(Sample {
            title,
            queue: record["eventSourceARN"].as_str()?.rsplit(':').next()?.to_owned(),
            body: record["body"].as_str().filter(|body| !body.is_empty())?.to_owned(),
            envelope: Envelope::Plain,
            group: record["attributes"]["MessageGroupId"].as_str().map(str::to_owned),
        })
    };
    Ok(records.iter().enumerate().filter_map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_events_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "tests/samples/order.json",
            // As an editor on Windows writes it.
            &format!(
                "\u{feff}{}",
                r#"{"queue": "Orders", "samples": [
                {"title": "An order", "body": {"id": "ord-{n}",
                  "cents": 1.50, "q": "\\\" x"}, "envelope": "sns"},
                {"title": "Not JSON", "body": "not JSON", "group": "g"}]}"#
            ),
        );
        write("tests/samples/none.txt", "x");
        write("samples/broken.json", "{");
        write(
            "samples/way.json",
            r#"{"queue": "Orders", "samples": [{"title": "x", "body": "y", "envelope": "owl"}]}"#,
        );
        write("samples/typo.json", r#"{"queue": "Orders", "samples": [{"title": "x", "bdy": "y"}]}"#);
        write(
            "tests/events/two.json",
            r#"{"Records": [{"eventSourceARN": "arn:aws:sqs:us-east-1:1:Orders.fifo", "body": "1", "attributes": {"MessageGroupId": "ada"}},
                {"eventSourceARN": "arn:aws:sqs:us-east-1:1:Orders.fifo", "body": ""}, {}, {"eventSourceARN": "arn:aws:sqs:us-east-1:1:Orders", "body": "3"}]}"#,
        );
        write("events/other.json", r#"{"version": "2.0"}"#);
        let samples = Samples::below(directory.path());
        let queue = |name: &str| Queue::at(format!("https://sqs/123456789012/{name}"));
        let titles = |name| samples.of_queue(&queue(name)).map(|sample| sample.title.as_str()).collect::<Vec<_>>();
        assert_eq!(titles("Orders"), ["An order", "Not JSON", "two 4"]);
        // Its name in the template, where CloudFormation has put it.
        assert_eq!(titles("Orders-Parcels-1A2B3C"), Vec::<&str>::new());
        assert_eq!(titles("shop-Orders-1A2B3C"), titles("Orders"));
        assert_eq!(titles("Orders.fifo"), ["two 1"]);
        let first = &samples.found[0];
        assert_eq!(
            (first.body.as_str(), first.envelope),
            (r#"{"id":"ord-{n}","cents":1.50,"q":"\\\" x"}"#, Envelope::Sns)
        );
        assert_eq!(samples.of_queue(&queue("Orders.fifo")).next().unwrap().group.as_deref(), Some("ada"));
        assert_eq!(samples.problems.len(), 3, "{:?}", samples.problems);
        assert!(samples.problems[2].contains("way.json") && samples.problems[2].contains("cloudevents"));
        assert!(Samples::below(Path::new("/no/such/directory")).found.is_empty());
    }
}
