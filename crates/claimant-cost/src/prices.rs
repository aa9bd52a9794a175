//! The table of prices, and one's own.

use std::collections::BTreeMap;
use std::rc::Rc;

use claimant_template::{Kind, Node};

/// The table that comes with this crate.
const LIST: &str = include_str!("prices.yaml");

/// What one of something costs, and how much of it is free.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// For so many of its unit.
    pub usd: f64,
    /// So many.
    pub per: f64,
    /// Such as `requests`.
    pub unit: String,
    /// Where the figure is from.
    pub source: String,
    /// How many an account has for nothing in a month.
    pub free: f64,
}

/// A table of prices.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// When they were looked up, such as `2026-11`.
    pub date: String,
    /// The Region that they are of.
    pub region: String,
    /// Whether some are one's own.
    pub are_own: bool,
    by_name: BTreeMap<String, Price>,
}

impl Prices {
    /// Returns the list prices that come with this crate.
    pub fn list() -> Self {
        let none = Self { date: String::new(), region: String::new(), are_own: false, by_name: BTreeMap::new() };
        // Whether it can be read is tested; without it nothing costs anything.
        none.clone().read(LIST, true).unwrap_or(none)
    }

    /// Returns these prices with those of a text in their place: YAML as in `prices.yaml`, of which any part may be left out.
    ///
    /// # Errors
    /// The text cannot be read, is no table of prices, has a name that is not known, or a figure that is no number from 0 on.
    pub fn with(self, text: &str) -> Result<Self, String> {
        self.read(text, false)
    }

    fn read(mut self, text: &str, is_list: bool) -> Result<Self, String> {
        let root = claimant_template::parse(text).map_err(|e| format!("line {}: {}", e.line, e.what))?;
        known("a table of prices", &root, &["date", "region", "prices", "free"])?;
        self.date = word(&root, "date")?.unwrap_or(self.date);
        self.region = word(&root, "region")?.unwrap_or(self.region);
        let (prices, free) = (entries("prices", root.get("prices"))?, entries("free", root.get("free"))?);
        self.are_own = !(is_list || prices.is_empty() && free.is_empty());
        let mut given = BTreeMap::new();
        for (name, node) in prices {
            let line = node.line;
            known(name, node, &["usd", "per", "unit", "source", "free"])?;
            let before = self.by_name.get(&**name).cloned();
            let Some(mut price) = before.or_else(|| is_list.then(Price::nothing)) else {
                let names: Vec<_> = self.by_name.keys().map(String::as_str).collect();
                return Err(format!("line {line}: there is no price of the name {name}: {}", names.join(", ")));
            };
            price.usd = number(node, "usd")?.ok_or_else(|| format!("line {line}: {name} needs usd"))?;
            price.per = number(node, "per")?.unwrap_or(price.per);
            if price.per == 0.0 {
                return Err(format!("line {line}: {name} needs a number above 0 as its per"));
            }
            price.unit = word(node, "unit")?.unwrap_or(price.unit);
            price.source =
                word(node, "source")?.unwrap_or_else(|| if is_list { String::new() } else { "your own".to_owned() });
            self.by_name.insert(name.to_string(), price);
            if let Some(free) = number(node, "free")? {
                self.set_free(&mut given, name, free, line)?;
            }
        }
        for (name, node) in free {
            let free = amount(node)?;
            if !self.by_name.contains_key(&**name) {
                return Err(format!("line {}: there is no price of the name {name}", node.line));
            }
            self.set_free(&mut given, name, free, node.line)?;
        }
        Ok(self)
    }

    /// Refuses a second figure for what one text gave already.
    fn set_free<'n>(
        &mut self,
        given: &mut BTreeMap<&'n str, f64>,
        name: &'n str,
        free: f64,
        line: usize,
    ) -> Result<(), String> {
        let before = given.insert(allowance(name), free);
        if before.is_some_and(|before| before.total_cmp(&free).is_ne()) {
            let shared = "both kinds of queues share one, and both architectures";
            return Err(format!("line {line}: {name} has a second free amount that differs: {shared}; give one"));
        }
        for name in [name, allowance(name)] {
            if let Some(price) = self.by_name.get_mut(name) {
                price.free = free;
            }
        }
        Ok(())
    }

    /// Returns a price by its name, one of nothing if there is none.
    pub fn of(&self, name: &str) -> Price {
        self.by_name.get(name).cloned().unwrap_or_else(Price::nothing)
    }

    /// Returns all prices by their names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.by_name.iter().map(|(name, price)| (name.as_str(), price))
    }
}

/// Returns the price that has the allowance of this one: both kinds of queues have one, and both architectures.
pub(crate) fn allowance(name: &str) -> &str {
    match name {
        "sqs_fifo" => "sqs_standard",
        "lambda_arm64" => "lambda_x86",
        name => name,
    }
}

impl Price {
    fn nothing() -> Self {
        Self { usd: 0.0, per: 1.0, unit: String::new(), source: String::new(), free: 0.0 }
    }

    /// Returns what so many cost.
    pub fn of(&self, quantity: f64) -> f64 {
        quantity * self.usd / self.per
    }
}

/// The entries of a mapping; of nothing, none.
fn entries<'n>(what: &str, node: Option<&'n Node>) -> Result<&'n [(Rc<str>, Node)], String> {
    match node {
        Some(node) if node.kind != Kind::Null && !node.is_map() => {
            Err(format!("line {}: {what} is not `name: value` by lines or in braces", node.line))
        }
        node => Ok(node.map_or(&[], Node::entries)),
    }
}

/// Refuses entries of other names than these.
fn known(what: &str, node: &Node, names: &[&str]) -> Result<(), String> {
    match entries(what, Some(node))?.iter().find(|(key, _)| !names.contains(&&**key)) {
        Some((wrong, node)) => Err(format!("line {}: there is no {wrong} in {what}: {}", node.line, names.join(", "))),
        None => Ok(()),
    }
}

fn word(node: &Node, key: &str) -> Result<Option<String>, String> {
    let Some(node) = node.get(key).filter(|node| node.kind != Kind::Null) else { return Ok(None) };
    let text = node.as_text().map(str::to_owned);
    text.map(Some).ok_or_else(|| format!("line {}: {key} is no text", node.line))
}

fn number(node: &Node, key: &str) -> Result<Option<f64>, String> {
    node.get(key).map(amount).transpose()
}

fn amount(node: &Node) -> Result<f64, String> {
    let parsed = node.as_text().and_then(|text| text.parse::<f64>().ok());
    let found = parsed.filter(|number| number.is_finite() && *number >= 0.0);
    found.ok_or_else(|| format!("line {}: write a number from 0 on", node.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_its_date_and_a_source_for_each_figure() {
        let list = Prices::list();
        assert_eq!((list.date.as_str(), list.region.as_str(), list.all().count()), ("2026-11", "us-east-1", 15));
        assert!(list.all().all(|(_, price)| price.usd > 0.0 && price.source.starts_with("https://aws.amazon.com/")));
        assert!((list.of("dynamodb_write").of(2_000_000.0) - 1.25).abs() < 1e-9);
    }

    #[test]
    fn own_prices_replace_some() {
        let own =
            Prices::list().with("region: eu-west-1\nprices: {sqs_standard: {usd: 0.44}}\nfree: {logs: 0}").unwrap();
        assert_eq!(
            (own.region.as_str(), own.of("sqs_standard").usd, own.of("sqs_standard").per),
            ("eu-west-1", 0.44, 1e6)
        );
        assert_eq!((own.of("sqs_fifo").usd, own.of("logs").free, own.of("alarms").free), (0.5, 0.0, 10.0));
        assert!(own.are_own && !Prices::list().are_own && !Prices::list().with("region: eu-west-1").unwrap().are_own);
        let own = Prices::list().with("prices: {logs: {usd: 0.5, per: 1, free: 0}}").unwrap();
        assert_eq!((own.of("logs").free, own.of("metrics").free), (0.0, 10.0), "as the command prints them");
        for (wrong, says) in [
            ("prices: {sqs: {usd: 1}}", "no price of the name sqs"),
            ("prices: {logs: {usd: -1}}", "a number from 0 on"),
            ("prices: {logs: {per: 1}}", "logs needs usd"),
            ("prices: {logs: {usd: 1, per: 0}}", "a number above 0"),
            ("price: {}", "there is no price in a table"),
            ("- {sqs_standard: {usd: 9}}", "line 1: a table of prices is not"),
            ("prices:\n- logs", "line 1: prices is not"),
            ("prices: {logs: 9}", "logs is not"),
            (
                "prices: {sqs_standard: {usd: 0.4, free: 9}, sqs_fifo: {usd: 0.5, free: 7}}",
                "sqs_fifo has a second free amount",
            ),
            ("prices: {logs: {usd: 1, free: 9}}\nfree: {logs: 7}", "line 2: logs has a second free amount"),
            ("free: 5", "free is not"),
            ("prices: {sqs_standard: {usd: 0.0000004, pre: 1}}", "there is no pre in sqs_standard: usd, per"),
            ("date: [x]", "date is no text"),
            ("{", "line"),
        ] {
            let error = Prices::list().with(wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
