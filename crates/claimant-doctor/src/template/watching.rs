//! The alarms of a template.

use super::part::Part;
use super::queues::QUEUE;
use super::resources::Resources;
use crate::fact::Fact;
use crate::model::{Alarm, Link};

/// All alarms; not known if one of them is about something that is not known.
pub(super) fn alarms(resources: &Resources<'_>) -> Fact<Vec<Alarm>> {
    let mut alarms = Vec::new();
    for resource in resources.of(&["AWS::CloudWatch::Alarm"]) {
        let properties = resource.properties();
        let metrics = properties.at("Metrics").items();
        let Fact::Known(metrics) = metrics else { return Fact::Unknown };
        // One metric, or several in an expression.
        let stats = metrics.iter().map(|metric| metric.under(&["MetricStat", "Metric"]));
        for part in std::iter::once(properties).chain(stats) {
            match part.at("Namespace").literal() {
                Fact::Known(Some(space)) if space == "AWS/SQS" => {}
                Fact::Known(_) => continue,
                Fact::Unknown => return Fact::Unknown,
            }
            match alarm(resources, &part) {
                Some(alarm) => alarms.push(alarm),
                None => return Fact::Unknown,
            }
        }
    }
    Fact::Known(alarms)
}

fn alarm(resources: &Resources<'_>, part: &Part<'_>) -> Option<Alarm> {
    let metric = part.at("MetricName").literal().known()?.clone()?;
    let dimensions = part.at("Dimensions").items();
    let mut of = Vec::new();
    for dimension in dimensions.known()? {
        let link: Option<Link> = resources.link(&dimension.at("Value"), QUEUE).known()?.clone();
        of.extend(link);
    }
    Some(Alarm { metric, of })
}
