//! The table of prices, and one's own.

use std::collections::BTreeMap;

use claimant_template::Node;

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
    by_name: BTreeMap<String, Price>,
}

impl Prices {
    /// Returns the list prices that come with this crate.
    pub fn list() -> Self {
        let none = Self { date: String::new(), region: String::new(), by_name: BTreeMap::new() };
        // Whether it can be read is tested; without it nothing costs anything.
        none.clone().read(LIST, true).unwrap_or(none)
    }

    /// Returns these prices with those of a text in their place: YAML as in `prices.yaml`, of which any part may be left out.
    ///
    /// # Errors
    /// The text cannot be read, a price has a name that is not known, or a figure is no number from 0 on.
    pub fn with(self, text: &str) -> Result<Self, String> {
        self.read(text, false)
    }

    fn read(mut self, text: &str, is_list: bool) -> Result<Self, String> {
        let root = claimant_template::parse(text).map_err(|e| format!("line {}: {}", e.line, e.what))?;
        let word = |key: &str| root.get(key).and_then(Node::as_text).map(str::to_owned);
        if let Some((wrong, _)) =
            root.entries().iter().find(|(key, _)| !["date", "region", "prices", "free"].contains(&&**key))
        {
            return Err(format!("there is no {wrong} in a table of prices: date, region, prices, free"));
        }
        self.date = word("date").unwrap_or(self.date);
        self.region = word("region").unwrap_or(self.region);
        for (name, node) in root.get("prices").map_or(&[][..], Node::entries) {
            let line = node.line;
            let known = self.by_name.get(&**name).cloned();
            let Some(mut price) = known.or_else(|| is_list.then(Price::nothing)) else {
                let names: Vec<_> = self.by_name.keys().map(String::as_str).collect();
                return Err(format!("line {line}: there is no price of the name {name}: {}", names.join(", ")));
            };
            price.usd = number(node, "usd")?.ok_or_else(|| format!("line {line}: {name} needs usd"))?;
            price.per = number(node, "per")?.unwrap_or(price.per);
            if price.per == 0.0 {
                return Err(format!("line {line}: {name} needs a number above 0 as its per"));
            }
            let text = |key: &str| node.get(key).and_then(Node::as_text).map(str::to_owned);
            price.unit = text("unit").unwrap_or(price.unit);
            price.source =
                text("source").unwrap_or_else(|| if is_list { String::new() } else { "your own".to_owned() });
            self.by_name.insert(name.to_string(), price);
        }
        for (name, node) in root.get("free").map_or(&[][..], Node::entries) {
            let free = amount(node)?;
            if !self.by_name.contains_key(&**name) {
                return Err(format!("line {}: there is no price of the name {name}", node.line));
            }
            for name in [name, allowance(name)] {
                if let Some(price) = self.by_name.get_mut(name) {
                    price.free = free;
                }
            }
        }
        Ok(self)
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
        for (wrong, says) in [
            ("prices: {sqs: {usd: 1}}", "no price of the name sqs"),
            ("prices: {logs: {usd: -1}}", "a number from 0 on"),
            ("prices: {logs: {per: 1}}", "logs needs usd"),
            ("prices: {logs: {usd: 1, per: 0}}", "a number above 0"),
            ("price: {}", "there is no price in a table"),
            ("{", "line"),
        ] {
            let error = Prices::list().with(wrong).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
