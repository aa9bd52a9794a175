//! A guarantee and a store, which together decide what a message costs.

/// What is guaranteed of the handler's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// Under a lease; the system that is called recognises the key.
    AtLeastOnce,
    /// At most once, under a lease: what was cut off is parked.
    AtMostOnce,
    /// Exactly once: a claim, and the handler's writes in one transaction with the completion.
    Transactional,
    /// Exactly once: the same transaction without a claim.
    Optimistic,
}

/// Where records are, and how that is paid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Store {
    /// DynamoDB, each unit by itself.
    OnDemand,
    /// DynamoDB, capacity by the hour, which scales with the load.
    Provisioned,
    /// DynamoDB, so much capacity by the hour and no more.
    Fixed {
        /// Write units a second.
        writes: f64,
        /// Read units a second.
        reads: f64,
    },
    /// PostgreSQL, MySQL or Redis: an instance, and its price of a month where that is known.
    Instance(Option<f64>),
}

impl Guarantee {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::AtLeastOnce, Self::AtMostOnce, Self::Transactional, Self::Optimistic];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at least once, with the key",
            Self::AtMostOnce => "at most once",
            Self::Transactional => "transactional",
            Self::Optimistic => "transactional, without a claim",
        }
    }

    /// Returns whether there are such consumers with their records there.
    pub const fn is_for(self, store: Store) -> bool {
        !matches!((self, store), (Self::Optimistic, Store::Instance(_)))
    }
}

impl Store {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "DynamoDB on demand",
            Self::Provisioned => "DynamoDB provisioned",
            Self::Fixed { .. } => "DynamoDB provisioned, without scaling",
            Self::Instance(_) => "a database",
        }
    }
}
