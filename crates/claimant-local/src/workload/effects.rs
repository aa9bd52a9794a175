//! What the functions have done to the world, and how often each thing was done.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::orders::mails;
use super::payments::charges;
use super::run::SAMPLES;
use super::sample::{Effect, Sample, Seen};
use crate::Error;
use crate::cloud::{Cloud, Services};
use crate::stack::FunctionSpec;

/// Repeated effects, and the latest ones, that are listed of each kind; the others are only counted.
const LISTED_MAX: usize = 100;

/// Effects of one key that are listed.
const TIMES_LISTED_MAX: usize = 10;

/// The most bytes of what an effect is that are listed.
const WHAT_MAX: usize = 200;

/// Effects of which one key may have only one, or only one of each thing: what the mailbox and the gateway are asked by any function.
const MAILS: &str = "mails";
const CHARGES: &str = "charges";

/// From now on the control endpoint of this cloud says what its functions have done: every mail and charge, and what is in the tables
/// of the sample functions that run.
pub fn show_effects(cloud: &Cloud) {
    let services = cloud.services().clone();
    let functions = cloud.stack().functions.iter().filter(|function| cloud.function(&function.name).is_some());
    let functions: Vec<FunctionSpec> = functions.cloned().collect();
    cloud.control().set_effects(move || {
        let (services, functions) = (services.clone(), functions.clone());
        Box::pin(async move { effects(&services, &functions).await })
    });
}

/// Returns every kind of effect.
async fn effects(services: &Services, functions: &[FunctionSpec]) -> Value {
    // Which of its functions has sent a mail, the mailbox does not know.
    let of = |sample: &dyn Sample| functions.iter().filter(|function| function.binary == sample.function()).collect();
    let of_all = |effects: &str| -> Vec<_> {
        let samples = SAMPLES.iter().filter(|sample| sample.effects() == effects);
        samples.flat_map(|sample| -> Vec<_> { of(*sample) }).collect()
    };
    let mails = kind(MAILS, &of_all(MAILS), mails(services));
    let mut kinds = vec![mails, kind(CHARGES, &of_all(CHARGES), Ok(charges(services)))];
    for sample in SAMPLES.iter().filter(|sample| ![MAILS, CHARGES].contains(&sample.effects())) {
        for same in by_place(*sample, of(*sample)) {
            if let [function, ..] = same[..] {
                kinds.push(kind(sample.effects(), &same, sample.look(services, function).await));
            }
        }
    }
    json!({ "kinds": kinds })
}

/// Returns functions of a sample, those together that keep their effects in the same tables or database.
fn by_place<'a>(sample: &dyn Sample, functions: Vec<&'a FunctionSpec>) -> Vec<Vec<&'a FunctionSpec>> {
    let place = |function: &FunctionSpec| -> Vec<_> {
        sample.kept_in().iter().map(|variable| function.environment.get(*variable).cloned()).collect()
    };
    let mut places: Vec<Vec<&FunctionSpec>> = Vec::new();
    for function in functions {
        match places.iter_mut().find(|same| same.first().is_some_and(|first| place(first) == place(function))) {
            Some(same) => same.push(function),
            None => places.push(vec![function]),
        }
    }
    places
}

/// Returns what is seen of one kind, which these functions may have done: how many there are, of how many keys, and which keys have more than
/// one.
fn kind(name: &str, functions: &[&FunctionSpec], seen: Result<Seen, Error>) -> Value {
    let functions: Vec<_> = functions.iter().map(|function| function.name.as_str()).collect();
    let Seen { effects, tries, .. } = match seen {
        Ok(seen) => seen,
        Err(error) => return json!({ "name": name, "functions": functions, "problem": format!("{error:?}") }),
    };
    let mut by_key: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let keyed = effects.iter().filter(|effect| !effect.key.is_empty());
    keyed.for_each(|effect| by_key.entry(&effect.key).or_default().push(&effect.what));
    let keys = by_key.len();
    by_key.retain(|_, times| times.len() > 1);
    let repeated = by_key.iter().take(LISTED_MAX).map(|(key, what)| {
        json!({ "key": key, "times": what.len(), "what": what.iter().take(TIMES_LISTED_MAX).map(|what| cut(what)).collect::<Vec<_>>() })
    });
    let repeated: Vec<_> = repeated.collect();
    let latest: Vec<_> = effects
        .iter()
        .rev()
        .take(LISTED_MAX)
        .map(|Effect { key, what }| json!({ "key": key, "what": cut(what) }))
        .collect();
    json!({
        "name": name,
        "functions": functions,
        "total": effects.len(),
        "tries": tries,
        "keys": keys,
        "repeated_keys": by_key.len(),
        "repeated": repeated,
        "latest": latest,
    })
}

fn cut(what: &str) -> &str {
    &what[..what.floor_char_boundary(WHAT_MAX)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::super::audit::Audit;
    use super::super::gift_cards::GiftCards;
    use super::super::orders::Orders;
    use super::*;
    use crate::dynamodb::DynamoDb;
    use crate::faults::Faults;
    use crate::gateway::Gateway;
    use crate::journal::Journal;
    use crate::mailbox::{ACCEPTED_MAX, Field, MAILS_MAX, Mail, Mailbox};
    use crate::s3::S3;
    use crate::scheduler::Scheduler;
    use crate::sqs::Sqs;
    use crate::stack::CodeSpec;

    #[test]
    fn a_mail_is_known_to_be_sent_twice_long_after_it_was_sent() {
        let services = Services {
            journal: Journal::off(),
            faults: Faults::default(),
            sqs: Sqs::new(),
            dynamodb: DynamoDb::in_memory().unwrap(),
            mailbox: Mailbox::new(),
            gateway: Gateway::new(),
            s3: S3::new(),
            scheduler: Scheduler::new(Sqs::new()),
        };
        let kind = || kind(MAILS, &[], mails(&services));
        let send = |key: &str| {
            let headers = vec![Field { name: "X-Claimant-Key".to_owned(), value: key.to_owned() }];
            services.mailbox.keep(Mail { headers, to: vec!["ada@example.com".to_owned()], ..Mail::default() });
        };
        send("first");
        (0..MAILS_MAX).for_each(|n| send(&n.to_string()));
        send("first");
        assert_eq!(
            kind()["repeated"][0],
            json!({ "key": "first", "times": 2, "what": ["ada@example.com", "ada@example.com"] })
        );
        (0..ACCEPTED_MAX).for_each(|n| send(&n.to_string()));
        assert!(kind()["problem"].is_string(), "{}", kind()["total"]);
    }

    #[test]
    fn what_happened_twice_is_named() {
        let effect = |key: &str, what: &str| Effect { key: key.to_owned(), what: what.to_owned() };
        let effects =
            vec![effect("a", "1 EUR"), effect("b", "2 EUR"), effect("a", "1 EUR"), effect("", "x"), effect("", "y")];
        let seen = Seen { effects, tries: 7, ..Seen::default() };
        let kind = kind("charges", &[], Ok(seen));
        assert_eq!(kind["repeated"], json!([{ "key": "a", "times": 2, "what": ["1 EUR", "1 EUR"] }]));
        assert_eq!((&kind["total"], &kind["keys"], &kind["tries"]), (&json!(5), &json!(2), &json!(7)));
        assert_eq!(kind["latest"][0], json!({ "key": "", "what": "y" }));
    }

    /// Which of several has sent a mail is not known; and each has a table of its own, or shares one.
    #[test]
    fn effects_are_of_all_functions_that_may_have_had_them() {
        let function = |name: &str, table: &str| FunctionSpec {
            name: name.to_owned(),
            environment: [("AUDIT_TABLE", table), ("GIFT_CARD_TABLE", table), ("GIFT_CARD_LEDGER_TABLE", "one")]
                .map(|(variable, table)| (variable.to_owned(), table.to_owned()))
                .into(),
            logical_id: name.to_owned(),
            binary: "audit".to_owned(),
            code: CodeSpec::default(),
            timeout: Duration::from_secs(3),
            memory_mb: 128,
            secrets: BTreeSet::new(),
            log_level: None,
            mappings: Vec::new(),
        };
        let functions = [function("A", "one"), function("B", "two"), function("C", "one")];
        let all: Vec<_> = functions.iter().collect();
        let of = |sample: &dyn Sample| {
            let places = by_place(sample, all.clone());
            places.iter().map(|same| same.iter().map(|one| &*one.name).collect::<String>()).collect::<Vec<_>>()
        };
        assert_eq!((of(&Audit), of(&Orders)), (vec!["AC".to_owned(), "B".to_owned()], vec!["ABC".to_owned()]));
        assert_eq!(of(&GiftCards), of(&Audit), "of one ledger, but of other cards");
        assert_eq!(kind("mails", &all, Ok(Seen::default()))["functions"], json!(["A", "B", "C"]));
    }
}
