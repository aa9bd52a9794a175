//! What a role may do, as far as its policies can be read.

use std::collections::{BTreeMap, BTreeSet};

use crate::fact::Fact;

/// What claimant does with its records in a lock table.
pub(crate) const ON_TABLES: [&str; 6] = [
    "dynamodb:UpdateItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:BatchGetItem",
];

/// What it does in a table that its records are moved from.
pub(crate) const ON_MOVED: [&str; 3] = ["dynamodb:GetItem", "dynamodb:DeleteItem", "dynamodb:BatchGetItem"];

/// The condition that keeps a statement to some records.
pub(crate) const LEADING_KEYS: &str = "dynamodb:LeadingKeys";

/// What stands for every resource, which some actions are on.
pub(crate) const EVERYTHING: &str = "*";

/// Looks up the event source mappings of a function.
pub(crate) const LIST_MAPPINGS: &str = "lambda:ListEventSourceMappings";

/// What a role may do.
#[derive(Debug, Clone, Default)]
pub enum Rights {
    /// Its policies cannot be read.
    #[default]
    Unknown,
    /// What its policies say. One that cannot be read may allow anything, and a permissions boundary may deny it.
    Stated(Vec<Statement>),
    /// What IAM answers, by action and resource.
    Simulated(BTreeMap<(String, String), bool>),
}

/// Actions that are allowed on resources, or may be denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Whether it takes away what others allow: what it is about is not known to be allowed.
    pub denies: bool,
    /// Such as `sqs:sendmessage` or `sqs:*`, in small letters.
    pub actions: Vec<String>,
    /// On what.
    pub targets: Vec<Target>,
    /// Of tables: the keys that it is kept to, with `*` and `?`; all where there are none.
    pub keys: Vec<String>,
    /// Whether its policy is certain to be there, and its condition to hold.
    pub certain: bool,
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Everything.
    Any,
    /// What has this id.
    Here(String),
    /// What has this ARN, with `*`, `?` and holes: only AWS can compare it.
    Named(String),
    /// Something that is not known.
    Other,
}

/// Who a queue's policy lets in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Whether principals that are no services may do something.
    pub admits_principals: bool,
    /// The accounts that may receive, as far as they are named.
    pub receivers: BTreeSet<String>,
}

impl Rights {
    /// Returns whether the action is allowed on what has this id, for some keys at least.
    pub fn allow(&self, action: &str, id: &str) -> Fact<bool> {
        self.allow_where(action, id, |_| true)
    }

    /// Returns whether the action is allowed on records of this consumer in this table, of whatever keys: whoever names some knows which.
    pub fn allow_records(&self, action: &str, id: &str, consumer: &str) -> Fact<bool> {
        let (begin, any) = (format!("{consumer}#"), format!("{consumer}#key"));
        let names = |pattern: &String| pattern.starts_with(&begin) || matches(pattern, &any);
        self.allow_where(action, id, |keys| keys.is_empty() || keys.iter().any(names))
    }

    fn allow_where(&self, action: &str, id: &str, keys: impl Fn(&[String]) -> bool) -> Fact<bool> {
        match self {
            Self::Unknown => Fact::Unknown,
            Self::Simulated(answers) => answers.get(&(action.to_owned(), id.to_owned())).copied().into(),
            Self::Stated(statements) => {
                let is_it = |target: &Target| *target == Target::Any || *target == Target::Here(id.to_owned());
                let concerns = |statement: &Statement| match statement.targets.iter().any(is_it) {
                    true => Some(statement.certain),
                    // An ARN by name can be that of the one meant: whether it is, only AWS knows.
                    false => statement
                        .targets
                        .iter()
                        .any(|one| !matches!(one, Target::Any | Target::Here(_)))
                        .then_some(false),
                };
                let wanted = action.to_ascii_lowercase();
                let of_action = statements.iter().filter(|one| one.names(&wanted) && (one.denies || keys(&one.keys)));
                decided(of_action.filter_map(|one| Some((one.denies, concerns(one)?))))
            }
        }
    }

    /// Returns whether the action is allowed on anything; of what IAM answers, on everything.
    pub fn allow_somewhere(&self, action: &str) -> Fact<bool> {
        let Self::Stated(statements) = self else { return self.allow(action, EVERYTHING) };
        let action = action.to_ascii_lowercase();
        let of_action = statements.iter().filter(|one| one.names(&action));
        decided(of_action.map(|one| (one.denies, one.certain)))
    }

    /// Returns whether the action is allowed on the schedule of this name in the group that is always there.
    pub fn allow_schedule(&self, action: &str, name: &str) -> Fact<bool> {
        let Self::Stated(statements) = self else { return Fact::Unknown };
        let (action, id) = (action.to_ascii_lowercase(), format!("schedule/default/{name}"));
        let of_it =
            statements.iter().filter(|one| one.names(&action) && one.targets.iter().any(|one| one.may_end_in(&id)));
        decided(of_it.map(|one| (one.denies, one.certain)))
    }

    /// Returns whether a statement names the action itself, and what has this id itself: it is meant, not only allowed.
    pub fn mean(&self, action: &str, id: &str) -> Fact<bool> {
        let Self::Stated(statements) = self else { return Fact::Unknown };
        let action = action.to_ascii_lowercase();
        let means =
            |one: &&Statement| one.actions.contains(&action) && one.targets.contains(&Target::Here(id.to_owned()));
        decided(statements.iter().filter(means).map(|one| (one.denies, one.certain)))
    }
}

/// Returns what statements about an action come to: whether each denies it, and whether it is certain. What none allows is not allowed; what
/// one may deny is not known to be allowed.
pub(crate) fn decided(statements: impl Iterator<Item = (bool, bool)>) -> Fact<bool> {
    let (mut allowed, mut denied) = (None, false);
    for (denies, certain) in statements {
        match denies {
            true => denied = true,
            false => allowed = Some(certain || allowed == Some(true)),
        }
    }
    match allowed {
        None => Fact::Known(false),
        Some(true) if !denied => Fact::Known(true),
        Some(_) => Fact::Unknown,
    }
}

impl Target {
    /// Whether this can be what is not described here, of whose ARN this is the part behind the account.
    fn may_end_in(&self, id: &str) -> bool {
        match self {
            Self::Any | Self::Other => true,
            Self::Here(_) => false,
            // One that is shorter ends in what stands for all of the rest, or is a hole.
            Self::Named(arn) => arn.splitn(6, ':').nth(5).is_none_or(|pattern| matches(&with_holes_open(pattern), id)),
        }
    }
}

/// The pattern, in which a hole can be anything.
fn with_holes_open(pattern: &str) -> String {
    let mut parts = pattern.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |open, part| open + "*" + part.split_once('}').map_or("", |(_, behind)| behind))
}

impl Statement {
    /// Returns one that allows these, for certain.
    pub(crate) fn allowing(actions: &[&str], target: Option<Target>) -> Self {
        let actions = actions.iter().map(|action| (*action).to_owned()).collect();
        Self { denies: false, actions, targets: target.into_iter().collect(), keys: Vec::new(), certain: true }
    }

    /// Returns one that may allow anything: what stands for a policy that cannot be read.
    pub(crate) fn unreadable() -> Self {
        Self { certain: false, ..Self::allowing(&["*"], Some(Target::Any)) }
    }

    /// Returns one that may deny anything.
    pub(crate) fn denying() -> Self {
        Self { denies: true, ..Self::unreadable() }
    }

    fn names(&self, action: &str) -> bool {
        self.actions.iter().any(|pattern| matches(pattern, action))
    }
}

/// Returns whether a text matches a pattern with `*` and `?`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    at = back + 1;
                    seen = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let table = [
            ("sqs:*", "sqs:sendmessage", true),
            ("*", "", true),
            ("sqs:send*", "sqs:sendmessage", true),
            ("sqs:*message", "sqs:deletemessage", true),
            ("sqs:?endmessage", "sqs:sendmessage", true),
            ("sqs:*batch", "sqs:sendmessage", false),
            ("sqs:send", "sqs:sendmessage", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn what_a_name_may_mean_is_unknown() {
        let here = |id: &str| Target::Here(id.to_owned());
        let allows = |target| Statement::allowing(&["sqs:*"], Some(target));
        let denies = |target| Statement { denies: true, ..allows(target) };
        let unreadable = Statement::unreadable;
        let table = [
            (Rights::Stated(vec![allows(Target::Any)]), Fact::Known(true)),
            (Rights::Stated(vec![allows(here("Q")), unreadable()]), Fact::Known(true)),
            (Rights::Stated(vec![allows(here("R"))]), Fact::Known(false)),
            (Rights::Stated(vec![allows(here("R")), unreadable()]), Fact::Unknown),
            (Rights::Stated(vec![allows(Target::Other)]), Fact::Unknown),
            (Rights::Stated(vec![allows(here("Q")), denies(here("Q"))]), Fact::Unknown),
            (Rights::Stated(vec![allows(here("Q")), denies(Target::Other)]), Fact::Unknown),
            (Rights::Stated(vec![allows(here("Q")), denies(here("R"))]), Fact::Known(true)),
            (Rights::Stated(vec![denies(Target::Any)]), Fact::Known(false)),
            (Rights::Unknown, Fact::Unknown),
        ];
        for (rights, expected) in table {
            assert_eq!(rights.allow("sqs:SendMessage", "Q"), expected, "{rights:?}");
        }
    }
}
