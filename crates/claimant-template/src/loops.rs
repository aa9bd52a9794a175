//! `Fn::ForEach`, the loops of CloudFormation's language extensions, written out.

use std::rc::Rc;

use crate::yaml::{Kind, Node, Unreadable};

/// What a loop's key begins with, before its name.
pub const LOOP: &str = "Fn::ForEach::";

/// Values that loops write out, at most: a loop within a loop within a loop is quickly a flood.
const VALUES_MAX: usize = 100_000;

/// The longest item: it is written wherever its variable stands.
const ITEM_MAX_BYTES: usize = 1_024;

/// Returns the template with its loops written out, and why some are not: those stand as they are. `items_of` evaluates a loop's list.
pub fn written_out(root: &Node, items_of: impl Fn(&Node) -> Result<Vec<String>, String>) -> (Node, Vec<Unreadable>) {
    let mut loops = Loops { items_of, values: 0, left: Vec::new() };
    let root = loops.expand(root);
    // One within another is left as often as that one goes round.
    loops.left.dedup();
    (root, loops.left)
}

struct Loops<F> {
    items_of: F,
    values: usize,
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
            if self.values > VALUES_MAX {
                return Err(format!("more than {VALUES_MAX} values would be written out by this template's loops"));
            }
            let body = with(body, variable, item, &mut self.values);
            written_out.extend(self.expand(&body).entries().iter().cloned());
        }
        Ok(written_out)
    }
}

/// The value with this item in place of the loop's variable: `${Name}`, `&{Name}` (the item without what no logical id
/// may have) and `!Ref Name`. Adds the number of its values to `values`.
fn with(node: &Node, variable: &str, item: &str, values: &mut usize) -> Node {
    *values += 1;
    let plain: String = item.chars().filter(char::is_ascii_alphanumeric).collect();
    let replaced = |text: &str| -> Rc<str> {
        text.replace(&format!("${{{variable}}}"), item).replace(&format!("&{{{variable}}}"), &plain).into()
    };
    let kind = match &node.kind {
        Kind::Null => Kind::Null,
        Kind::Text(text) => Kind::Text(replaced(text)),
        Kind::List(items) => Kind::List(items.iter().map(|node| with(node, variable, item, values)).collect()),
        Kind::Map(entries) => {
            Kind::Map(entries.iter().map(|(key, node)| (replaced(key), with(node, variable, item, values))).collect())
        }
        Kind::Call(name, argument) if &**name == "Ref" && argument.as_text() == Some(variable) => {
            Kind::Text(item.into())
        }
        Kind::Call(name, argument) => Kind::Call(Rc::clone(name), Rc::new(with(argument, variable, item, values))),
    };
    Node { line: node.line, kind }
}
