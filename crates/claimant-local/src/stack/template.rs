//! The template as read, and a cursor over it that records every fault with its place.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_yaml_ng::Value;

use crate::Error;

use super::conditions::condition_of;
use super::resolve::intrinsic;

/// What is wrong with a template; shared by everything that reads it.
#[derive(Debug, Default)]
pub(super) struct Faults(RefCell<BTreeSet<String>>);

/// A template with the parameters of this run.
pub(super) struct Template<'a> {
    pub(super) root: &'a Value,
    pub(super) parameters: &'a BTreeMap<String, String>,
    faults: &'a Faults,
}

/// A place in the template: a value, or the absence of one, with its path for messages.
#[derive(Clone)]
pub(super) struct Section<'a> {
    template: &'a Template<'a>,
    path: String,
    value: Option<&'a Value>,
}

impl Faults {
    pub(super) fn add(&self, fault: String) {
        self.0.borrow_mut().insert(fault);
    }

    pub(super) fn into_result(self, place: &str) -> Result<(), Error> {
        let faults = self.0.into_inner();
        if faults.is_empty() {
            return Ok(());
        }
        let list: String = faults.iter().map(|fault| format!("\n  - {fault}")).collect();
        Err(Error::new(format!("{place} cannot be run locally:{list}")))
    }
}

impl<'a> Template<'a> {
    /// Also checks that every parameter given is one the template has.
    pub(super) fn new(root: &'a Value, parameters: &'a BTreeMap<String, String>, faults: &'a Faults) -> Self {
        let template = Self { root, parameters, faults };
        for name in parameters.keys() {
            if template.parameter(name).is_none() {
                faults.add(format!(
                    "parameter {name} was given, but is not under `Parameters`: remove it or correct its name"
                ));
            }
        }
        template
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&'a Value> {
        self.root.get("Parameters")?.get(name)
    }

    pub(super) fn resource(&self, logical_id: &str) -> Option<&'a Value> {
        self.root.get("Resources")?.get(logical_id)
    }

    /// Every resource, in the template's order, whatever its condition.
    pub(super) fn all_resources(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let all = self.root.get("Resources").and_then(Value::as_mapping);
        all.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str()?, value)))
    }

    /// The resources of one of the given types that are not left out by their condition, in the template's order.
    pub(super) fn resources<'t>(
        &'t self,
        types: &'static [&'static str],
    ) -> impl Iterator<Item = (&'a str, Section<'t>)> {
        self.all_resources().filter_map(move |(id, value)| {
            let kind = value.get("Type")?.as_str()?;
            let section = Section { template: self, path: id.to_owned(), value: Some(value) };
            (types.contains(&kind) && section.is_there()).then_some((id, section))
        })
    }

    pub(super) fn function_globals(&self) -> Section<'_> {
        Section {
            template: self,
            path: "Globals.Function".to_owned(),
            value: self.root.get("Globals").and_then(|globals| globals.get("Function")),
        }
    }
}

impl<'a> Section<'a> {
    pub(super) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// Whether this resource's condition holds; one that cannot be evaluated is a fault.
    fn is_there(&self) -> bool {
        let Some(condition) = self.value.and_then(condition_of) else { return true };
        self.template.condition(condition).unwrap_or_else(|why| {
            self.fault(why);
            false
        })
    }

    pub(super) fn fault(&self, what: impl AsRef<str>) {
        self.template.faults.add(format!("{}: {}", self.path, what.as_ref()));
    }

    /// What stands under `key`; absent if `key` or this section is.
    pub(super) fn section(&self, key: &str) -> Section<'a> {
        let value = match self.value {
            Some(value) if intrinsic(value).is_some() => {
                self.fault("must be written out: the local cloud evaluates functions only for single values");
                None
            }
            Some(value) => value.get(key).filter(|value| !value.is_null()),
            None => None,
        };
        Section { template: self.template, path: format!("{}.{key}", self.path), value }
    }

    /// The entries of a mapping; nothing if absent.
    pub(super) fn entries(&self) -> Vec<(String, Section<'a>)> {
        match self.value {
            None => Vec::new(),
            Some(Value::Mapping(map)) if intrinsic(self.value.unwrap_or(&Value::Null)).is_none() => {
                map.keys().filter_map(|key| key.as_str()).map(|key| (key.to_owned(), self.section(key))).collect()
            }
            Some(_) => {
                self.fault("must be a mapping of names to values");
                Vec::new()
            }
        }
    }

    /// The items of a list; nothing if absent.
    pub(super) fn items(&self) -> Vec<Section<'a>> {
        match self.value {
            None => Vec::new(),
            Some(Value::Sequence(items)) => items
                .iter()
                .enumerate()
                .map(|(index, value)| Section {
                    template: self.template,
                    path: format!("{}[{index}]", self.path),
                    value: Some(value),
                })
                .collect(),
            Some(_) => {
                self.fault("must be a list");
                Vec::new()
            }
        }
    }

    /// The section's own value as text, with functions evaluated.
    pub(super) fn text(&self) -> Option<String> {
        match self.template.text(self.value?) {
            Ok(text) => Some(text),
            Err(why) => {
                self.fault(why);
                None
            }
        }
    }

    /// As [`text`](Self::text); absence is a fault.
    pub(super) fn required_text(&self, mend: &str) -> Option<String> {
        if !self.is_given() {
            self.fault(format!("is missing: {mend}"));
        }
        self.text()
    }

    pub(super) fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text()?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(format!("must be a whole number from {} to {}, not `{text}`", range.start(), range.end()));
        }
        number
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        let text = self.text()?;
        match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.fault(format!("must be true or false, not `{text}`"));
                None
            }
        }
    }
}
