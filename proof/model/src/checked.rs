//! The model as the checker takes it.

use stateright::{Model, Property};

use crate::config::Config;
use crate::properties::properties;
use crate::state::{DELAYED_MAX, MESSAGES_MAX, Message, Place, State, WORKERS_MAX, Worker};
use crate::steps::Step;

/// A configuration with what is asked of it.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The configuration.
    pub config: Config,
    /// The promises to look at; all that are made, if `None`.
    pub only: Option<&'static [&'static str]>,
    /// What must be reachable.
    pub sights: &'static [&'static str],
}

impl Model for Checked {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let message = Message { place: Place::Queue, receives: 0, redriven: 0, copied: false };
        vec![State {
            // Clocks start at one, so that there is a time before all others.
            now: 1,
            record: None,
            workers: [Worker::Idle; WORKERS_MAX],
            messages: [message; MESSAGES_MAX],
            delayed: [None; DELAYED_MAX],
            losses: self.config.losses,
            deaths: self.config.deaths,
            redrives: self.config.redrives,
            effects: [0; 2],
            done: [false; 2],
            completions: 0,
            done_at: 0,
            flaws: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        state.moves(&self.config, actions);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        state.take(&self.config, step);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}
