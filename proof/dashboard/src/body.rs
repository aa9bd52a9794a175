//! The dashboard as CloudWatch gets it.

use std::error::Error;
use std::path::Path;

use serde_json::Value;

/// The text before the body.
const BEFORE: &str = "DashboardBody: !Sub |";

/// A dashboard.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) widgets: Vec<Widget>,
}

/// A chart.
#[derive(Debug)]
pub(crate) struct Widget {
    /// In the grid of 24 columns: x, y, width, height.
    pub(crate) place: [f64; 4],
    pub(crate) title: String,
    pub(crate) stacked: bool,
    pub(crate) lines: Vec<Line>,
    /// A line across: its label and its value.
    pub(crate) limit: Option<(String, f64)>,
}

/// A metric, or what is computed of one or two.
#[derive(Debug)]
pub(crate) struct Line {
    /// Namespace, name and values of dimensions; an expression has none.
    pub(crate) metric: Vec<String>,
    /// What is computed.
    pub(crate) expression: Option<Expression>,
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) color: String,
    pub(crate) is_maximum: bool,
    pub(crate) is_visible: bool,
}

/// An operand, or one divided by another.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) above: Operand,
    pub(crate) below: Option<Operand>,
}

/// The id of a line, and whether it is 0 where it has no value.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) id: String,
    pub(crate) filled: bool,
}

impl Body {
    /// Reads the body from its template, with these values of parameters.
    ///
    /// # Errors
    /// When the file or the body in it cannot be read.
    pub(crate) fn read<'a>(
        path: &Path,
        words: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Box<dyn Error>> {
        let template = std::fs::read_to_string(path)?;
        let (_, body) = template.split_once(BEFORE).ok_or_else(|| format!("{} has no {BEFORE}", path.display()))?;
        let body = words.fold(body.to_owned(), |body, (name, value)| body.replace(&format!("${{{name}}}"), value));
        let body: Value = serde_json::from_str(&body)?;
        Ok(Self { widgets: list(&body["widgets"]).iter().map(widget).collect::<Result<_, _>>()? })
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn widget(widget: &Value) -> Result<Widget, String> {
    let properties = &widget["properties"];
    let title = text(&properties["title"]);
    let lines = list(&properties["metrics"]).iter().map(|metric| line(list(metric), properties));
    let limit = &properties["annotations"]["horizontal"][0];
    Ok(Widget {
        place: ["x", "y", "width", "height"].map(|name| widget[name].as_f64().unwrap_or_default()),
        stacked: properties["stacked"] == true,
        lines: lines.collect::<Result<_, _>>().map_err(|why| format!("{title}: {why}"))?,
        limit: limit["value"].as_f64().map(|value| (text(&limit["label"]), value)),
        title,
    })
}

fn line(metric: &[Value], properties: &Value) -> Result<Line, String> {
    let (options, names) = match metric.split_last() {
        Some((options, names)) if options.is_object() => (options, names),
        _ => (&Value::Null, metric),
    };
    let names: Vec<String> = names.iter().map(text).collect();
    // Namespace and name come first, then names and values of dimensions in turn.
    let dimensions = names.iter().skip(2).skip(1).step_by(2).cloned();
    let metric: Vec<_> = names.iter().take(2).cloned().chain(dimensions).collect();
    let expression = options["expression"].as_str().map(expression).transpose()?;
    let statistic = options["stat"].as_str().or(properties["stat"].as_str());
    let label = options["label"].as_str().or(metric.get(1).map(String::as_str)).unwrap_or_default().to_owned();
    Ok(Line {
        expression,
        id: text(&options["id"]),
        label,
        color: text(&options["color"]),
        is_maximum: statistic == Some("Maximum"),
        is_visible: options["visible"] != false,
        metric,
    })
}

fn expression(text: &str) -> Result<Expression, String> {
    let operand = |part: &str| {
        let filled = part.strip_prefix("FILL(").and_then(|rest| rest.strip_suffix(", 0)"));
        let id = filled.unwrap_or(part).to_owned();
        let is_id = id.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
        is_id.then_some(Operand { id, filled: filled.is_some() }).ok_or_else(|| format!("`{text}` cannot be drawn"))
    };
    let (above, below) = text.split_once(" / ").map_or((text, None), |(above, below)| (above, Some(below)));
    Ok(Expression { above: operand(above)?, below: below.map(operand).transpose()? })
}
