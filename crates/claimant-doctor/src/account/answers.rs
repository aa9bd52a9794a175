//! Requests, answers, and what was refused.

use std::cell::RefCell;

use serde_json::Value;

/// Pages of one list at most.
const PAGES_MAX: usize = 50;

/// A service of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operation, about, code } = self;
        write!(f, "{operation} of {about}: {code}")?;
        if code.contains("AccessDenied") {
            write!(f, " (these credentials lack the permission for {operation})")?;
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
}

impl<'a, A> Asker<'a, A> {
    pub(super) fn new(account: &'a A) -> Self {
        Self { account, notes: RefCell::default() }
    }

    pub(super) fn note(&self, note: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes.into_inner()
    }
}

impl<A: Account> Asker<'_, A> {
    pub(super) async fn ask(&self, service: Service, operation: &'static str, input: Value) -> Result<Value, Refused> {
        self.account.ask(Request { service, operation, input }).await
    }

    /// The answer; nothing, and noted, if there is none.
    pub(super) async fn get(&self, service: Service, operation: &'static str, input: Value) -> Option<Value> {
        match self.ask(service, operation, input).await {
            Ok(answer) => Some(answer),
            Err(refused) => {
                self.note(refused.to_string());
                None
            }
        }
    }

    /// All pages of a list; the token of the next one has this name in question and answer.
    pub(super) async fn pages(
        &self,
        service: Service,
        operation: &'static str,
        mut input: Value,
        token: &str,
    ) -> Result<Vec<Value>, Refused> {
        let mut pages = Vec::new();
        while pages.len() < PAGES_MAX {
            let page = self.ask(service, operation, input.clone()).await?;
            // Lambda calls it otherwise in its answers.
            let next = text(&page, token).or_else(|| text(&page, "NextMarker")).filter(|next| !next.is_empty());
            let next = next.map(str::to_owned);
            pages.push(page);
            match next {
                Some(next) => input[token] = next.into(),
                None => return Ok(pages),
            }
        }
        self.note(format!("{operation}: more than {PAGES_MAX} pages, of which the rest was not read"));
        Ok(pages)
    }
}

/// The text under a key.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// What all pages have under a key.
pub(super) fn texts(pages: &[Value], key: &str) -> Vec<Value> {
    pages.iter().filter_map(|page| page.get(key)?.as_array()).flatten().cloned().collect()
}
