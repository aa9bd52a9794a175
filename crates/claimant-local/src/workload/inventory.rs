//! Order lines for `inventory`: some of an article that is sold out.

use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tracing::subscriber::{NoSubscriber, with_default};

use super::plan::{COUNT_MAX, Fate, Piece, Plan, Random, Repeat, Request};
use super::records::Records;
use super::sample::{Effect, Look, Prepare, Sample, Seen, variable_of};
use crate::Error;
use crate::cloud::Services;
use crate::stack::FunctionSpec;

/// How many articles the lines are shared out to.
const ARTICLES: u64 = 6;
/// One line in this many wants the article that is sold out.
const LINES_PER_REFUSED: u32 = 20;
const QUANTITY_MAX: u32 = 5;
/// Pieces of each article at the start: enough for a run of any size.
const STOCK: i64 = (COUNT_MAX * QUANTITY_MAX) as i64;
/// What the article that is sold out has for its number.
const SOLD_OUT: &str = "none";

/// The variable that names where a function keeps them.
const KEPT_IN: &str = "CLAIMANT_DATABASE_URL";

/// The sample for `inventory`.
pub(super) struct Inventory;

impl Sample for Inventory {
    fn function(&self) -> &'static str {
        "inventory"
    }

    fn effects(&self) -> &'static str {
        "reservations"
    }

    fn kept_in(&self) -> &'static [&'static str] {
        &[KEPT_IN]
    }

    fn all_well(&self, _: &FunctionSpec) -> &'static str {
        "Every order line was reserved exactly once, and of each article free and reserved stock are what there was."
    }

    /// Puts the articles of this run into stock.
    fn prepare<'a>(&'a self, request: Request, function: &'a FunctionSpec) -> Prepare<'a> {
        Box::pin(async move {
            let numbers = (0..ARTICLES).map(|n| n.to_string()).chain([SOLD_OUT.to_owned()]);
            let (skus, stock): (Vec<_>, Vec<_>) =
                numbers.map(|n| sku(request.first, &n)).map(|s| (s.clone(), stock_of(&s))).unzip();
            let mut database = connect(function).await?;
            // A run that was stopped before its first line left them behind.
            let stocked = sqlx::query(
                "INSERT INTO stock (sku, free) SELECT * FROM unnest($1::text[], $2::bigint[]) \
                 ON CONFLICT (sku) DO UPDATE SET free = excluded.free",
            );
            stocked.bind(skus).bind(stock).execute(&mut database).await.map_err(unusable)?;
            Ok(())
        })
    }

    fn plan(&self, request: Request, _: &FunctionSpec) -> Plan {
        request.plan(|i, number, random| line(i, number, request.first, random), &[other_fields, no_number])
    }

    /// Its records are in its database.
    fn records(&self, _: &Services, _: &FunctionSpec) -> Result<Option<Records>, Error> {
        Ok(None)
    }

    /// Every reservation of a run's articles; and what is wrong with an article whose free and reserved stock are not what
    /// there was.
    fn look<'a>(&'a self, _: &'a Services, function: &'a FunctionSpec) -> Look<'a> {
        Box::pin(async move {
            let mut database = connect(function).await?;
            let reserved: Vec<(String, i64, String)> =
                sqlx::query_as("SELECT reservation_id, quantity, sku FROM reservations WHERE sku LIKE 'workload-%'")
                    .fetch_all(&mut database)
                    .await
                    .map_err(unusable)?;
            let there: Vec<(String, i64)> = sqlx::query_as(
                "SELECT sku, (free + coalesce(sum(quantity), 0))::bigint FROM stock LEFT JOIN reservations USING (sku) \
                 WHERE sku LIKE 'workload-%' GROUP BY sku, free",
            )
            .fetch_all(&mut database)
            .await
            .map_err(unusable)?;
            let records = Records::in_postgres(&mut database, self.function()).await.map_err(unusable)?;
            let tries = reserved.len() as u64;
            let reserved = reserved.into_iter().map(|(key, quantity, sku)| Effect { key, what: what(quantity, &sku) });
            let off = there.into_iter().filter(|(sku, pieces)| *pieces != stock_of(sku)).map(|(sku, pieces)| {
                let key = format!("{sku} (free and reserved are {pieces}, not {})", stock_of(&sku));
                Effect { key, what: String::new() }
            });
            Ok(Seen { effects: reserved.chain(off).collect(), tries, records })
        })
    }
}

async fn connect(function: &FunctionSpec) -> Result<PgConnection, Error> {
    let options = options(variable_of(function, KEPT_IN)?)?;
    PgConnection::connect_with(&options).await.map_err(unusable)
}

fn options(url: &str) -> Result<PgConnectOptions, Error> {
    // The driver logs the value of a parameter that it does not know, and quotes one that it cannot use. The function says what is wrong.
    let options = with_default(NoSubscriber::default(), || url.parse::<PgConnectOptions>());
    let options = options.map_err(|_| Error::new(UNUSABLE))?;
    // A pooler refuses the parameter by which the driver asks for all digits of floats.
    Ok(options.disable_statement_logging().extra_float_digits(None))
}

const UNUSABLE: &str = "the database of inventory's sample workload cannot be used: is its URL right, is the server up, and did \
                        `inventory migrate` make the tables?";

fn unusable(error: sqlx::Error) -> Error {
    Error::new(UNUSABLE).caused_by(error)
}

/// An article of the run whose first line has this number, which tells it from those of the next run on the same data.
fn sku(first: u64, number: &str) -> String {
    format!("workload-{first}-{number}")
}

/// How much there is of an article at the start.
fn stock_of(sku: &str) -> i64 {
    if sku.ends_with(SOLD_OUT) { 0 } else { STOCK }
}

fn what(quantity: i64, sku: &str) -> String {
    format!("{quantity} of {sku}")
}

fn line(i: u32, number: u64, first: u64, random: &mut Random) -> (Piece, Repeat) {
    let (fate, article) = match i % LINES_PER_REFUSED {
        7 => (Fate::Refused, SOLD_OUT.to_owned()),
        _ => (Fate::Done, (number % ARTICLES).to_string()),
    };
    let (key, sku, quantity) = (format!("line-{number}"), sku(first, &article), 1 + random.below(QUANTITY_MAX));
    let body = json!({ "reservation_id": key, "sku": sku, "quantity": quantity }).to_string();
    let effect = what(i64::from(quantity), &sku);
    (Piece { group: key.clone(), key, body, effect, fate, copies: 1 }, Repeat::Usual)
}

fn other_fields(number: u64) -> String {
    json!({ "order_id": format!("line-{number}"), "lines": [{ "sku": "tea", "quantity": 1 }] }).to_string()
}

fn no_number(number: u64) -> String {
    json!({ "reservation_id": format!("line-{number}"), "sku": "tea", "quantity": "many" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the function's own connections do: one that PgBouncer takes, it takes from both.
    #[test]
    fn the_connection_asks_for_no_digits_of_floats() {
        let options = format!("{:?}", options("postgres://u:p@localhost/d").unwrap());
        assert!(options.contains("extra_float_digits: None"), "{options}");
    }

    #[test]
    fn lines_are_refused_exactly_where_their_article_is_sold_out() {
        let request = Request::after(std::iter::empty(), 60, 7);
        let plan = request.plan(|i, number, random| line(i, number, request.first, random), &[]);
        let sold_out = |piece: &&Piece| stock_of(piece.effect.rsplit(' ').next().unwrap()) == 0;
        assert!(plan.pieces.iter().all(|piece| sold_out(&piece) == (piece.fate == Fate::Refused)));
        assert_eq!(plan.pieces.iter().filter(sold_out).count(), 3);
    }
}
