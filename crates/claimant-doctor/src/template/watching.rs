//! The alarms of a template, and its dashboards.

use super::part::Part;
use super::queues::QUEUE;
use super::resources::{Resource, Resources};
use super::scope::HOLE;
use crate::alarm::{SPACE, by_query};
use crate::fact::Fact;
use crate::model::{Alarm, Link, Watching};

/// All alarms; not known if one of them is about something that is not known.
pub(super) fn alarms(resources: &Resources<'_>) -> Fact<Vec<Alarm>> {
    let mut alarms = Vec::new();
    let queues: Vec<_> = resources.of(QUEUE).map(|queue| Link::Here(queue.id.to_string())).collect();
    for resource in resources.of(&["AWS::CloudWatch::Alarm"]) {
        let properties = resource.properties();
        let acts = properties.at("ActionsEnabled").boolean_or(true);
        if acts == Fact::Known(false) {
            continue;
        }
        let (certain, place) = (acts == Fact::Known(true), resource.place());
        let metrics = properties.at("Metrics").items();
        let Fact::Known(metrics) = metrics else { return Fact::Unknown };
        // One metric, or several in an expression.
        for metric in &metrics {
            match metric.at("Expression").text() {
                Fact::Known(Some(query)) if !query.contains(HOLE) => alarms.extend(by_query(&query, &queues, &place)),
                Fact::Known(None) => {}
                // It may be a query.
                _ => return Fact::Unknown,
            }
        }
        let stats = metrics.iter().map(|metric| metric.under(&["MetricStat", "Metric"]));
        for part in std::iter::once(properties).chain(stats) {
            match part.at("Namespace").literal() {
                Fact::Known(Some(space)) if space == SPACE => {}
                Fact::Known(_) => continue,
                Fact::Unknown => return Fact::Unknown,
            }
            match alarm(resources, &part) {
                Some((metric, of)) => alarms.push(Alarm { metric, of, certain, place: place.clone() }),
                None => return Fact::Unknown,
            }
        }
    }
    Fact::Known(alarms)
}

/// The metric, and the queues that it is of.
fn alarm(resources: &Resources<'_>, part: &Part<'_>) -> Option<(String, Vec<Link>)> {
    let metric = part.at("MetricName").literal().known()?.clone()?;
    let dimensions = part.at("Dimensions").items();
    let mut of = Vec::new();
    for dimension in dimensions.known()? {
        if dimension.at("Name").literal().known()?.as_deref() == Some("QueueName") {
            of.extend(resources.queue_named(&dimension.at("Value"), QUEUE).known()?.clone());
        }
    }
    Some((metric, of))
}

/// How many metrics are watched by alarms, and how many dashboards there are.
pub(super) fn watching(resources: &Resources<'_>) -> Watching {
    let metrics = |alarm: &Resource<'_>| {
        let parts = alarm.properties().at("Metrics").items();
        let stats =
            parts.known().into_iter().flatten().filter(|part| part.at("MetricStat").is_given() != Fact::Known(false));
        stats.count().max(1)
    };
    const KINDS: [&[&str]; 2] = [&["AWS::CloudWatch::Alarm"], &["AWS::CloudWatch::Dashboard"]];
    let certain = |kind| resources.of(kind).filter(|resource| resource.certain);
    Watching {
        alarm_metrics: certain(KINDS[0]).map(metrics).sum(),
        dashboards: certain(KINDS[1]).count(),
        uncertain: KINDS.iter().flat_map(|kind| resources.of(kind)).filter(|resource| !resource.certain).count(),
    }
}
