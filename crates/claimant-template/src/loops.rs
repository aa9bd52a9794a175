//! `Fn::ForEach`, the loops of CloudFormation's language extensions, written out.

use std::rc::Rc;

use crate::file::TEXT_BYTES_MAX;
use crate::yaml::{Kind, Node, Unreadable};

/// What a loop's key begins with, before its name.
pub const LOOP: &str = "Fn::ForEach::";

/// Values that loops write out, at most: a loop within a loop within a loop is quickly a flood.
const VALUES_MAX: usize = 100_000;

/// Bytes of texts and keys that loops write out, at most: a text of variables alone grows to hundreds of times its length with each item.
const WRITTEN_BYTES_MAX: usize = 16 * TEXT_BYTES_MAX;

/// The longest item: it is written wherever its variable stands.
const ITEM_MAX_BYTES: usize = 1_024;

/// Returns the template with its loops written out, and why some are not: those stand as they are. `items_of` evaluates a loop's list.
pub fn written_out(root: &Node, items_of: impl Fn(&Node) -> Result<Vec<String>, String>) -> (Node, Vec<Unreadable>) {
    let mut loops = Loops { items_of, written: Written::default(), left: Vec::new() };
    let root = loops.expand(root);
    // One within another is left as often as that one goes round.
    loops.left.sort_unstable();
    loops.left.dedup();
    (root, loops.left)
}

struct Loops<F> {
    items_of: F,
    written: Written,
    left: Vec<Unreadable>,
}

impl<F: Fn(&Node) -> Result<Vec<String>, String>> Loops<F> {
    fn expand(&mut self, node: &Node) -> Node {
        let kind = match &node.kind {
            Kind::Map(entries) => {
                let mut written_out = Vec::new();
                for (key, value) in entries.iter() {
                    if !key.starts_with(LOOP) {
                        written_out.push((Rc::clone(key), self.expand(value)));
                        continue;
                    }
                    match self.entries_of(value) {
                        Ok(entries) => written_out.extend(entries),
                        Err(what) => {
                            self.left.push(Unreadable { line: value.line, what: format!("{key}: {what}") });
                            written_out.push((Rc::clone(key), value.clone()));
                        }
                    }
                }
                Kind::Map(written_out.into())
            }
            Kind::List(items) => Kind::List(items.iter().map(|item| self.expand(item)).collect()),
            Kind::Call(name, argument) => Kind::Call(Rc::clone(name), Rc::new(self.expand(argument))),
            Kind::Null | Kind::Text(_) => node.kind.clone(),
        };
        Node { line: node.line, kind }
    }

    fn entries_of(&mut self, value: &Node) -> Result<Vec<(Rc<str>, Node)>, String> {
        let [variable, items, body] = value.items() else {
            return Err("takes a name, a list and a mapping: write [Name, [a, b], {\"Queue${Name}\": …}]".to_owned());
        };
        let variable = variable.as_text().ok_or("its first item must be a name")?;
        let items = (self.items_of)(items)?;
        if items.iter().any(|item| item.len() > ITEM_MAX_BYTES) {
            return Err(format!("has an item of more than {ITEM_MAX_BYTES} bytes"));
        }
        let mut written_out = Vec::new();
        for item in &items {
            let body = self.written.with(body, &Round::new(variable, item))?;
            written_out.extend(self.expand(&body).entries().iter().cloned());
        }
        Ok(written_out)
    }
}

/// A loop's variable and one of its items.
struct Round<'a> {
    variable: &'a str,
    item: Rc<str>,
    /// What is replaced in texts and keys, and by what: `${Name}`, and `&{Name}` by the item without what no logical id may have.
    replaced: [(String, Rc<str>); 2],
}

impl<'a> Round<'a> {
    fn new(variable: &'a str, item: &str) -> Self {
        let plain: String = item.chars().filter(char::is_ascii_alphanumeric).collect();
        let item: Rc<str> = item.into();
        let replaced = [(format!("${{{variable}}}"), Rc::clone(&item)), (format!("&{{{variable}}}"), plain.into())];
        Self { variable, item, replaced }
    }
}

/// How much all loops have written out.
#[derive(Default)]
struct Written {
    values: usize,
    bytes: usize,
}

impl Written {
    /// Returns the value with this item in place of the loop's variable: in texts and keys, and for `!Ref Name`.
    fn with(&mut self, node: &Node, round: &Round<'_>) -> Result<Node, String> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values would be written out by this template's loops"));
        }
        let kind = match &node.kind {
            Kind::Null => Kind::Null,
            Kind::Text(text) => Kind::Text(self.text(text, round)?),
            Kind::List(items) => Kind::List(items.iter().map(|node| self.with(node, round)).collect::<Result<_, _>>()?),
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(key, node)| Ok((self.text(key, round)?, self.with(node, round)?)));
                Kind::Map(entries.collect::<Result<_, String>>()?)
            }
            Kind::Call(name, argument) if &**name == "Ref" && argument.as_text() == Some(round.variable) => {
                Kind::Text(Rc::clone(&round.item))
            }
            Kind::Call(name, argument) => Kind::Call(Rc::clone(name), Rc::new(self.with(argument, round)?)),
        };
        Ok(Node { line: node.line, kind })
    }

    fn text(&mut self, text: &Rc<str>, round: &Round<'_>) -> Result<Rc<str>, String> {
        let mut text = Rc::clone(text);
        for (name, item) in &round.replaced {
            let times = text.matches(name).count();
            // Before the text is there: one alone may be more than any memory.
            let bytes = text.len() - times * name.len() + times * item.len();
            if self.bytes + bytes > WRITTEN_BYTES_MAX {
                return Err(format!(
                    "more than {WRITTEN_BYTES_MAX} bytes would be written out by this template's loops"
                ));
            }
            if times > 0 {
                text = text.replace(name, item).into();
            }
        }
        // Also of a text that stays as it is, and is shared: it was looked through.
        self.bytes += text.len();
        Ok(text)
    }
}
