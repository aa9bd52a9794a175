//! The names of a record's attributes.

/// The names of a record's attributes, for tables whose attributes have other names. The defaults are the fields' names, and the only ones that the
/// commands of operators, the console and the doctor know: of a table with others, `claimant list` says that it is not known whether all is well.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod dynamodb { pub use claimant_dynamodb::*; } }
/// use claimant::dynamodb::AttributeNames;
///
/// let names = AttributeNames { id: "pk".into(), expires_at: "ttl".into(), ..AttributeNames::default() };
/// assert_eq!(names.status, "status");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is the attribute of the record's field of that name")]
pub struct AttributeNames {
    /// The table's partition key, a string.
    pub id: String,
    pub status: String,
    pub owner: String,
    pub fence: String,
    pub lease_until: String,
    pub attempts: String,
    pub message_id: String,
    pub fingerprint: String,
    pub created_at: String,
    pub updated_at: String,
    pub completed_at: String,
    /// The table's TTL attribute, in seconds since the epoch.
    pub expires_at: String,
    pub result: String,
    pub error: String,
    pub note: String,
}

impl Default for AttributeNames {
    fn default() -> Self {
        Self {
            id: "id".into(),
            status: "status".into(),
            owner: "owner".into(),
            fence: "fence".into(),
            lease_until: "lease_until".into(),
            attempts: "attempts".into(),
            message_id: "message_id".into(),
            fingerprint: "fingerprint".into(),
            created_at: "created_at".into(),
            updated_at: "updated_at".into(),
            completed_at: "completed_at".into(),
            expires_at: "expires_at".into(),
            result: "result".into(),
            error: "error".into(),
            note: "note".into(),
        }
    }
}
