//! An EventBridge Scheduler endpoint: one-time schedules that send messages to the local SQS, or switch event source mappings.
//!
//! It has `CreateSchedule`, `GetSchedule`, `ListSchedules` and `DeleteSchedule`, of schedules `at(…)` in UTC. They call
//! `arn:aws:scheduler:::aws-sdk:sqs:sendMessage`, or `lambda:updateEventSourceMapping` with `Enabled` alone, or have a queue as their target:
//! `Input` is the body of its message then. Anything else is refused by name. A schedule group need not exist. What SQS does not take is not
//! tried again: it goes to the schedule's dead-letter queue at once, as the JSON of its `SendMessage` and with the attributes of AWS
//! (`ERROR_CODE`, `SCHEDULE_ARN`, …).
//!
//! | module | holds |
//! | --- | --- |
//! | `schedule` | a schedule, checked |
//! | `service` | [`Scheduler`]: the schedules, and what is due |
//! | `http` | the endpoint |

mod http;
mod schedule;
mod service;

pub use service::{SCHEDULES_MAX, Scheduler};
