//! Requests, answers, and what was refused.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Pages of one list at most.
const PAGES_MAX: usize = 500;

/// How the code of a refusal begins that is none of the service.
pub(super) const NO_ANSWER: &str = "no answer";

/// A service of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Stacks.
    CloudFormation,
    /// Metrics and alarms.
    CloudWatch,
    /// The lock table.
    DynamoDb,
    /// What roles may do.
    Iam,
    /// Functions and mappings.
    Lambda,
    /// Log groups.
    Logs,
    /// Queues.
    Sqs,
}

/// A request that only reads.
#[derive(Debug, Clone)]
pub struct Request {
    /// To whom.
    pub service: Service,
    /// What, by the name in the service's API, which with the service is also the permission that it needs.
    pub operation: &'static str,
    /// Its parameters, by their names in the API.
    pub input: Value,
}

impl Request {
    /// Returns what it is about, for people.
    pub(super) fn about(&self) -> String {
        let keys = [
            "StackName",
            "FunctionName",
            "QueueName",
            "QueueUrl",
            "TableName",
            "ResourceArn",
            "PolicySourceArn",
            "logGroupName",
            "logGroupNamePrefix",
        ];
        let found = keys.iter().find_map(|key| text(&self.input, key));
        found.unwrap_or("this account").to_owned()
    }
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The request.
    pub operation: &'static str,
    /// About what.
    pub about: String,
    /// The service's code, or what went wrong on the way.
    pub code: String,
}

/// What codes of missing permissions have in them, and those of credentials or signatures that are not accepted.
const DENIED: [&str; 4] = ["AccessDenied", "Unauthorized", "NotAuthorized", "AuthorizationError"];
const NOT_ACCEPTED: [&str; 7] = [
    "ExpiredToken",
    "InvalidClientTokenId",
    "UnrecognizedClient",
    "InvalidAccessKeyId",
    "AuthenticationToken",
    "Signature",
    "RequestExpired",
];

/// How the codes end for a table or a function, and for a queue, that is not there.
const GONE: [&str; 3] = ["ResourceNotFoundException", "QueueDoesNotExist", "NonExistentQueue"];

impl Refused {
    /// Returns whether what was asked for is not there.
    pub(super) fn is_gone(&self) -> bool {
        let name = self.code.split(' ').next().unwrap_or_default();
        GONE.iter().any(|one| name.ends_with(one))
    }

    /// Returns whether it may be there all the same: SQS says that these credentials may only not see it.
    pub(super) fn may_be_hidden(&self) -> bool {
        self.code.contains("not have access")
    }

    /// Returns whether a permission is missing.
    pub(super) fn is_denied(&self) -> bool {
        let name = self.code.split(' ').next().unwrap_or_default();
        DENIED.iter().any(|one| name.contains(one)) || self.code.contains("not authorized")
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operation, about, code } = self;
        write!(f, "{operation} of {about}: {code}")?;
        let name = code.split(' ').next().unwrap_or_default();
        if self.is_denied() {
            write!(f, " (these credentials lack the permission for {operation})")?;
        } else if NOT_ACCEPTED.iter().any(|one| name.contains(one)) {
            f.write_str(" (AWS does not accept these credentials: sign in again, or set this machine's clock)")?;
        } else if *operation == "ListStackResources" && name == "ValidationError" {
            f.write_str(" (are the stack's name, the account and the Region right?)")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// Whoever answers requests about an account.
pub trait Account {
    /// Returns the answer, with the names of the service's API.
    ///
    /// # Errors
    /// The service refuses it, what is asked for is not there, or no answer came.
    fn ask(&self, request: Request) -> impl Future<Output = Result<Value, Refused>>;
}

/// Asks, and keeps in mind what was refused.
pub(super) struct Asker<'a, A> {
    account: &'a A,
    notes: RefCell<Vec<String>>,
    /// Services that answered the last request.
    answered: RefCell<BTreeSet<Service>>,
    /// Services that are not asked again.
    silent: RefCell<BTreeMap<Service, Silent>>,
}

/// A service that gives no answer.
struct Silent {
    /// To what it gave none.
    refused: Refused,
    /// What it was not asked about after that.
    not_asked: BTreeSet<String>,
}

impl<'a, A> Asker<'a, A> {
    pub(super) fn new(account: &'a A) -> Self {
        Self { account, notes: RefCell::default(), answered: RefCell::default(), silent: RefCell::default() }
    }

    pub(super) fn note(&self, note: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        let mut notes = self.notes.into_inner();
        let silent = self.silent.into_inner().into_values();
        for Silent { refused, not_asked } in silent.filter(|one| !one.not_asked.is_empty()) {
            let not_asked = not_asked.into_iter().collect::<Vec<_>>().join(", ");
            notes.push(format!("{not_asked}: not asked about after {} of {}", refused.operation, refused.about));
        }
        notes
    }
}

impl<A: Account> Asker<'_, A> {
    /// The answer. A service that gives none is not asked again, for each request would take as long; one that answered before has another
    /// chance.
    pub(super) async fn ask(&self, service: Service, operation: &'static str, input: Value) -> Result<Value, Refused> {
        let request = Request { service, operation, input };
        if let Some(Silent { refused, not_asked }) = self.silent.borrow_mut().get_mut(&service) {
            not_asked.insert(request.about());
            return Err(refused.clone());
        }
        let mut answer = self.account.ask(request).await;
        let mut answered = self.answered.borrow_mut();
        match &mut answer {
            Err(refused) if refused.code.starts_with(NO_ANSWER) => {
                if !answered.remove(&service) {
                    refused.code.push_str(" (this service is not asked again)");
                    let silent = Silent { refused: refused.clone(), not_asked: BTreeSet::new() };
                    self.silent.borrow_mut().insert(service, silent);
                }
            }
            _ => {
                answered.insert(service);
            }
        }
        answer
    }

    /// The answer; nothing, and noted, if there is none.
    pub(super) async fn get(&self, service: Service, operation: &'static str, input: Value) -> Option<Value> {
        self.find(service, operation, input).await.unwrap_or_else(|gone| {
            self.note(gone.to_string());
            None
        })
    }

    /// As [`get`](Self::get); an error, and not noted, where what is asked for is gone.
    pub(super) async fn find(
        &self,
        service: Service,
        operation: &'static str,
        input: Value,
    ) -> Result<Option<Value>, Refused> {
        match self.ask(service, operation, input).await {
            Ok(answer) => Ok(Some(answer)),
            Err(refused) if refused.is_gone() => Err(refused),
            Err(refused) => {
                self.note(refused.to_string());
                Ok(None)
            }
        }
    }

    /// All pages of a list; the token of the next one has this name in question and answer.
    pub(super) async fn pages(
        &self,
        service: Service,
        operation: &'static str,
        input: Value,
        token: &str,
    ) -> Result<Vec<Value>, Refused> {
        pages(self, service, operation, (input, token)).await
    }
}

impl<A: Account> Account for Asker<'_, A> {
    async fn ask(&self, Request { service, operation, input }: Request) -> Result<Value, Refused> {
        Asker::ask(self, service, operation, input).await
    }
}

/// All pages of a list; the token of the next one has this name in question and answer.
pub(super) async fn pages<A: Account>(
    account: &A,
    service: Service,
    operation: &'static str,
    (mut input, token): (Value, &str),
) -> Result<Vec<Value>, Refused> {
    let mut pages = Vec::new();
    while pages.len() < PAGES_MAX {
        let page = account.ask(Request { service, operation, input: input.clone() }).await?;
        // Lambda calls it otherwise in its answers.
        let next = text(&page, token).or_else(|| text(&page, "NextMarker")).filter(|next| !next.is_empty());
        let next = next.map(str::to_owned);
        pages.push(page);
        match next {
            Some(next) => input[token] = next.into(),
            None => return Ok(pages),
        }
    }
    // What is not read would be taken for what is not there.
    Err(Refused { operation, about: "this account".to_owned(), code: format!("more than {PAGES_MAX} pages") })
}

/// The text under a key.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// What all pages have under a key.
pub(super) fn texts(pages: &[Value], key: &str) -> Vec<Value> {
    pages.iter().filter_map(|page| page.get(key)?.as_array()).flatten().cloned().collect()
}
