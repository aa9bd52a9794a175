//! Faults on purpose, in a local cloud: switched on, listed, ended.

use claimant_core::Error;
use serde::{Deserialize, Serialize};

use crate::http;
use crate::target::Place;

/// A fault as it is asked for; what is `None` has its default. The local cloud says what goes together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// What it does: `kill`, `freeze`, `lose`, `throttle`, `cut` or `refuse`.
    pub act: String,
    /// Whose requests it meets: `table`, `claims`, `settlements`, `reads`, `mail` or `gateway`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Whose process it meets, of `kill` and `freeze`: the name of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Only this process, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// When the process is met: `claim`, `batch` or `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How long a process is frozen, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_s: Option<u32>,
    /// How often it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// For how many seconds it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u32>,
}

/// A fault that acts, or has acted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its number, from 1.
    pub id: u64,
    /// What was asked for, with its defaults.
    #[serde(flatten)]
    pub spec: FaultSpec,
    /// What it does, in words.
    pub does: String,
    /// When it was switched on, in milliseconds since 1970.
    pub began_ms: u64,
    /// Until when it acts, where that is a time.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// How often it has acted.
    pub acted: u32,
    /// When it ended; `None` while it acts.
    #[serde(default)]
    pub ended_ms: Option<u64>,
}

/// The faults of a local cloud.
#[derive(Debug, Clone)]
pub struct Faults {
    url: String,
}

#[derive(Deserialize)]
struct List {
    faults: Vec<Fault>,
}

impl Faults {
    /// Returns those of this place.
    ///
    /// # Errors
    /// When it is no local cloud: nothing else is broken on purpose.
    pub fn of(place: &Place) -> Result<Self, Error> {
        let control = place.control.as_deref().ok_or_else(|| {
            Error::invalid(format!("{} is no local cloud: nothing else is broken on purpose", place.name))
        })?;
        Ok(Self { url: format!("{control}/_claimant/faults") })
    }

    /// Returns the faults that act and the latest that ended, the newest first.
    ///
    /// # Errors
    /// When the cloud gives no answer.
    pub async fn list(&self) -> Result<Vec<Fault>, Error> {
        Ok(read::<List>(&http::get(&self.url).await?)?.faults)
    }

    /// Switches a fault on.
    ///
    /// # Errors
    /// When it is not one that can be: what is wrong, and what to give instead. Or when the cloud gives no answer.
    pub async fn begin(&self, spec: &FaultSpec) -> Result<Fault, Error> {
        let body = serde_json::to_vec(spec).map_err(|e| Error::new("the fault cannot be written").caused_by(e))?;
        read(&http::send("POST", &self.url, body).await?)
    }

    /// Ends a fault; returns it as it is then.
    ///
    /// # Errors
    /// When there is none of this number, or the cloud gives no answer.
    pub async fn end(&self, id: u64) -> Result<Fault, Error> {
        read(&http::send("DELETE", &format!("{}/{id}", self.url), Vec::new()).await?)
    }

    /// Ends all faults; returns those that acted until now.
    ///
    /// # Errors
    /// When the cloud gives no answer.
    pub async fn end_all(&self) -> Result<Vec<Fault>, Error> {
        Ok(read::<List>(&http::send("DELETE", &self.url, Vec::new()).await?)?.faults)
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer).map_err(|e| Error::new("the local cloud answered what is no fault").caused_by(e))
}
