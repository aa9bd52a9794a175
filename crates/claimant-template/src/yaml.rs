//! YAML and JSON as a tree whose values know their line.
//!
//! Scalars stay as they are written, since CloudFormation makes text of them all: an account `012345678901` keeps its
//! zero, but for the words that `dialect` knows. CloudFormation's functions have the same form whether they are written short (`!Ref X`) or long (`Ref: X`).
//! What AWS takes though YAML 1.2 does not is read, too: see [`DASH`]; within brackets and quotes, lines may be indented less.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Tag, options};

use crate::dialect;

/// Collections within collections at most, those that an alias stands for included.
const DEPTH_MAX: usize = 100;

/// Values at most, those that an alias stands for counted each time: without this, ten lines of aliases of aliases are more
/// than any memory. A template of the greatest length without aliases has fewer.
const VALUES_MAX: usize = 600_000;

/// A value and the line on which it, or its key, starts. Clones share what is below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Counted from 1.
    pub line: usize,
    /// What stands there.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: empty, `~` or `null`.
    Null,
    /// A single value, as it is written.
    Text(Rc<str>),
    /// A list.
    List(Rc<[Node]>),
    /// A mapping; no key is there twice.
    Map(Rc<[(Rc<str>, Node)]>),
    /// A function's name, without `!` or `Fn::`, and its argument.
    Call(Rc<str>, Rc<Node>),
}

/// What cannot be read, or cannot be written out, and why.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

impl Node {
    /// Returns a single value.
    pub fn text(line: usize, text: impl Into<Rc<str>>) -> Self {
        Self { line, kind: Kind::Text(text.into()) }
    }

    /// Returns a list.
    pub fn list(line: usize, items: Vec<Self>) -> Self {
        Self { line, kind: Kind::List(items.into()) }
    }

    /// Returns the same value on another line.
    #[must_use]
    pub fn at(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// Returns the value under `key`, if this is a mapping that has one.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| &**name == key).map(|(_, value)| value)
    }

    /// Returns the entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[(Rc<str>, Self)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// Returns a single value's text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether this is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(_))
    }
}

/// Reads the first document of a text; empty text is null.
///
/// # Errors
/// When the text is no YAML, a key is no text or is there twice, or there are more values or levels than any template has.
pub fn parse(text: &str) -> Result<Node, Unreadable> {
    let text = dialect::with_dashes_as_texts(text);
    let mut tree = Tree::default();
    // Its default has changed with its versions.
    let options = options! { strict_indentation: false };
    for event in Parser::new_from_str_with_options(&text, options) {
        let (event, span) = event
            .map_err(|e| commented(&text).unwrap_or_else(|| Unreadable { line: e.marker().line(), what: e.info() }))?;
        let line = span.start.line();
        match event {
            Event::DocumentEnd => break,
            event => tree.take(event, line).map_err(|what| Unreadable { line, what })?,
        }
    }
    Ok(tree.root.unwrap_or(Node { line: 1, kind: Kind::Null }))
}

/// The comment in front of what would be JSON, which YAML takes for a text: that what comes next makes no sense is said of the lines below it.
fn commented(text: &str) -> Option<Unreadable> {
    let start = text.trim_start();
    let line = 1 + text.get(..text.len() - start.len())?.matches('\n').count();
    let is_comment = start.starts_with("//") || start.starts_with("/*");
    is_comment.then(|| Unreadable { line, what: "JSON has no comments: remove this one".to_owned() })
}

/// What is being read: the collections that are open, from the outermost.
#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, Extent)>,
    root: Option<Node>,
}

/// How much a value is.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    values: usize,
    depth: usize,
}

struct Open {
    line: usize,
    anchor: usize,
    function: Option<Rc<str>>,
    content: Content,
    extent: Extent,
}

enum Content {
    List(Vec<Node>),
    Map(Entries, Option<(Rc<str>, usize)>),
}

/// The entries of a mapping that is open, and where each key is among them.
#[derive(Default)]
struct Entries {
    entries: Vec<(Rc<str>, Node)>,
    indexes: HashMap<Rc<str>, usize>,
}

impl Entries {
    /// Returns the value under `key`, if there is one.
    fn known(&mut self, key: &str) -> Option<&mut Node> {
        self.indexes.get(key).map(|index| &mut self.entries[*index].1)
    }

    fn add(&mut self, key: Rc<str>, value: Node) {
        self.indexes.insert(Rc::clone(&key), self.entries.len());
        self.entries.push((key, value));
    }
}

impl Tree {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar(text, style, tag.as_deref(), line);
                let extent = Extent { values: 1, depth: 0 };
                self.keep(anchor, &node, extent);
                self.put(node, extent)
            }
            Event::Alias(anchor) => {
                let (node, extent) = self.anchors.get(&anchor).ok_or("an alias of something that is still open")?;
                let (node, extent) = (node.clone().at(line), *extent);
                self.put(node, extent)
            }
            Event::SequenceStart(_, anchor, tag) => self.open(line, anchor, tag.as_deref(), Content::List(Vec::new())),
            Event::MappingStart(_, anchor, tag) => {
                self.open(line, anchor, tag.as_deref(), Content::Map(Entries::default(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => Ok(()),
        }
    }

    fn open(&mut self, line: usize, anchor: usize, tag: Option<&Tag>, content: Content) -> Result<(), String> {
        if self.open.len() == DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} collections within each other"));
        }
        let extent = Extent { values: 1, depth: 1 };
        self.open.push(Open { line, anchor, function: tag.and_then(function), content, extent });
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(Open { line, anchor, function, content, extent }) = self.open.pop() else { return Ok(()) };
        let node = match content {
            Content::List(items) => Node::list(line, items),
            Content::Map(entries, _) => map(line, entries.entries),
        };
        let node = called(function, node);
        self.keep(anchor, &node, extent);
        self.put(node, extent)
    }

    /// Anchors count from 1; 0 is none.
    fn keep(&mut self, anchor: usize, node: &Node, extent: Extent) {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), extent));
        }
    }

    fn put(&mut self, node: Node, extent: Extent) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.extent.values += extent.values;
        open.extent.depth = open.extent.depth.max(extent.depth + 1);
        if open.extent.values > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values, with those that aliases stand for"));
        }
        if open.extent.depth > DEPTH_MAX {
            return Err(format!(
                "more than {DEPTH_MAX} collections within each other, with those that aliases stand for"
            ));
        }
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(entries, key) => match key.take() {
                Some((name, _)) if &*name == "<<" => {
                    let merged: Vec<_> =
                        node.entries().iter().chain(node.items().iter().flat_map(Node::entries)).cloned().collect();
                    for (name, value) in merged {
                        if entries.known(&name).is_none() {
                            entries.add(name, value);
                        }
                    }
                }
                Some((name, line)) => match entries.known(&name) {
                    // What was merged in is from further up.
                    Some(merged) if merged.line < open.line => *merged = node.at(line),
                    Some(_) => return Err(format!("the key `{}` is there twice: remove one", name.escape_debug())),
                    None => entries.add(name, node.at(line)),
                },
                None => {
                    let line = node.line;
                    let Kind::Text(name) = node.kind else {
                        return Err("a key that is no text: put one such as Null in quotes".to_owned());
                    };
                    *key = Some((name, line));
                }
            },
        }
        Ok(())
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Node {
    let is_plain = style == ScalarStyle::Plain && tag.is_none();
    let kind = match &*text {
        "" | "~" | "null" | "Null" | "NULL" if is_plain => Kind::Null,
        word => match dialect::boolean(word).filter(|_| is_plain) {
            Some(boolean) => Kind::Text(boolean.into()),
            None => Kind::Text(dialect::written(text)),
        },
    };
    called(tag.and_then(function), Node { line, kind })
}

/// The function that a tag names; YAML's own tags, such as `!!str`, name none.
fn function(tag: &Tag) -> Option<Rc<str>> {
    (tag.handle() == "!" && !tag.suffix().is_empty()).then(|| tag.suffix().into())
}

fn called(function: Option<Rc<str>>, argument: Node) -> Node {
    match function {
        Some(name) => Node { line: argument.line, kind: Kind::Call(name, Rc::new(argument)) },
        None => argument,
    }
}

/// A mapping, or the call that it is the long form of. `Fn::ForEach::Name` is none: it stands beside other keys.
fn map(line: usize, entries: Vec<(Rc<str>, Node)>) -> Node {
    if let [(key, argument)] = entries.as_slice() {
        let name = if &**key == "Ref" { Some("Ref") } else { key.strip_prefix("Fn::") };
        if let Some(name) = name.filter(|name| !name.contains("::")) {
            return called(Some(name.into()), argument.clone());
        }
    }
    Node { line, kind: Kind::Map(entries.into()) }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
