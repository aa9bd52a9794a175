//! An EventBridge Scheduler endpoint: one-time schedules that send messages to the local SQS, or switch event source mappings.
//!
//! It has `CreateSchedule`, `GetSchedule`, `ListSchedules` and `DeleteSchedule`, of schedules `at(…)` in UTC that call
//! `arn:aws:scheduler:::aws-sdk:sqs:sendMessage`, or `lambda:updateEventSourceMapping` with `Enabled` alone. Anything else is refused by name. A schedule group need not exist. What SQS does
//! not take is not tried again: it goes to the schedule's dead-letter queue at once.
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
