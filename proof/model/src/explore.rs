//! Explores a world whole, and says what was found.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use stateright::{Checker as _, Expectation, HasDiscoveries, Model as _};

use crate::checked::Checked;
use crate::words::trace;

/// How often to look whether a world is explored, and how often to tell how far it is.
const POLL: Duration = Duration::from_millis(20);
const WATCH: Duration = Duration::from_secs(60);

/// What a world came to.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: &'static str,
    /// States that differ.
    pub unique: usize,
    /// States, counting those met again.
    pub states: usize,
    /// The longest way that was gone.
    pub depth: usize,
    /// Whether there are no other states.
    pub whole: bool,
    /// How long it took.
    pub took: Duration,
    /// Promises that were looked at.
    pub promises: Vec<&'static str>,
    /// Promises that broke, each with the way there in words.
    pub broken: Vec<(&'static str, String)>,
    /// What should have been seen and was not.
    pub unseen: Vec<&'static str>,
}

impl Found {
    /// Whether the whole world was explored, every promise held and everything was seen that should be.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.whole && self.holds()
    }

    /// The same of as much as was explored.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.broken.is_empty() && self.unseen.is_empty()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unique, states, depth, took, whole, .. } = self;
        let extent = if *whole { "the whole world" } else { "only a part of the world" };
        write!(
            f,
            "{name}: {unique} unique states, {extent} ({states} met, {depth} steps deep), {:.1} s",
            took.as_secs_f64()
        )?;
        for (promise, trace) in &self.broken {
            write!(f, "\n  {promise} is broken:\n{trace}")?;
        }
        for sight in &self.unseen {
            write!(f, "\n  never seen: {sight}")?;
        }
        Ok(())
    }
}

/// How much is explored, and by how many.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Threads.
    pub threads: usize,
    /// States after which to stop, counting those met again; `None` for all there are.
    pub states_max: Option<usize>,
    /// What to do with the count of unique states about once a minute.
    pub watch: fn(usize),
}

impl Extent {
    /// Everything, by this many threads, without progress.
    #[must_use]
    pub const fn whole(threads: usize) -> Self {
        Self { threads, states_max: None, watch: |_| {} }
    }
}

/// Explores a world, until something breaks.
#[must_use]
pub fn explore(model: Checked, extent: Extent) -> Found {
    let (start, name) = (Instant::now(), model.config.name);
    let builder = model.clone().checker().threads(extent.threads).finish_when(HasDiscoveries::AnyFailures);
    let builder = match extent.states_max {
        Some(max) => builder.target_state_count(max),
        None => builder,
    };
    // Depth first: it holds few states at once beside the fingerprints of those that were met.
    let checker = builder.spawn_dfs();
    let mut told = start;
    while !checker.is_done() {
        sleep(POLL);
        if told.elapsed() >= WATCH {
            told = Instant::now();
            (extent.watch)(checker.unique_state_count());
        }
    }
    let checker = checker.join();
    let mut discoveries = checker.discoveries();
    let (mut promises, mut broken, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for property in model.properties() {
        let found = discoveries.remove(property.name);
        match (property.expectation, found) {
            (Expectation::Always, Some(path)) => broken.push((property.name, trace(&model, path))),
            (Expectation::Always, None) => promises.push(property.name),
            (_, None) => unseen.push(property.name),
            (_, Some(_)) => {}
        }
    }
    let (unique, states, depth) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    let whole = broken.is_empty() && extent.states_max.is_none_or(|max| states < max);
    Found { name, unique, states, depth, whole, took: start.elapsed(), promises, broken, unseen }
}
