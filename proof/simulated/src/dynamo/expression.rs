//! DynamoDB's condition and update expressions, as far as claimant uses them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

/// An item, or the placeholders of an expression: attribute values in DynamoDB's own JSON.
pub(super) type Item = BTreeMap<String, Value>;

/// What placeholders stand for.
pub(super) struct Placeholders<'a> {
    pub(super) names: &'a Value,
    pub(super) values: &'a Value,
}

/// An expression that is none of those known here: the emulator has to learn it.
#[derive(Debug)]
pub(super) struct Unknown(pub(super) String);

/// Whether the condition holds for this item; an item that is not there has no attributes.
pub(super) fn holds(condition: &str, item: &Item, placeholders: &Placeholders<'_>) -> Result<bool, Unknown> {
    let mut reader = Reader::new(condition, item, placeholders);
    let holds = reader.any()?;
    reader.end()?;
    Ok(holds)
}

/// The item after the update, if the item has every attribute that is set from.
pub(super) fn updated(expression: &str, item: &Item, placeholders: &Placeholders<'_>) -> Result<Option<Item>, Unknown> {
    let mut reader = Reader::new(expression, item, placeholders);
    let mut next = item.clone();
    while let Some(word) = reader.next() {
        match word.as_str() {
            "SET" => loop {
                let name = reader.name()?;
                reader.expect("=")?;
                let Some(value) = reader.sum()? else { return Ok(None) };
                next.insert(name, value);
                if !reader.take(",") {
                    break;
                }
            },
            "REMOVE" => loop {
                next.remove(&reader.name()?);
                if !reader.take(",") {
                    break;
                }
            },
            _ => return Err(reader.unknown()),
        }
    }
    Ok(Some(next))
}

struct Reader<'a> {
    text: &'a str,
    words: Vec<String>,
    at: usize,
    item: &'a Item,
    placeholders: &'a Placeholders<'a>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, item: &'a Item, placeholders: &'a Placeholders<'a>) -> Self {
        Self { text, words: words(text), at: 0, item, placeholders }
    }

    fn unknown(&self) -> Unknown {
        Unknown(format!("word {} of {:?}", self.at, self.text))
    }

    fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned()?;
        self.at += 1;
        Some(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.peek() == word;
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, word: &str) -> Result<(), Unknown> {
        if self.take(word) { Ok(()) } else { Err(self.unknown()) }
    }

    fn end(&self) -> Result<(), Unknown> {
        if self.at == self.words.len() { Ok(()) } else { Err(self.unknown()) }
    }

    fn any(&mut self) -> Result<bool, Unknown> {
        let mut holds = self.all()?;
        while self.take("OR") {
            holds |= self.all()?;
        }
        Ok(holds)
    }

    fn all(&mut self) -> Result<bool, Unknown> {
        let mut holds = self.primary()?;
        while self.take("AND") {
            holds &= self.primary()?;
        }
        Ok(holds)
    }

    fn primary(&mut self) -> Result<bool, Unknown> {
        if self.take("(") {
            let holds = self.any()?;
            self.expect(")")?;
            return Ok(holds);
        }
        if self.take("attribute_not_exists") {
            self.expect("(")?;
            let name = self.name()?;
            self.expect(")")?;
            return Ok(!self.item.contains_key(&name));
        }
        let left = self.operand()?;
        let comparison = self.next().ok_or_else(|| self.unknown())?;
        let right = self.operand()?;
        let (Some(left), Some(right)) = (left, right) else { return Ok(comparison == "<>") };
        let order = compare(&left, &right);
        match comparison.as_str() {
            "=" => Ok(left == right),
            "<>" => Ok(left != right),
            "<" => Ok(order == Some(Ordering::Less)),
            ">=" => Ok(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
            _ => Err(self.unknown()),
        }
    }

    /// An attribute's name.
    fn name(&mut self) -> Result<String, Unknown> {
        let word = self.next().ok_or_else(|| self.unknown())?;
        self.placeholders.names[&word].as_str().map(str::to_owned).ok_or_else(|| self.unknown())
    }

    /// A value: an attribute's, which need not be there, or a given one.
    fn operand(&mut self) -> Result<Option<Value>, Unknown> {
        if self.take("if_not_exists") {
            self.expect("(")?;
            let name = self.name()?;
            self.expect(",")?;
            let otherwise = self.operand()?;
            self.expect(")")?;
            return Ok(self.item.get(&name).cloned().or(otherwise));
        }
        if self.peek().starts_with(':') {
            let word = self.next().unwrap_or_default();
            return self.placeholders.values.get(&word).cloned().map(Some).ok_or_else(|| self.unknown());
        }
        let name = self.name()?;
        Ok(self.item.get(&name).cloned())
    }

    /// A value to be set, if all that it comes of is there.
    fn sum(&mut self) -> Result<Option<Value>, Unknown> {
        let Some(left) = self.operand()? else { return Ok(None) };
        let sign = if self.take("+") {
            1
        } else if self.take("-") {
            -1
        } else {
            return Ok(Some(left));
        };
        let Some(right) = self.operand()? else { return Ok(None) };
        let sum = number(&left).zip(number(&right)).map(|(left, right)| left + sign * right);
        sum.map(|sum| Some(json!({ "N": sum.to_string() }))).ok_or_else(|| self.unknown())
    }
}

fn number(value: &Value) -> Option<i128> {
    value["N"].as_str()?.parse().ok()
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    Some(number(left)?.cmp(&number(right)?))
}

fn words(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | ':');
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        let joins = match words.last() {
            Some(last) if is_part(c) => open && last.ends_with(is_part),
            // `<>` and `>=` are one word each.
            Some(last) => open && matches!((last.as_str(), c), ("<", '>' | '=') | (">", '=')),
            None => false,
        };
        match words.last_mut() {
            Some(last) if joins => last.push(c),
            _ if !c.is_whitespace() => words.push(c.to_string()),
            _ => {}
        }
        open = !c.is_whitespace();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_updates_are_read_as_dynamodb_reads_them() {
        let names = json!({ "#a": "a", "#b": "b", "#none": "none" });
        let values = json!({ ":one": { "N": "1" }, ":ten": { "N": "10" }, ":x": { "S": "x" } });
        let placeholders = Placeholders { names: &names, values: &values };
        let item = Item::from([("a".to_owned(), json!({ "N": "2" })), ("b".to_owned(), json!({ "S": "x" }))]);
        for (condition, wanted) in [
            ("#a < :ten", true),
            ("#a >= :ten", false),
            ("#a >= :ten OR #b = :x AND #a < :ten", true),
            ("(#a >= :ten OR #b = :x) AND #a >= :ten", false),
            ("attribute_not_exists(#a) OR #b <> :x", false),
            ("attribute_not_exists(#none)", true),
            ("#none = :x", false),
            ("#none <> :x", true),
        ] {
            assert_eq!(holds(condition, &item, &placeholders).unwrap(), wanted, "{condition}");
        }
        let update = "SET #a = #a + :one, #none = if_not_exists(#none, :ten) - :one REMOVE #b";
        let next = updated(update, &item, &placeholders).unwrap().unwrap();
        assert_eq!(next, Item::from([("a".to_owned(), json!({ "N": "3" })), ("none".to_owned(), json!({ "N": "9" }))]));
        assert!(holds("size(#a) < :one", &item, &placeholders).is_err());
    }
}
