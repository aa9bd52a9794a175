//! The configuration of a command that a person gives: of a profile that is named, and with profiles that only the AWS CLI can
//! sign in with. Credentials are kept: to ask for them can take a process, a request, or a person's finger.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use aws_config::credential_process::CredentialProcessProvider;
use aws_config::identity::IdentityCache;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, SharedCredentialsProvider, future};
use claimant_core::error::Chain;
use claimant_core::{Clock as _, Error, SystemClock};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::configured::Whose;
use crate::credentials::Failure;
use crate::endpoints::Endpoints;
use crate::{loaded, with_limits};

/// For how long a person may be asked for something before a command goes on without credentials.
const SIGN_IN_MAX: Duration = Duration::from_secs(120);

/// After so long without credentials, a person is told what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(6);

/// The longest that is shown of what the SDK, a program or the AWS CLI said.
const SAID_MAX_CHARS: usize = 300;

/// For how long the AWS CLI is not asked again after it gave none.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// Credentials that expire sooner are not used any more.
const LEFT_MIN: Duration = Duration::from_secs(60);

/// Returns the configuration of this profile and this Region, each as the environment says where `None`. A profile's credentials
/// are its own, whatever keys the environment has. Where the SDK has none for a profile, as where it signs in with IAM Identity Center
/// (SSO), `aws login` or MFA, the AWS CLI is asked. They are kept until they are about to expire. Not shared, unlike [`config`](crate::config()).
///
/// # Errors
/// As of [`config`](crate::config()).
pub async fn config_of(profile: Option<&str>, region: Option<&str>) -> std::result::Result<SdkConfig, Error> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    let config = loaded(loader, Whose::Command(profile)).await?;
    let sdk = match profile {
        // The default chain would take the keys of the environment first, and so work on another account than the one that was named.
        Some(profile) => {
            let known =
                ProviderConfig::default().with_region(config.region().cloned()).with_http_client(crate::http_client());
            let of_profile = ProfileFileCredentialsProvider::builder().configure(&known).profile_name(profile).build();
            Some(SharedCredentialsProvider::new(of_profile))
        }
        None => config.credentials_provider(),
    };
    let Some(sdk) = sdk else { return Ok(config) };
    let of_environment = std::env::var("AWS_PROFILE").ok().filter(|profile| !profile.is_empty());
    let profile = profile.map(str::to_owned).or(of_environment);
    let credentials = SharedCredentialsProvider::new(OfPerson::new(sdk, profile));
    // By itself the SDK gives them up after 19 s.
    let cache = IdentityCache::lazy().load_timeout(SIGN_IN_MAX).build();
    Ok(config.into_builder().identity_cache(cache).credentials_provider(credentials).build())
}

/// Returns the configuration of this Region, these endpoints and these credentials: none of the environment's, nor the kinds of endpoints that
/// a profile asks for, with which the SDK refuses an endpoint that is named.
pub async fn config_at(region: String, endpoints: Endpoints, credentials: Credentials) -> SdkConfig {
    let loader = with_limits(aws_config::defaults(BehaviorVersion::latest())).region(Region::new(region));
    let loader = loader.use_fips(false).use_dual_stack(false).credentials_provider(credentials);
    let mut config = loader.load().await.into_builder();
    config.set_endpoint_url(None);
    config.service_config(endpoints).build()
}

/// Has the credentials of a configuration at hand, if there are any to be had, before a request whose time is short: a person may be asked
/// for something. What is wrong with them is told by that request.
pub async fn sign_in(config: &SdkConfig) {
    if let Some(credentials) = config.credentials_provider() {
        let _ = timeout(SIGN_IN_MAX, credentials.provide_credentials()).await;
    }
}

/// The credentials that the SDK finds; of a profile for which it finds none, those that the AWS CLI has.
#[derive(Debug)]
struct OfPerson(Arc<Person>);

#[derive(Debug)]
struct Person {
    sdk: SharedCredentialsProvider,
    /// The one that is named, by an option or the environment.
    profile: Option<String>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    found: Option<Credentials>,
    /// When the AWS CLI gave none, and why: a request whose time is short is told that.
    failed: Option<Failure>,
}

impl OfPerson {
    fn new(sdk: SharedCredentialsProvider, profile: Option<String>) -> Self {
        Self(Arc::new(Person { sdk, profile, kept: Mutex::default() }))
    }
}

impl Person {
    async fn credentials(&self) -> Result {
        let mut kept = self.kept.lock().await;
        let soon = UNIX_EPOCH + Duration::from_millis(SystemClock.now().as_millis()) + LEFT_MIN;
        if let Some(found) = kept.found.as_ref().filter(|found| found.expiry().is_none_or(|expiry| expiry > soon)) {
            return Ok(found.clone());
        }
        if let Some(error) = kept.failed.as_ref().and_then(|failure| failure.within(FAILED_FOR)) {
            return Err(error);
        }
        let Kept { found: kept, failed } = &mut *kept;
        let mut found = pin!(self.found(failed));
        let found = match timeout(TOLD_AFTER, &mut found).await {
            Ok(found) => found?,
            Err(_) => {
                let of =
                    self.profile.as_ref().map_or_else(String::new, |profile| format!(" of the profile {profile:?}"));
                tracing::warn!(
                    "waiting for credentials{of}, {} s at most: a program or a service that gives them has not answered yet",
                    SIGN_IN_MAX.as_secs()
                );
                found.await?
            }
        };
        Ok(kept.insert(found).clone())
    }

    /// Asks the SDK, and then the AWS CLI.
    async fn found(&self, failed: &mut Option<Failure>) -> Result {
        match self.sdk.provide_credentials().await {
            Err(error) if self.profile.is_some() || matches!(error, CredentialsError::InvalidConfiguration(_)) => {
                self.exported(&error).await.inspect_err(|error| *failed = Some(Failure::of(error)))
            }
            found => found,
        }
    }

    /// Returns the credentials that the AWS CLI has for the profile that the SDK took, or why it has none.
    async fn exported(&self, alone: &CredentialsError) -> Result {
        let command = exports(self.profile.as_deref().unwrap_or("default"));
        let exported = CredentialProcessProvider::new(command.clone()).provide_credentials().await;
        exported.map_err(|cli| CredentialsError::invalid_configuration(none_of_either(alone, &command, &cli)))
    }
}

impl ProvideCredentials for OfPerson {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let person = Arc::clone(&self.0);
        // To its end, also if the request that waits for it does not: who was asked for something is not asked again.
        let found = tokio::spawn(async move { person.credentials().await });
        future::ProvideCredentials::new(async {
            found.await.unwrap_or_else(|end| Err(CredentialsError::unhandled(end)))
        })
    }
}

/// Returns the command of the AWS CLI, from its second version on, that prints a profile's credentials as a process does.
fn exports(profile: &str) -> String {
    format!("aws configure export-credentials --format process --profile '{}'", profile.replace('\'', r"'\''"))
}

/// Returns why there are no credentials: what the SDK met, and what the AWS CLI said to this command.
fn none_of_either(alone: &CredentialsError, command: &str, cli: &CredentialsError) -> String {
    let alone = told(alone);
    // The SDK names the features that it was built without.
    let alone = match alone.contains("cargo feature") {
        true => "only the AWS CLI can sign in as it does".to_owned(),
        false => {
            said(&alone).unwrap_or_else(|| "the program that gives its credentials failed, and said nothing".to_owned())
        }
    };
    let said = said(&told(cli)).unwrap_or_else(|| "nothing".to_owned());
    format!(
        "the profile has none: {alone}. The AWS CLI (version 2), which is asked where one signs in with IAM Identity Center (SSO), `aws login` or \
         MFA, gave none either (`{command}`: {said}). If the profile is of that kind, sign in with `aws sso login` or `aws login`; or set \
         AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    )
}

/// Returns the line that says why, at most so long: where a program failed, of what that wrote. It may write its usage, too, or nothing.
fn said(told: &str) -> Option<String> {
    let said = told.split_once("Stderr:").map_or(told, |(_, by_program)| by_program);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let line = lines.clone().find(is_error).or_else(|| lines.next_back())?;
    Some(line.trim_end_matches('.').chars().take(SAID_MAX_CHARS).collect())
}

/// Returns what the error was made of, without what its kind says.
fn told(error: &CredentialsError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| Chain(source).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;

    use super::*;

    /// Counts how often it is asked, and takes a while, as a person does.
    #[derive(Debug)]
    struct Counting {
        asked: Arc<AtomicUsize>,
        expiry: Option<SystemTime>,
    }

    impl ProvideCredentials for Counting {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            self.asked.fetch_add(1, Ordering::SeqCst);
            future::ProvideCredentials::new(async {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(Credentials::new("id", "secret", None, self.expiry, "test"))
            })
        }
    }

    /// Returns credentials, and how often they were asked for.
    fn counted(expiry: Option<SystemTime>) -> (OfPerson, Arc<AtomicUsize>) {
        let asked = Arc::<AtomicUsize>::default();
        let sdk = SharedCredentialsProvider::new(Counting { asked: Arc::clone(&asked), expiry });
        (OfPerson::new(sdk, None), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_are_asked_for_again_only_before_they_expire() {
        let now = UNIX_EPOCH + Duration::from_millis(SystemClock.now().as_millis());
        for (expiry, expected) in
            [(None, 1), (Some(now + Duration::from_secs(86_400)), 1), (Some(now + Duration::from_secs(30)), 3)]
        {
            let (of_person, asked) = counted(expiry);
            for _ in 0..3 {
                of_person.provide_credentials().await.unwrap();
            }
            assert_eq!(asked.load(Ordering::SeqCst), expected, "{expiry:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_wait_for_a_person_does_not_ask_twice() {
        let (of_person, asked) = counted(None);
        for _ in 0..2 {
            assert!(timeout(Duration::from_secs(2), of_person.provide_credentials()).await.is_err());
        }
        of_person.provide_credentials().await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    /// Whatever is asked first, a queue or a table: how long its client waits, only the cache can be asked.
    #[tokio::test]
    async fn a_person_has_two_minutes() {
        for profile in [None, Some("prod")] {
            let cache = format!("{:?}", config_of(profile, Some("eu-west-1")).await.unwrap().identity_cache());
            assert!(cache.contains("load_timeout: Some(120s)"), "{cache}");
        }
    }

    #[test]
    fn an_error_says_first_what_the_sdk_met() {
        let caused = |why: &'static str, cause: &'static str| {
            CredentialsError::provider_error(Error::new(why).caused_by(Error::new(cause)))
        };
        let usage = "Error retrieving credentials: external process exited with code exit status: 2. Stderr: \nusage: aws [options]\n\naws: error: no \
                     such subcommand:\n\nlist | get\n";
        for (alone, cli, begins, holds) in [
            (
                caused("no role", "AccessDenied"),
                usage,
                "the profile has none: no role: AccessDenied. The",
                "aws: error: no such subcommand:).",
            ),
            (
                caused("no", "these cargo feature(s): sso."),
                "x. Stderr: sh: aws: not found\n",
                "the profile has none: only the AWS CLI ",
                "sh: aws: not found).",
            ),
            (caused("a", "b"), "x. Stderr: a\nb\n\n", "the profile has none: a: b. The", "(`command`: b)."),
            (caused("a", "b"), "x. Stderr: ", "the profile has none: a: b. The", "(`command`: nothing)."),
        ] {
            let said = none_of_either(&alone, "command", &CredentialsError::provider_error(cli));
            assert!(said.starts_with(begins) && said.contains(holds), "{said}");
        }
        // A program of the profile can write as much as it wants.
        let long = format!("x. Stderr: {}", "é".repeat(5_000));
        for (alone, begins) in [
            (usage, "the profile has none: aws: error: no such subcommand:. The AWS CLI"),
            (
                "x. Stderr: ",
                "the profile has none: the program that gives its credentials failed, and said nothing. The",
            ),
            (&long, "the profile has none: éé"),
        ] {
            let alone = CredentialsError::provider_error(alone.to_owned());
            let said = none_of_either(&alone, "command", &CredentialsError::provider_error("x"));
            assert!(said.starts_with(begins) && said.lines().count() == 1 && said.len() < 1_500, "{said}");
        }
    }

    #[test]
    fn a_profile_is_one_word_of_the_shell() {
        let odd = exports("it's; rm -r $HOME");
        assert_eq!(odd, r"aws configure export-credentials --format process --profile 'it'\''s; rm -r $HOME'");
    }
}
