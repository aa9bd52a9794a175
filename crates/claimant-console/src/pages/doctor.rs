//! `/doctor`: what is wrong with the template, or with what is deployed.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::Error;
use claimant_doctor::account::{Aws, Scope, examine};
use claimant_doctor::{CATALOG, Finding, Level, Options, Report};
use claimant_operate::target::Origin;
use maud::{Markup, html};
use serde::Serialize;
use tokio::runtime::Handle;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::ui::badge::{Tone, badge};
use crate::ui::nav::Tab;
use crate::ui::text;

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/doctor", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<Examined, Error> {
    let place = console.place();
    let Origin::Template { path: template, .. } = place.origin.clone() else {
        let wanted = ask.query.flag("look")?;
        let report = if wanted { Some(deployed(console).await?) } else { None };
        return Ok(Examined::of(place.name.clone(), report.as_ref()));
    };
    let what = template.clone();
    let options = Options { parameters: console.source().parameters(), ..Options::default() };
    let read = tokio::task::spawn_blocking(move || {
        let (system, not_looked_at) = claimant_doctor::read(template.as_ref(), &options)?;
        let mut report = claimant_doctor::run(&system);
        report.not_looked_at.extend(not_looked_at);
        Ok::<_, claimant_doctor::Error>(report)
    });
    let read = read.await.map_err(|e| Error::new("the examination ended early").caused_by(e))?;
    let report = read.map_err(|e| Error::invalid(e.to_string()))?;
    Ok(Examined::of(what, Some(&report)))
}

/// Examines what is deployed: requests that only read.
async fn deployed(console: &Console) -> Result<Report, Error> {
    let place = console.place();
    let scope = match &place.origin {
        // With what is nested in it, and with what its resources accept.
        Origin::Stack { name, .. } => Scope { stack: Some(name.clone()), ..Scope::default() },
        Origin::Template { .. } | Origin::Named => Scope {
            functions: place.functions.iter().map(|function| function.name.clone()).collect(),
            ..Scope::default()
        },
    };
    let account = Aws::new(place.aws());
    // Its futures stay on one thread.
    let examined = tokio::task::spawn_blocking(move || Handle::current().block_on(examine(&account, &scope))).await;
    let examined = examined.map_err(|e| Error::new("the examination ended early").caused_by(e))?;
    let (system, not_looked_at) =
        examined.map_err(|refused| Error::new(format!("nothing can be examined: {refused}")))?;
    let mut report = claimant_doctor::run(&system);
    report.not_looked_at = not_looked_at;
    Ok(report)
}

#[derive(Serialize)]
struct Examined {
    /// The template, or the stack.
    what: String,
    /// Whether it was examined: what is deployed is examined on demand.
    is_examined: bool,
    findings: Vec<Shown>,
    accepted: Vec<Shown>,
    /// Checks that looked at something, and found nothing.
    fine: Vec<&'static str>,
    not_looked_at: Vec<String>,
}

/// A finding.
#[derive(Serialize)]
struct Shown {
    check: &'static str,
    title: &'static str,
    level: Level,
    place: String,
    what: String,
    fix: String,
    why: &'static str,
    fine: &'static str,
    see: String,
    /// Why it is accepted.
    reason: Option<String>,
}

impl Shown {
    fn of(finding: &Finding, reason: Option<&String>) -> Self {
        let Finding { check, level, place, what, fix } = finding;
        Self {
            check: check.name,
            title: check.title,
            level: *level,
            place: match &place.file {
                Some(file) if place.line > 0 => format!("{}:{} {}", file, place.line, place.id),
                _ => place.id.to_string(),
            },
            what: what.clone(),
            fix: fix.clone(),
            why: check.why,
            fine: check.fine,
            see: check.see(),
            reason: reason.cloned(),
        }
    }
}

impl Examined {
    fn of(what: String, report: Option<&Report>) -> Self {
        let fine = |report: &Report| {
            let fine = CATALOG.iter().filter(|check| {
                report.tallies.get(&check.number).is_some_and(|tally| tally.found == 0 && tally.fine > 0)
            });
            fine.map(|check| check.title).collect()
        };
        Self {
            what,
            is_examined: report.is_some(),
            findings: report.iter().flat_map(|r| &r.findings).map(|finding| Shown::of(finding, None)).collect(),
            accepted: report
                .iter()
                .flat_map(|r| &r.accepted)
                .map(|accepted| Shown::of(&accepted.finding, Some(&accepted.reason)))
                .collect(),
            fine: report.map(fine).unwrap_or_default(),
            not_looked_at: report.map(|report| report.not_looked_at.clone()).unwrap_or_default(),
        }
    }
}

impl Page for Examined {
    const TAB: Tab = Tab::Doctor;

    fn title(&self) -> String {
        "Doctor".to_owned()
    }

    fn below(&self) -> Markup {
        html! {
            p .lead { "Timeouts, dead letters, rights, concurrency, the lock table and alarms of " code { (self.what) } "." }
            @if !self.is_examined {
                form .act method="get" action="/doctor" {
                    input type="hidden" name="look" value="true";
                    button type="submit" { "Examine it" }
                    p .soft.small { "With your credentials, by requests that only read: some dozens, a few for each function." }
                }
            } @else {
                @if self.findings.is_empty() {
                    (text::empty("Nothing was found", &html! { (self.fine.len()) " checks had something to look at." }))
                }
                @for finding in &self.findings { (finding_of(finding)) }
                (self.rest())
            }
        }
    }
}

impl Examined {
    /// What is as it should be, and what is not known.
    fn rest(&self) -> Markup {
        html! {
            @if !self.accepted.is_empty() {
                section {
                    h2 { "Accepted by the template" }
                    ul {
                        @for shown in &self.accepted {
                            li { (shown.title) ", " code { (shown.place) } ": " (shown.reason.as_deref().unwrap_or_default()) }
                        }
                    }
                }
            }
            @if !self.fine.is_empty() {
                details { summary { (text::counted(self.fine.len() as u64, "check", "checks")) " found nothing" } ul { @for title in &self.fine { li { (title) } } } }
            }
            @if !self.not_looked_at.is_empty() {
                details { summary { "Not looked at" } ul { @for what in &self.not_looked_at { li { (what) } } } }
            }
        }
    }
}

fn finding_of(shown: &Shown) -> Markup {
    let (tone, word) = match shown.level {
        Level::Error => (Tone::Bad, "error"),
        Level::Warning => (Tone::Warn, "warning"),
        Level::Note => (Tone::Quiet, "note"),
    };
    html! {
        article .finding.card {
            h2 { (badge(tone, word)) " " (shown.title) }
            p { code { (shown.place) } ": " (shown.what) }
            p { strong { "Fix: " } (shown.fix) }
            details {
                summary { "Why, and when it is fine" }
                p { (shown.why) } p { (shown.fine) }
                p .soft.small { code { (shown.check) } " · " (shown.see) }
            }
        }
    }
}
