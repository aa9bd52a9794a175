//! A place in a template: a value with its functions evaluated, or that it is not known.

use std::rc::Rc;

use claimant_template::{Kind, LOOP, Node};

use super::scope::Scope;
use crate::fact::Fact;

/// What stands for entries that only AWS knows, beside others.
pub(super) const MACRO: &str = "Fn::Transform";

/// Whether there are entries that a macro adds, or a loop that cannot be written out.
fn has_unknown_entries(node: &Node) -> bool {
    node.entries().iter().any(|(key, _)| &**key == MACRO || key.starts_with(LOOP))
}

/// Whether a text is a number with a zero in front, which is octal where it has no quotes, or where a tool took them away.
fn may_be_octal(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A value of a template.
#[derive(Clone)]
pub(super) struct Part<'s> {
    scope: &'s Scope,
    /// Null if there is nothing.
    node: Fact<Node>,
}

impl<'s> Part<'s> {
    pub(super) fn new(scope: &'s Scope, node: &Node) -> Self {
        Self { scope, node: scope.evaluate(node, 0) }
    }

    fn nothing(scope: &'s Scope) -> Self {
        Self { scope, node: Fact::Known(Node { line: 0, kind: Kind::Null }) }
    }

    pub(super) fn line(&self) -> usize {
        self.node.known().map_or(0, |node| node.line)
    }

    /// What stands under `key`; nothing if there is none of either. What a macro or a loop may add is unknown.
    pub(super) fn at(&self, key: &str) -> Self {
        let unknown = Self { scope: self.scope, node: Fact::Unknown };
        let Fact::Known(node) = &self.node else { return unknown };
        match node.get(key) {
            Some(node) => Self::new(self.scope, node),
            None if has_unknown_entries(node) => unknown,
            None => Self::nothing(self.scope),
        }
    }

    /// Of a mapping, this entry alone; no entry of anything else.
    pub(super) fn only(&self, key: &str) -> Self {
        let kept = |node: &Node| {
            let entries = node.entries().iter().filter(|(name, _)| &**name == key || has_unknown_entries(node));
            Node { line: node.line, kind: Kind::Map(entries.cloned().collect()) }
        };
        Self { scope: self.scope, node: self.node.known().map(kept).into() }
    }

    /// Whether this is a mapping.
    pub(super) fn is_map(&self) -> Fact<bool> {
        self.node.known().map(Node::is_map).into()
    }

    /// As [`at`](Self::at), along a path.
    pub(super) fn under(&self, path: &[&str]) -> Self {
        path.iter().fold(self.clone(), |part, key| part.at(key))
    }

    /// Whether there is something.
    pub(super) fn is_given(&self) -> Fact<bool> {
        self.node.clone().map(|node| node.kind != Kind::Null)
    }

    /// The text, with holes for what is not known; no text if there is nothing.
    pub(super) fn text(&self) -> Fact<Option<String>> {
        match &self.node {
            Fact::Known(Node { kind: Kind::Null, .. }) => Fact::Known(None),
            Fact::Known(node) => node.as_text().map(|text| Some(text.to_owned())).into(),
            Fact::Unknown => Fact::Unknown,
        }
    }

    /// The text, if all of it is known.
    pub(super) fn literal(&self) -> Fact<Option<String>> {
        match self.text() {
            Fact::Known(Some(text)) if text.contains("${") => Fact::Unknown,
            text => text,
        }
    }

    /// A value that must be written in some way to be one; one that is wrong is refused by AWS, and here unknown.
    fn parsed<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Fact<Option<T>> {
        match self.literal() {
            Fact::Known(Some(text)) => parse(&text).map(Some).into(),
            Fact::Known(None) => Fact::Known(None),
            Fact::Unknown => Fact::Unknown,
        }
    }

    /// The number; one with a zero in front is unknown.
    pub(super) fn number(&self) -> Fact<Option<u64>> {
        self.parsed(|text| text.parse().ok().filter(|_| !may_be_octal(text)))
    }

    /// The text that a function is given as a variable, as [`text`](Self::text); a number with a zero in front is unknown.
    pub(super) fn variable(&self) -> Fact<Option<String>> {
        match self.text() {
            Fact::Known(Some(text)) if may_be_octal(&text) => Fact::Unknown,
            text => text,
        }
    }

    pub(super) fn number_or(&self, default: u64) -> Fact<u64> {
        self.number().map(|number| number.unwrap_or(default))
    }

    pub(super) fn boolean_or(&self, default: bool) -> Fact<bool> {
        let parsed = self.parsed(|text| match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        });
        parsed.map(|value| value.unwrap_or(default))
    }

    /// Whether the text is this; the default counts where there is none.
    pub(super) fn text_is(&self, wanted: &str, default: &str) -> Fact<bool> {
        self.literal().map(|text| text.as_deref().unwrap_or(default) == wanted)
    }

    /// The items of a list; one value counts as a list of it.
    pub(super) fn items(&self) -> Fact<Vec<Part<'s>>> {
        let Fact::Known(node) = &self.node else { return Fact::Unknown };
        let parts = match &node.kind {
            Kind::Null => Vec::new(),
            Kind::List(items) => items.iter().map(|item| Self::new(self.scope, item)).collect(),
            _ => vec![self.clone()],
        };
        Fact::Known(parts.into_iter().filter(|part| part.is_given() != Fact::Known(false)).collect())
    }

    /// Whether there are at least so many items: one that may be `AWS::NoValue` neither counts nor is left out.
    pub(super) fn has_items(&self, least: usize) -> Fact<bool> {
        let Fact::Known(items) = self.items() else { return Fact::Unknown };
        match items.iter().filter(|item| item.is_given() == Fact::Known(true)).count() {
            certain if certain >= least => Fact::Known(true),
            _ if items.len() < least => Fact::Known(false),
            _ => Fact::Unknown,
        }
    }

    /// The entries of a mapping.
    pub(super) fn entries(&self) -> Fact<Vec<(Rc<str>, Part<'s>)>> {
        let Fact::Known(node) = &self.node else { return Fact::Unknown };
        match &node.kind {
            _ if has_unknown_entries(node) => Fact::Unknown,
            Kind::Null | Kind::Map(_) => {
                let entries = node.entries().iter();
                Fact::Known(entries.map(|(key, value)| (Rc::clone(key), Self::new(self.scope, value))).collect())
            }
            _ => Fact::Unknown,
        }
    }

    /// As [`entries`](Self::entries), of which no answer depends on parameters.
    pub(super) fn entries_aside(&self) -> Fact<Vec<(Rc<str>, Part<'s>)>> {
        self.scope.aside(|| self.entries())
    }

    /// The value itself, or what a text of JSON holds.
    pub(super) fn unpacked(self) -> Self {
        let text = match self.node.known().and_then(Node::as_text) {
            Some(text) if text.trim_start().starts_with('{') => text.to_owned(),
            _ => return self,
        };
        let node = if text.contains("${") { None } else { claimant_template::parse(&text).ok() };
        Self { scope: self.scope, node: node.into() }
    }

    /// The value as it stands, for a nested stack's parameter.
    pub(super) fn node(&self) -> Fact<Node> {
        self.node.clone()
    }
}
