//! Running a consumer on AWS Lambda.

use claimant_core::{Consumer, Error};
#[doc(inline)]
pub use claimant_lambda::{Service, Settings};

/// Runs a consumer as a Lambda function until the runtime ends it: the last call in `main`. Reads the function's
/// [`Settings`] from the environment; the first call that does so lists every fault, unknown `CLAIMANT_` names included.
///
/// # Errors
/// When the settings of the environment or of the consumer are not usable, or there is no Lambda runtime to talk to.
pub async fn run<T>(consumer: Consumer<T>) -> Result<(), Error>
where
    T: Send + 'static,
{
    claimant_lambda::run(crate::variables(), consumer).await
}
