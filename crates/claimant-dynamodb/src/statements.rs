//! PartiQL statements: the requests that claim or settle many records at once.

use aws_sdk_dynamodb::types::{AttributeValue, BatchStatementRequest};
use claimant_core::protocol::{ClaimRequest, Settlement, fresh_claim, window_end};
use claimant_core::{Claim, Status, StoreError, StoreErrorKind};

use crate::item::{number, text, time, values};
use crate::names::AttributeNames;
use crate::requests::Requests;

impl Requests {
    /// Claims a key that has no record, with the record that the protocol makes for it.
    pub(crate) fn insert(&self, request: &ClaimRequest) -> Result<BatchStatementRequest, StoreError> {
        let mut fields = vec![format!("{}: ?", literal(&self.names.id))];
        let mut parameters = vec![text(request.id.as_str())];
        for (name, value) in values(&fresh_claim(request), &self.names) {
            if let Some(value) = value {
                fields.push(format!("{}: ?", literal(name)));
                parameters.push(value);
            }
        }
        let statement =
            format!("INSERT INTO {} VALUE {{{}}}", identifier(self.tables.of(&request.id)), fields.join(", "));
        build(statement, parameters)
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
        let assignments: Vec<String> = set.iter().map(|(name, _)| format!("SET {} = ?", identifier(name))).collect();
        let guards: Vec<String> = held.iter().map(|(name, _)| format!("{} = ?", identifier(name))).collect();
        let table = identifier(self.tables.of(&claim.id));
        let statement = format!("UPDATE {table} {} WHERE {}", assignments.join(" "), guards.join(" AND "));
        build(statement, set.into_iter().chain(held).map(|(_, value)| value).collect())
    }
}

fn build(statement: String, parameters: Vec<AttributeValue>) -> Result<BatchStatementRequest, StoreError> {
    BatchStatementRequest::builder()
        .statement(statement)
        .set_parameters(Some(parameters))
        .build()
        .map_err(|e| StoreError::new(StoreErrorKind::Other, "a statement is incomplete").caused_by(e))
}

/// Quotes a name in PartiQL, since `status` and others are reserved words.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a string in PartiQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
