//! The lock tables of a place: those that functions name, and the one that is chosen.

use std::collections::BTreeSet;

use claimant_core::Error;

use crate::place::{Function, Place, StoreAddress};
use crate::stack::{BEFORE_VARIABLE, TABLE_VARIABLE};

impl Place {
    /// Takes this table for the only store.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn choose_table(&mut self, table: &str) -> Result<(), Error> {
        let chosen = StoreAddress::Table(table.to_owned());
        if !self.stores.contains(&chosen) && !Self::is_among(table, &self.other_tables) {
            let known: Vec<_> = self.lock_table_stores().chain(self.other_tables.iter().map(String::as_str)).collect();
            return Err(Error::invalid(format!("{} has no table {table}: it has {}", self.name, known.join(", "))));
        }
        self.stores = vec![chosen];
        Ok(())
    }

    /// Returns those of its stores that are lock tables, each as it is named.
    pub(crate) fn lock_table_stores(&self) -> impl Iterator<Item = &str> {
        self.stores.iter().filter_map(|store| match store {
            StoreAddress::Table(table) => Some(table.as_str()),
            StoreAddress::Url { .. } => None,
        })
    }

    /// Returns whether all tables of a lock table are among these.
    pub(crate) fn is_among(lock_table: &str, tables: &[String]) -> bool {
        lock_table.split(',').all(|one| tables.iter().any(|table| table == one.trim()))
    }

    /// Returns the lock tables that functions name. Those that had records before come first: a record that is moved while it is
    /// looked for is then found.
    pub(crate) fn lock_tables(functions: &[Function]) -> Vec<String> {
        let named = |table: &Option<String>| table.clone().filter(|table| !table.is_empty());
        let before: BTreeSet<_> = functions.iter().filter_map(|function| named(&function.table_before)).collect();
        let now: BTreeSet<_> = functions.iter().filter_map(|function| named(&function.table)).collect();
        let new = now.into_iter().filter(|table| !before.contains(table)).collect::<Vec<_>>();
        before.into_iter().chain(new).collect()
    }

    /// Returns a sentence for each lock table that functions of a local cloud name and that is not there: which function, and by which variable.
    #[must_use]
    pub fn absent_tables(&self) -> Vec<String> {
        if !self.is_local() {
            return Vec::new();
        }
        let stores = self.lock_table_stores().flat_map(|table| table.split(',').map(|one| one.trim().to_owned()));
        let there: Vec<_> = stores.chain(self.other_tables.iter().cloned()).collect();
        let named = self.functions.iter().flat_map(|function| {
            let variables = [(TABLE_VARIABLE, &function.table), (BEFORE_VARIABLE, &function.table_before)];
            variables.map(|(variable, table)| Some((&function.name, variable, table.as_ref()?)))
        });
        let absent = named.flatten().filter(|(.., table)| !table.is_empty() && !Self::is_among(table, &there));
        absent
            .map(|(function, variable, table)| format!("{function} has {variable}={table}, and there is no such table"))
            .collect()
    }
}
