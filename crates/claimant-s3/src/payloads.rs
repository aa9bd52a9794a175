//! The bucket, its limits, and what writes, fetches and removes.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use claimant_core::error::Chain;
use claimant_core::{
    AttributeValue, BoxFuture, Confirmation, Error, ErrorKind, FetchError, Message, PayloadSink, PayloadSource,
    Pointer, Rejection, Room, Variables, Written,
};
use claimant_events::extended;
use tokio::time::timeout;

use crate::answers;

/// The largest payload that is fetched, unless set.
pub const PAYLOAD_MAX_BYTES: usize = 8 * 1024 * 1024;

/// What the payloads of one batch have in memory at most, unless set.
const ROOM_BYTES: usize = 32 * 1024 * 1024;

/// How many payloads one batch fetches at once, unless set.
const CONCURRENCY: usize = 8;

/// How long one payload may take, the SDK's retries included, unless set.
const TIMEOUT_MS: u64 = 5_000;

/// Payloads in an S3 bucket, with messages that only point to them, as the SQS Extended Client for Java and Python writes them. For
/// [`Consumer::large_payloads`](claimant_core::Consumer::large_payloads), and for a producer, which needs `s3:PutObject` and writes each
/// payload under a new random name.
///
/// Only from the buckets that are named here anything is fetched: who can send a message must not be able to make the function read
/// whatever its role may read. Needs `s3:GetObject`, and `s3:ListBucket` to tell a payload that is gone (rejected) from one that may
/// not be read (tried again).
///
/// ```no_run
/// # mod claimant { pub use claimant_core::*; pub mod s3 { pub use claimant_s3::*; } }
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// use claimant::s3::S3Payloads;
///
/// # async fn example() -> Result<(), claimant::Error> {
/// let payloads = S3Payloads::from_env("PAYLOADS_BUCKET").await?.payload_max_bytes(2 * 1024 * 1024);
/// let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).large_payloads(payloads);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct S3Payloads {
    client: Client,
    /// The one that is written to, and others that are read.
    buckets: Vec<String>,
    owner: Option<String>,
    payload_max_bytes: usize,
    room_bytes: usize,
    concurrency: usize,
    timeout: Duration,
    removes: bool,
}

impl S3Payloads {
    /// Returns payloads in this bucket: read by a consumer, written by a producer.
    #[must_use]
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        Self {
            client,
            buckets: vec![bucket.into()],
            owner: None,
            payload_max_bytes: PAYLOAD_MAX_BYTES,
            room_bytes: ROOM_BYTES,
            concurrency: CONCURRENCY,
            timeout: Duration::from_millis(TIMEOUT_MS),
            removes: false,
        }
    }

    /// Returns payloads in the bucket whose name is in this variable, through the process's shared AWS configuration.
    ///
    /// # Errors
    /// When the variable is not set, or holds no bucket's name; when an endpoint that is set for AWS [cannot be used](claimant_aws::config).
    pub async fn from_env(variable: &str) -> Result<Self, Error> {
        Self::from_variables(Variables::from_env(), variable).await
    }

    /// Returns payloads as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(mut variables: Variables, variable: &str) -> Result<Self, Error> {
        let bucket = variables.text_or_hint(variable, "give it the name of the bucket");
        if !bucket.is_empty() && !is_bucket(&bucket) {
            variables.fault(format!(
                "{variable} is {bucket:?}; a bucket's name is needed: 3 to 63 small letters, digits, dots and hyphens, not its ARN or URL; \
                 open an access point by its ARN with S3Payloads::new"
            ));
        }
        variables.finish()?;
        Ok(Self::new(Client::new(claimant_aws::config().await?), bucket))
    }

    /// Fetches payloads from this bucket too.
    #[must_use]
    pub fn also_from(mut self, bucket: impl Into<String>) -> Self {
        self.buckets.push(bucket.into());
        self
    }

    /// Uses the buckets only while they belong to this AWS account (12 digits): a bucket that was deleted can be made by another one.
    #[must_use]
    pub fn owned_by(mut self, account: impl Into<String>) -> Self {
        self.owner = Some(account.into());
        self
    }

    /// Sets the largest payload that is fetched; a message that points to a larger one is rejected. Unless set,
    /// [`PAYLOAD_MAX_BYTES`]. Decoding takes several times as much memory.
    #[must_use]
    pub fn payload_max_bytes(mut self, bytes: usize) -> Self {
        self.payload_max_bytes = bytes;
        self
    }

    /// Sets what the payloads of one batch have in memory at most; at least one of the largest. Messages whose payloads find no room
    /// are not started: they come back at once after their first receive, and later after each further one. Unless set, 32 MiB.
    #[must_use]
    pub fn batch_max_bytes(mut self, bytes: usize) -> Self {
        self.room_bytes = bytes;
        self
    }

    /// Sets how many payloads one batch fetches at once; at least one. Unless set, 8.
    #[must_use]
    pub fn at_once(mut self, fetches: usize) -> Self {
        self.concurrency = fetches;
        self
    }

    /// Sets how long fetching or writing one payload may take, the SDK's retries included. Unless set, 5 s. All fetches of a batch end
    /// in the first quarter of the invocation's time, and a producer gives each of its tries 20 s at most to write one.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Removes a payload once its message is completed and SQS has confirmed that the message is deleted. Needs `s3:DeleteObject` and
    /// `sqs:DeleteMessage`.
    ///
    /// Leave it off where several queues get one message (a topic with several subscriptions), since the first to finish would take
    /// the payload from the others; and where a message can be received again while it is worked on: a standard queue's visibility timeout
    /// has to be longer than the batching window and the function's timeout together, since such a queue confirms the deletion of what
    /// it has delivered again, without deleting it. A payload whose removal is not confirmed in time stays: let a lifecycle rule of the bucket
    /// expire what is older than the queue keeps messages.
    #[must_use]
    pub fn remove_when_done(mut self) -> Self {
        self.removes = true;
        self
    }

    async fn put(&self, payload: &[u8]) -> Result<Written, Error> {
        let (bucket, key) = (&self.buckets[0], uuid::Uuid::new_v4().to_string());
        let put = self.client.put_object().bucket(bucket).key(&key).set_expected_bucket_owner(self.owner.clone());
        let put = put.body(ByteStream::from(payload.to_vec())).send().await;
        let put = put.map_err(|error| answers::not_done("take the payload", "s3:PutObject", &error))?;
        if put.e_tag().is_none() {
            return Err(Error::new(answers::no_etag()).of_kind(ErrorKind::Unavailable));
        }
        let size = AttributeValue::number(payload.len());
        Ok(Written::new(extended::message_body(bucket, &key), extended::SIZE_ATTRIBUTE, size))
    }

    async fn get(&self, pointer: &Pointer, room: &Room) -> Result<Vec<u8>, FetchError> {
        let get = self.client.get_object().bucket(&pointer.container).key(&pointer.name);
        let answer = get.set_expected_bucket_owner(self.owner.clone()).send().await;
        let mut object = answer.map_err(|error| answers::not_fetched(&error))?;
        let unavailable = |why: String| FetchError::Unavailable(why);
        if object.e_tag().is_none() {
            return Err(unavailable(answers::no_etag()));
        }
        if object.content_range().is_some() {
            return Err(unavailable(answers::a_part()));
        }
        let length = object.content_length().and_then(|length| u64::try_from(length).ok());
        let length = length.ok_or_else(|| unavailable("S3 did not say how long the payload is".to_owned()))?;
        let too_large = || FetchError::Rejected(extended::too_large(length, self.payload_max_bytes));
        let bytes =
            usize::try_from(length).ok().filter(|bytes| *bytes <= self.payload_max_bytes).ok_or_else(too_large)?;
        room.take(bytes).await?;
        let mut payload = Vec::with_capacity(bytes);
        while let Some(chunk) = object.body.next().await {
            let chunk = chunk.map_err(|error| unavailable(format!("the payload broke off: {}", Chain(&error))))?;
            if chunk.len() > bytes - payload.len() {
                return Err(unavailable("the payload is longer than S3 said".to_owned()));
            }
            payload.extend_from_slice(&chunk);
        }
        if payload.len() < bytes {
            return Err(unavailable("the payload is shorter than S3 said".to_owned()));
        }
        Ok(payload)
    }

    async fn delete(&self, pointer: &Pointer) -> Confirmation {
        let delete = self.client.delete_object().bucket(&pointer.container).key(&pointer.name);
        match delete.set_expected_bucket_owner(self.owner.clone()).send().await {
            Ok(_) => Confirmation::Confirmed,
            Err(error) => {
                let reason = answers::not_done("remove a payload", "s3:DeleteObject", &error);
                tracing::warn!(%reason, "the payload of a completed message was not removed");
                Confirmation::Unconfirmed
            }
        }
    }
}

impl PayloadSource for S3Payloads {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        let pointer = extended::of_message(message, self.payload_max_bytes)?;
        match pointer {
            Some(pointer) if !self.buckets.contains(&pointer.container) => Err(Rejection::new(
                "the pointer to the payload names a bucket that nothing is fetched from: name it with also_from, if it is yours",
            )),
            pointer => Ok(pointer),
        }
    }

    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        within: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        let within = within.min(self.timeout);
        let no_answer =
            move |_| FetchError::Unavailable(format!("S3 did not give the payload within {} ms", within.as_millis()));
        Box::pin(async move {
            timeout(within, self.get(pointer, room)).await.unwrap_or_else(|elapsed| Err(no_answer(elapsed)))
        })
    }

    fn room_bytes(&self) -> usize {
        self.room_bytes.max(self.payload_max_bytes)
    }

    fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }

    fn removes(&self) -> bool {
        self.removes
    }

    fn remove<'a>(&'a self, pointer: &'a Pointer, within: Duration) -> BoxFuture<'a, Confirmation> {
        let within = within.min(self.timeout);
        Box::pin(async move { timeout(within, self.delete(pointer)).await.unwrap_or(Confirmation::Unconfirmed) })
    }
}

impl PayloadSink for S3Payloads {
    fn write<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Written, Error>> {
        let no_answer = || {
            let within = self.timeout.as_millis();
            let why =
                format!("S3 did not confirm the payload within {within} ms: S3Payloads::timeout can give it more");
            Err(Error::new(why).of_kind(ErrorKind::Unavailable))
        };
        Box::pin(async move { timeout(self.timeout, self.put(payload)).await.unwrap_or_else(|_| no_answer()) })
    }
}

fn is_bucket(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-');
    (3..=63).contains(&name.len()) && name.bytes().all(allowed)
}
