//! Alarms and logs.

use serde_json::{Value, json};

use super::answers::{Account, Asker, Service, text, texts};
use super::names::name_of;
use crate::alarm::{SPACE, by_query};
use crate::fact::Fact;
use crate::model::{Alarm, Link, Place, System};

/// Adds the alarms on queues; one that asks for metrics by a query may be on any of them.
pub(super) async fn read<A: Account>(asker: &Asker<'_, A>, system: &mut System) {
    let input = json!({"AlarmTypes": ["MetricAlarm"], "MaxRecords": 100});
    let pages = match asker.pages(Service::CloudWatch, "DescribeAlarms", input, "NextToken").await {
        Ok(pages) => pages,
        Err(refused) => {
            asker.note(refused.to_string());
            return;
        }
    };
    let mut alarms = Vec::new();
    let queues: Vec<_> = system.queues.iter().map(|queue| Link::Here(queue.place.id.to_string())).collect();
    for found in texts(&pages, "MetricAlarms").into_iter().filter(|found| found["ActionsEnabled"] != false) {
        let metrics = || found["Metrics"].as_array().into_iter().flatten();
        let by_queries = metrics().filter_map(|metric| text(metric, "Expression"));
        let name = text(&found, "AlarmName").unwrap_or("without a name");
        let place = Place { id: name.into(), certain: true, ..Place::default() };
        let by_queries: Vec<_> = by_queries.flat_map(|query| by_query(query, &queues, &place)).collect();
        if !by_queries.is_empty() {
            asker.note(format!("which queues the alarm {name} is on: it asks by a query (check 30)"));
        }
        alarms.extend(by_queries);
        let in_expressions = metrics().map(|metric| &metric["MetricStat"]["Metric"]);
        for metric in std::iter::once(&found).chain(in_expressions) {
            if text(metric, "Namespace") == Some(SPACE) {
                alarms.extend(alarm(metric, system, &place));
            }
        }
    }
    system.alarms = Fact::Known(alarms);
}

fn alarm(metric: &Value, system: &System, place: &Place) -> Option<Alarm> {
    let names = metric["Dimensions"].as_array()?.iter().filter_map(|one| text(one, "Value"));
    let of = names.flat_map(|name| {
        let queues = system.queues.iter().filter(move |queue| name_of(&queue.place.id) == name);
        queues.map(|queue| Link::Here(queue.place.id.to_string()))
    });
    let metric = text(metric, "MetricName")?.to_owned();
    Some(Alarm { metric, of: of.collect(), certain: true, place: place.clone() })
}

/// Whether the log group of this name has a retention. One that is not there yet has none: Lambda makes it so.
pub(super) async fn expires<A: Account>(asker: &Asker<'_, A>, group: &str) -> Fact<bool> {
    let input = json!({"logGroupNamePrefix": group});
    let Some(answer) = asker.get(Service::Logs, "DescribeLogGroups", input).await else { return Fact::Unknown };
    let groups = texts(std::slice::from_ref(&answer), "logGroups");
    let found = groups.iter().find(|found| text(found, "logGroupName") == Some(group));
    Fact::Known(found.is_some_and(|found| found["retentionInDays"].is_u64()))
}
