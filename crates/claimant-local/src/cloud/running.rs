//! A cloud that runs, and how it stops.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::config::Endpoints;
use super::environment;
use super::servers::{Servers, all_ended};
use super::services::Services;
use crate::Error;
use crate::control::{Control, describe};
use crate::dynamodb::DynamoDb;
use crate::faults::Faults;
use crate::gateway::Gateway;
use crate::journal::Journal;
use crate::lambda::Function;
use crate::mailbox::Mailbox;
use crate::mapping::{Mapping, MappingCounters};
use crate::s3::S3;
use crate::sqs::{Depth, Sqs};
use crate::stack::{FunctionSpec, Stack};

/// How long [`Cloud::stop`] waits for the mappings to finish what is under way.
pub const STOP_MAPPINGS_MAX: Duration = Duration::from_secs(5);
/// How long [`Cloud::stop`] waits for the functions' processes to end.
pub const STOP_FUNCTIONS_MAX: Duration = Duration::from_secs(5);
/// How long [`Cloud::stop`] waits for the endpoints to answer what is under way.
pub const STOP_ENDPOINTS_MAX: Duration = Duration::from_secs(2);
/// A function of the template that runs, with its mappings.
pub(super) struct RunningFunction {
    pub(super) spec: FunctionSpec,
    pub(super) function: Function,
    pub(super) mappings: Vec<Mapping>,
}

/// A running local cloud.
///
/// [`stop`](Self::stop) ends it in order. Dropping it stops the endpoints at once.
pub struct Cloud {
    pub(super) stack: Stack,
    /// Values for the template's parameters, beside their defaults.
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) endpoints: Endpoints,
    pub(super) services: Services,
    pub(super) control: Control,
    pub(super) functions: Vec<RunningFunction>,
    /// The functions that had no program when the cloud started, each with what to do about it.
    pub(super) waiting: Vec<String>,
    /// Looks for new builds; cancelled when the cloud stops or is dropped.
    pub(super) watching: JoinSet<()>,
    pub(super) servers: Servers,
}

impl Cloud {
    /// Where the endpoints listen.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The variables that point an AWS CLI or SDK at this cloud, and a function at its payment gateway.
    pub fn variables(&self) -> Vec<(String, String)> {
        let gateway = ("GATEWAY_URL".to_owned(), self.endpoints.gateway.clone());
        environment::variables(&self.endpoints).into_iter().chain([gateway]).collect()
    }

    /// Returns the variables that the template gives its running functions, as far as all that have one of a name agree on
    /// its value: for functions that run elsewhere and share one environment.
    pub fn function_variables(&self) -> Vec<(String, String)> {
        let specs = self.functions.iter().map(|running| &running.spec.environment);
        environment::agreed(specs.map(|template| environment::of_template(template, &self.endpoints)))
    }

    /// As [`function_variables`](Self::function_variables), as they are shown: without values of parameters with `NoEcho`.
    pub fn shown_function_variables(&self) -> Vec<(String, String)> {
        let is_secret = |name: &String| self.functions.iter().any(|running| running.spec.secrets.contains(name));
        let mut variables = self.function_variables();
        environment::hide(variables.iter_mut().filter(|(name, _)| is_secret(name)).map(|(_, value)| value));
        variables
    }

    /// What the control endpoint says of it, by its template's path.
    pub(super) fn described(&self, template: &Path) -> Value {
        let runs = |name: &str| self.functions.iter().any(|running| running.spec.name == name);
        describe(template, (&self.stack, &runs), &self.services.sqs, &self.variables())
    }

    /// What the template holds.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// A line for each function that had no program when the cloud started: where one is looked for, and how to build it.
    pub fn waiting(&self) -> &[String] {
        &self.waiting
    }

    /// What happened.
    pub fn journal(&self) -> &Journal {
        &self.services.journal
    }

    /// The faults on purpose.
    pub fn faults(&self) -> &Faults {
        &self.services.faults
    }

    /// The queues.
    pub fn sqs(&self) -> &Sqs {
        &self.services.sqs
    }

    /// The tables.
    pub fn dynamodb(&self) -> &DynamoDb {
        &self.services.dynamodb
    }

    /// What is behind the endpoints.
    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    /// What the control endpoint answers.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// What was sent by mail.
    pub fn mailbox(&self) -> &Mailbox {
        &self.services.mailbox
    }

    /// What was charged.
    pub fn gateway(&self) -> &Gateway {
        &self.services.gateway
    }

    /// The buckets and their objects.
    pub fn s3(&self) -> &S3 {
        &self.services.s3
    }

    /// The running function of this name, binary or logical id.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let running = self.functions.iter().find(|f| f.spec.is_called(name))?;
        Some(&running.function)
    }

    /// What the mappings of the function of this name, binary or logical id did so far, added up.
    pub fn mapping_counters(&self, name: &str) -> MappingCounters {
        let functions = self.functions.iter().filter(|f| f.spec.is_called(name));
        let mut sum = MappingCounters::default();
        for counters in functions.flat_map(|f| &f.mappings).map(Mapping::counters) {
            sum.invocations += counters.invocations;
            sum.succeeded += counters.succeeded;
            sum.filtered += counters.filtered;
            sum.failed += counters.failed;
            sum.whole_batch_failures += counters.whole_batch_failures;
        }
        sum
    }

    /// The ids of the messages that the function of this name, binary or logical id holds: received for an invocation of it that
    /// has not ended.
    pub fn held(&self, name: &str) -> HashSet<String> {
        let functions = self.functions.iter().filter(|f| f.spec.is_called(name));
        functions.flat_map(|f| &f.mappings).flat_map(Mapping::held).collect()
    }

    /// True when no queue holds a message, visible, in flight or delayed, dead-letter queues aside.
    ///
    /// # Errors
    /// When a queue of the template is gone.
    pub fn drained(&self) -> Result<bool, Error> {
        for queue in &self.stack.queues {
            if self.is_dead_letter_queue(&queue.name) {
                continue;
            }
            let Depth { visible, in_flight, delayed, .. } = self.services.sqs.depth(&queue.name)?;
            if visible + in_flight + delayed > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether this is the dead-letter queue of a queue of the template.
    pub fn is_dead_letter_queue(&self, name: &str) -> bool {
        let redrives = self.stack.queues.iter().filter_map(|q| q.settings.redrive.as_ref());
        redrives.into_iter().any(|redrive| redrive.dead_letter_queue == name)
    }

    /// Stops the mappings, then the functions, then the endpoints, each within its `STOP_…_MAX`.
    pub async fn stop(mut self) {
        self.watching.shutdown().await;
        let mappings: Vec<_> = self.functions.iter_mut().flat_map(|f| f.mappings.drain(..)).collect();
        let mut stopping = JoinSet::new();
        for mapping in mappings {
            stopping.spawn(mapping.stop());
        }
        // What has not stopped in time is cancelled: its messages become visible again, as after any lost poller.
        let _ = timeout(STOP_MAPPINGS_MAX, all_ended(stopping)).await;

        let mut stopping = JoinSet::new();
        for running in &self.functions {
            let function = running.function.clone();
            stopping.spawn(async move { function.stop().await });
        }
        if timeout(STOP_FUNCTIONS_MAX, all_ended(stopping)).await.is_err() {
            tracing::warn!("a function's processes did not end in time");
        }

        self.servers.stop(STOP_ENDPOINTS_MAX).await;
    }
}
