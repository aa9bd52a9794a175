//! `/faults`: things broken on purpose, each visible while it acts and ended by hand.

use axum::Router;
use axum::extract::State;
use axum::response::{Redirect, Response};
use axum::routing::get;
use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::faults::{Fault, FaultSpec, Faults};
use maud::{Markup, html};
use serde::Serialize;

use super::local_only::local_only;
use crate::act::Act;
use crate::answer::Page;
use crate::ask::{Ask, Reader};
use crate::console::{Console, FORM};
use crate::done::Done;
use crate::fields::Fields;
use crate::timeline::words::lasting;
use crate::ui::badge::{Tone, badge};
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column};
use crate::ui::text;

const PATH: &str = "/faults";
const END: &str = "/faults/end";

/// What a fault is asked for with.
const FIELDS: [&str; 9] = ["act", "of", "function", "process", "when", "frozen_s", "times", "seconds", PRESET];

/// The field that names a button of [`PROCESSES`], beside which others are asked for: each is of the same form.
const PRESET: &str = "preset";

/// The most ended faults that are shown.
const ENDED_SHOWN: usize = 10;

const COLUMNS: [Column; 4] =
    [table::text("Fault"), table::text("State"), table::number("Has acted"), table::text("Switched on")];

/// One button: its label, and the fault that it switches on. Of a process, the function is chosen beside it.
type Preset = (&'static str, &'static [(&'static str, &'static str)]);

const PROCESSES: [Preset; 4] = [
    ("Kill a process at its next claim", &[("act", "kill")]),
    ("Kill its processes now", &[("act", "kill"), ("when", "now")]),
    ("Freeze a process for 5 s at its next claim", &[("act", "freeze")]),
    ("Freeze it for 40 s: longer than its time", &[("act", "freeze"), ("frozen_s", "40")]),
];

const TABLE: [Preset; 5] = [
    ("Lose the answer to the next claim", &[("act", "lose"), ("of", "claims")]),
    ("Lose the answer to the next completion", &[("act", "lose"), ("of", "settlements")]),
    ("Throttle it for 10 s", &[("act", "throttle"), ("of", "table"), ("seconds", "10")]),
    ("Throttle completions for 10 s", &[("act", "throttle"), ("of", "settlements"), ("seconds", "10")]),
    ("Cut it off for 10 s", &[("act", "cut"), ("of", "table"), ("seconds", "10")]),
];

const OTHERS: [Preset; 4] = [
    ("Refuse mails for 10 s", &[("act", "refuse"), ("of", "mail"), ("seconds", "10")]),
    ("Lose the answer to the next mail", &[("act", "lose"), ("of", "mail")]),
    ("Refuse charges for 10 s", &[("act", "refuse"), ("of", "gateway"), ("seconds", "10")]),
    ("Lose the answer to the next charge", &[("act", "lose"), ("of", "gateway")]),
];

const NOT_HERE: &str = "Nothing of a deployed stack is broken on purpose: claimant local runs the same template on this machine, where processes are \
    killed and the table is cut off.";

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route(PATH, get(show).post(begin)).route(END, get(|| async { Redirect::to(PATH) }).post(end))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    if let Some(answer) = local_only(&console, &ask, Tab::Faults, NOT_HERE) {
        return answer;
    }
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<FaultsPage, Error> {
    let place = console.place();
    Ok(FaultsPage {
        faults: Faults::of(place)?.list().await?,
        functions: place
            .functions
            .iter()
            .filter(|function| function.runs)
            .map(|function| function.name.clone())
            .collect(),
        now_ms: SystemClock.now().as_millis(),
        // The forms of a page that is open stay as they are.
        form: if ask.reader == Reader::Browser { console.new_form() } else { String::new() },
    })
}

async fn begin(State(console): State<Console>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { begun(&console, &act).await }).await;
    act.ask.done_at(&console, Tab::Faults, done, || PATH.to_owned())
}

async fn end(State(console): State<Console>, act: Act) -> Response {
    let done = ended(&console, &act).await;
    act.ask.done_at(&console, Tab::Faults, done, || PATH.to_owned())
}

/// Switches a fault on, as `claimant fault` does.
async fn begun(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&FIELDS, None)?;
    let spec = spec(&act.fields)?;
    let fault = Faults::of(console.place())?.begin(&spec).await?;
    let value = serde_json::to_value(&fault).unwrap_or_default();
    Ok(Done::new(format!("Fault {}: {}.", fault.id, fault.does.trim_end_matches('.')), PATH, value))
}

/// Ends one fault, or all.
async fn ended(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&["id"], None)?;
    let fields = &act.fields;
    let faults = Faults::of(console.place())?;
    let ended = match fields.narrowing("id")? {
        Some(_) => vec![faults.end(fields.number("id", 0, 1..=u64::MAX)?).await?],
        None => faults.end_all().await?,
    };
    let said = match ended.as_slice() {
        [] => "No fault acts.".to_owned(),
        [fault] => format!("Fault {} is over.", fault.id),
        several => format!("{} are over.", text::counted(several.len() as u64, "fault", "faults")),
    };
    Ok(Done::new(said, PATH, serde_json::to_value(&ended).unwrap_or_default()))
}

/// Reads a fault from the fields of a form; a button of a process names its preset. What came with nothing is none of its defaults.
fn spec(fields: &Fields) -> Result<FaultSpec, Error> {
    for name in FIELDS.iter().filter(|name| **name != "act") {
        fields.narrowing(name)?;
    }
    let most = PROCESSES.len() as u64;
    let number = fields.number(PRESET, most, 0..=most - 1)?;
    let preset = usize::try_from(number).ok().and_then(|number| PROCESSES.get(number));
    let of_preset =
        |name: &str| preset?.1.iter().find(|(field, _)| *field == name).map(|(_, value)| (*value).to_owned());
    let own = |name: &str| fields.get(name).map(str::to_owned).or_else(|| of_preset(name));
    let number = |name: &str| -> Result<Option<u32>, Error> {
        let parse = |text: String| text.parse().map_err(|_| Error::invalid(format!("{name} is a whole number")));
        own(name).map(parse).transpose()
    };
    let act =
        own("act").ok_or_else(|| Error::invalid("act is missing: kill, freeze, lose, throttle, cut or refuse"))?;
    Ok(FaultSpec {
        act,
        of: own("of"),
        function: own("function"),
        process: number("process")?,
        when: own("when"),
        frozen_s: number("frozen_s")?,
        times: number("times")?,
        seconds: number("seconds")?,
    })
}

#[derive(Serialize)]
struct FaultsPage {
    faults: Vec<Fault>,
    functions: Vec<String>,
    now_ms: u64,
    /// The number of the form, of which each button is one.
    #[serde(skip)]
    form: String,
}

impl Page for FaultsPage {
    const TAB: Tab = Tab::Faults;

    fn title(&self) -> String {
        "Faults".to_owned()
    }

    fn above(&self) -> Markup {
        html! {
            p .lead { "Break things on purpose, and see that nothing is lost; what was done twice is the first thing on " a href="/effects" { "Effects" } ". Only this local cloud is broken." }
        }
    }

    fn live(&self) -> Markup {
        let shown: Vec<_> = self.active().chain(self.over().take(ENDED_SHOWN)).collect();
        let rows = shown.iter().map(|fault| (format!("fault-{}", fault.id), self.row(fault)));
        html! {
            @if shown.is_empty() {
                (text::empty("No fault acts", &html! { "Switch one on below, then " a href="/send" { "send" } " something." }))
            } @else {
                section {
                    (table::table_of_acts("Faults", &COLUMNS, rows))
                }
            }
        }
    }

    fn below(&self) -> Markup {
        html! {
            div .presets {
                section .card {
                    h2 { "Processes" }
                    @if self.functions.is_empty() {
                        p .soft { "No function runs here." }
                    } @else {
                        form method="post" action=(PATH) {
                            (form::hidden(&[(FORM, &self.form)]))
                            (form::field("Function", &form::select("function", self.functions.iter().map(|name| (name.as_str(), name.as_str())), None)))
                            // One form for all, so that the function is chosen once: each button names its fault.
                            div .acts { @for (at, (label, _)) in PROCESSES.iter().enumerate() { button type="submit" name=(PRESET) value=(at) { (label) } } }
                        }
                    }
                }
                section .card {
                    h2 { "The table" }
                    div .acts { @for (label, fields) in &TABLE { (self.button(label, fields)) } }
                }
                section .card {
                    h2 { "Mails and charges" }
                    div .acts { @for (label, fields) in &OTHERS { (self.button(label, fields)) } }
                }
            }
        }
    }

    fn summary(&self) -> Option<String> {
        Some(match self.active().count() {
            0 => "No fault acts.".to_owned(),
            count => format!("{}.", text::counted(count as u64, "fault acts", "faults act")),
        })
    }
}

impl FaultsPage {
    fn button(&self, label: &str, fields: &[(&str, &str)]) -> Markup {
        form::act(PATH, label, &[fields, &[(FORM, &self.form)]].concat())
    }

    fn active(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(|fault| fault.ended_ms.is_none())
    }

    fn over(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(|fault| fault.ended_ms.is_some())
    }

    fn row(&self, fault: &Fault) -> Vec<Markup> {
        let id = fault.id.to_string();
        let state = match (fault.ended_ms, fault.until_ms, fault.spec.times) {
            (Some(_), ..) if fault.acted == 0 => badge(Tone::Quiet, "over, met nothing"),
            (Some(_), ..) => badge(Tone::Quiet, "over"),
            (None, Some(until), _) => {
                let left = lasting(until.saturating_sub(self.now_ms));
                badge(Tone::Warn, &format!("acts for {left} more"))
            }
            (None, None, Some(times)) => {
                let left = u64::from(times.saturating_sub(fault.acted));
                badge(Tone::Warn, &format!("waits to act {} more", text::counted(left, "time", "times")))
            }
            (None, None, None) => badge(Tone::Warn, "acts"),
        };
        vec![
            html! { (fault.does) },
            html! {
                (state)
                @if fault.ended_ms.is_none() { " " (form::act_on(END, "End it", &format!("(fault {id}, {})", fault.does), &[("id", &id)])) }
            },
            text::count(u64::from(fault.acted)),
            text::time(fault.began_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_and_fields_say_the_same() {
        let read = |form: &str| spec(&Fields::of_form(form)).unwrap();
        let frozen = read("function=payment&preset=3");
        assert_eq!(
            (frozen.act.as_str(), frozen.frozen_s, frozen.function.as_deref()),
            ("freeze", Some(40), Some("payment"))
        );
        assert_eq!(frozen, read("function=payment&act=freeze&frozen_s=40"));
        assert_eq!(read("act=cut&of=table&seconds=10").seconds, Some(10));
        for form in ["", "act=", "preset=4", "act=kill&process=x", "act=kill&when="] {
            assert!(spec(&Fields::of_form(form)).is_err(), "{form}");
        }
    }
}
