//! PartiQL statements: the requests that claim or settle many records at once.

use std::iter;

use aws_sdk_dynamodb::types::{AttributeValue, BatchStatementRequest};
use claimant_core::protocol::{ClaimRequest, Settlement, fresh_claim, window_end};
use claimant_core::{Claim, Status, StoreError, StoreErrorKind};

use crate::item::{number, text, time, values};
use crate::names::AttributeNames;
use crate::requests::Requests;

impl Requests {
    /// Claims a key that has no record, with the record that the protocol makes for it.
    pub(crate) fn insert(&self, request: &ClaimRequest) -> Result<BatchStatementRequest, StoreError> {
        let id = (self.names.id.as_str(), text(request.id.as_str()));
        let others = values(&fresh_claim(request), &self.names).into_iter();
        let fields = iter::once(id).chain(others.filter_map(|(name, value)| Some((name, value?))));
        let mut statement = Statement::new("INSERT INTO ", self.tables.of(&request.id));
        let mut before = " VALUE {";
        for (name, value) in fields {
            statement.push(before, ('\'', name), ": ?", value);
            before = ", ";
        }
        statement.text.push('}');
        statement.build()
    }

    /// Ends a claim, under exactly the condition of the single request.
    pub(crate) fn update_ended(
        &self,
        claim: &Claim,
        settlement: &Settlement,
    ) -> Result<BatchStatementRequest, StoreError> {
        let AttributeNames { id, status, owner, fence, updated_at, completed_at, expires_at, result, error, .. } =
            &self.names;
        let ending = &settlement.ending;
        let expires = window_end(settlement.now, &settlement.policy);
        let mut set: Vec<(&str, AttributeValue)> = vec![
            (status, text(ending.status().as_str())),
            (updated_at, time(settlement.now)),
            (expires_at, number(expires)),
        ];
        if ending.status() == Status::Completed {
            set.push((completed_at, time(settlement.now)));
        }
        set.extend(ending.result().map(|json| (result.as_str(), text(json))));
        set.extend(ending.error().map(|why| (error.as_str(), text(why))));
        let held = [
            (id.as_str(), text(claim.id.as_str())),
            (status, text(Status::InProgress.as_str())),
            (owner, text(claim.owner.as_str())),
            (fence, number(claim.fence.get())),
        ];
        let mut statement = Statement::new("UPDATE ", self.tables.of(&claim.id));
        for (name, value) in set {
            statement.push(" SET ", ('"', name), " = ?", value);
        }
        if ending.removes_error(claim) {
            statement.text.push_str(" REMOVE ");
            statement.quote('"', error);
        }
        let mut before = " WHERE ";
        for (name, value) in held {
            statement.push(before, ('"', name), " = ?", value);
            before = " AND ";
        }
        statement.build()
    }
}

/// A statement that is being written. A batch has as many as messages, so each is written into one buffer.
struct Statement {
    text: String,
    parameters: Vec<AttributeValue>,
}

impl Statement {
    /// Begins a statement on this table.
    fn new(verb: &str, table: &str) -> Self {
        // As long as those here are, with the usual names.
        let (text, parameters) = (String::with_capacity(400), Vec::with_capacity(14));
        let mut statement = Self { text, parameters };
        statement.text.push_str(verb);
        statement.quote('"', table);
        statement
    }

    /// Adds a name in quotes, between these texts, and the parameter that is for it.
    fn push(&mut self, before: &str, (quote, name): (char, &str), after: &str, value: AttributeValue) {
        self.text.push_str(before);
        self.quote(quote, name);
        self.text.push_str(after);
        self.parameters.push(value);
    }

    /// Adds a name as PartiQL quotes it, since `status` and others are reserved words: tables and attributes in double quotes, the
    /// fields of a value in single ones.
    fn quote(&mut self, quote: char, name: &str) {
        self.text.push(quote);
        for c in name.chars() {
            if c == quote {
                self.text.push(quote);
            }
            self.text.push(c);
        }
        self.text.push(quote);
    }

    fn build(self) -> Result<BatchStatementRequest, StoreError> {
        BatchStatementRequest::builder()
            .statement(self.text)
            .set_parameters(Some(self.parameters))
            .build()
            .map_err(|e| StoreError::new(StoreErrorKind::Other, "a statement is incomplete").caused_by(e))
    }
}
