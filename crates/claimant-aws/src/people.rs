//! The configuration of a command that a person gives: of a profile that is named, and with profiles that only the AWS CLI can
//! sign in with.

use aws_config::credential_process::CredentialProcessProvider;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, Result, SharedCredentialsProvider, future};

use crate::{http, loaded};

/// Returns the configuration of this profile and this Region, each as the environment says where `None`. A profile's credentials
/// are its own, whatever keys the environment has. Where a profile signs in with IAM Identity Center (SSO) or `aws login`, the AWS
/// CLI is asked for its credentials. Not shared, unlike [`config`](crate::config()).
pub async fn config_of(profile: Option<&str>, region: Option<&str>) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(profile) = profile {
        loader = loader.profile_name(profile);
    }
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    let config = loaded(loader).await;
    let sdk = match profile {
        // The default chain would take the keys of the environment first, and so work on another account than the one that was named.
        Some(profile) => {
            let known =
                ProviderConfig::default().with_region(config.region().cloned()).with_http_client(http::client());
            let of_profile = ProfileFileCredentialsProvider::builder().configure(&known).profile_name(profile).build();
            Some(SharedCredentialsProvider::new(of_profile))
        }
        None => config.credentials_provider(),
    };
    let Some(sdk) = sdk else { return config };
    let credentials = OfPerson { sdk, profile: profile.map(str::to_owned) };
    config.into_builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build()
}

/// The credentials that the SDK finds; of a profile that it is built without the means for, those that the AWS CLI has.
#[derive(Debug)]
struct OfPerson {
    sdk: SharedCredentialsProvider,
    profile: Option<String>,
}

impl OfPerson {
    async fn credentials(&self) -> Result {
        match self.sdk.provide_credentials().await {
            Err(error @ CredentialsError::InvalidConfiguration(_)) => {
                let command = exports(self.profile.as_deref());
                let exported = CredentialProcessProvider::new(command.clone()).provide_credentials().await;
                exported.map_err(|cli| {
                    CredentialsError::invalid_configuration(format!(
                        "`{command}`, which is asked where a profile signs in with IAM Identity Center (SSO) or `aws login`, gave no \
                         credentials: {}. Sign in with `aws sso login`, or set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and \
                         AWS_SESSION_TOKEN (without the AWS CLI: {})",
                        told(&cli),
                        told(&error),
                    ))
                })
            }
            found => found,
        }
    }
}

impl ProvideCredentials for OfPerson {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.credentials())
    }
}

/// Returns the command of the AWS CLI, from its second version on, that prints a profile's credentials as a process does.
fn exports(profile: Option<&str>) -> String {
    let of = profile.map(|profile| format!(" --profile '{}'", profile.replace('\'', r"'\''"))).unwrap_or_default();
    format!("aws configure export-credentials --format process{of}")
}

/// Returns what the error was made of, without what its kind says.
fn told(error: &CredentialsError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_one_word_of_the_shell() {
        assert_eq!(exports(None), "aws configure export-credentials --format process");
        let odd = exports(Some("it's; rm -r $HOME"));
        assert_eq!(odd, r"aws configure export-credentials --format process --profile 'it'\''s; rm -r $HOME'");
    }
}
