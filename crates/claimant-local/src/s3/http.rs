//! S3 over HTTP: the requests and answers of single objects.

use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Router, body};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use super::buckets::{Condition, Fault, KEPT_MAX_BYTES, OBJECT_MAX_BYTES, Object, S3, hex};
use super::chunks::{self, CHECKSUM};
use crate::arn::ACCOUNT_ID;
use crate::{Error, endpoint};

/// The headers of an object that are kept: what it is, what its sender says of it, and its checksums.
const KEPT: [HeaderName; 6] = [
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::EXPIRES,
];
const KEPT_PREFIXES: [&str; 2] = [METADATA, CHECKSUM];
const METADATA: &str = "x-amz-meta-";

/// The conditions that a put may have.
const CONDITIONS_OF_PUT: [HeaderName; 2] = [header::IF_MATCH, header::IF_NONE_MATCH];

/// The longest key of an object, in bytes ("Naming Amazon S3 objects").
const KEY_MAX_BYTES: usize = 1024;

/// What a sender may say of an object, in bytes of names without their prefix and values ("Working with object metadata").
const METADATA_MAX_BYTES: usize = 2 * 1024;

/// The query parameters that the SDKs add and that mean nothing here.
const NAMES_OF_OPERATION: &str = "x-id=";

impl S3 {
    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        endpoint::serve("S3 endpoint", listener, router(self), shutdown).await
    }
}

fn router(s3: S3) -> Router {
    Router::new()
        .route("/{bucket}/{*key}", any(of_object))
        .fallback(|method: Method| async move { not_here(&method, "whole buckets") })
        .layer(DefaultBodyLimit::max(OBJECT_MAX_BYTES + chunks::AROUND_MAX_BYTES))
        .with_state(s3)
}

async fn of_object(
    State(s3): State<S3>,
    method: Method,
    Path((bucket, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let query = query.unwrap_or_default();
    if let Some(parameter) = query.split('&').find(|p| !p.is_empty() && !p.starts_with(NAMES_OF_OPERATION)) {
        let name = parameter.split('=').next().unwrap_or_default();
        return not_here(&method, &format!("the parameter {name}"));
    }
    if key.len() > KEY_MAX_BYTES {
        let why = format!("an object's key has at most {KEY_MAX_BYTES} bytes");
        return refusal(StatusCode::BAD_REQUEST, "KeyTooLongError", &why);
    }
    if text(&headers, "x-amz-expected-bucket-owner").is_some_and(|owner| owner != ACCOUNT_ID) {
        return refusal(StatusCode::FORBIDDEN, "AccessDenied", "the bucket belongs to another account");
    }
    let is_condition = |name: &str| name.starts_with("if-") || name.starts_with("x-amz-if-");
    let mut conditions = headers.keys().filter(|name| is_condition(name.as_str()));
    let known = match method {
        Method::PUT => &CONDITIONS_OF_PUT[..],
        Method::GET | Method::HEAD => &[header::IF_MATCH],
        _ => &[],
    };
    if let Some(name) = conditions.find(|name| !known.contains(name)) {
        return not_here(&method, name.as_str());
    }
    let done = match method {
        Method::GET | Method::HEAD => s3.get(&bucket, &key).and_then(|object| found(object, &headers)).inspect(|_| {
            s3.note("GET", &bucket, &key);
        }),
        Method::DELETE => s3.delete(&bucket, &key).map(|()| {
            s3.note("DELETE", &bucket, &key);
            StatusCode::NO_CONTENT.into_response()
        }),
        Method::PUT if headers.contains_key("x-amz-copy-source") => return not_here(&method, "CopyObject"),
        Method::PUT => match put(body, &headers) {
            Ok((object, condition)) => {
                let answer =
                    ([(header::ETAG, object.etag.clone())], answered(&object.headers, is_checksum)).into_response();
                s3.put(&bucket, key.clone(), object, &condition).map(|()| {
                    s3.note("PUT", &bucket, &key);
                    answer
                })
            }
            Err(refusal) => return *refusal,
        },
        _ => return not_here(&method, "objects"),
    };
    done.unwrap_or_else(of_fault)
}

fn of_fault(fault: Fault) -> Response {
    match fault {
        Fault::NoSuchBucket => refusal(
            StatusCode::NOT_FOUND,
            "NoSuchBucket",
            "there is no such bucket: the template has none of this name",
        ),
        Fault::NoSuchKey => refusal(StatusCode::NOT_FOUND, "NoSuchKey", "the specified key does not exist"),
        Fault::PreconditionFailed => refusal(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            "at least one of the preconditions that you specified did not hold",
        ),
        Fault::InvalidRange => refusal(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "InvalidRange",
            "the object has none of the bytes that the request asks for",
        ),
        Fault::Full => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "SlowDown",
            &format!("the local S3 keeps {KEPT_MAX_BYTES} bytes at most"),
        ),
    }
}

/// Returns what a request puts, and under which condition.
fn put(body: Result<Bytes, BytesRejection>, headers: &HeaderMap) -> Result<(Object, Condition), Box<Response>> {
    let condition = match (text(headers, "if-match"), text(headers, "if-none-match")) {
        (None, None) => Condition::None,
        (None, Some("*")) => Condition::Absent,
        (Some(etag), None) if etag != "*" => Condition::Is(format!("\"{}\"", etag.trim_matches('"'))),
        _ => return Err(Box::new(not_here(&Method::PUT, "conditions other than If-Match: ETAG and If-None-Match: *"))),
    };
    let refused = |code, why: &str| Box::new(refusal(StatusCode::BAD_REQUEST, code, why));
    let too_large = || refused("EntityTooLarge", &format!("an object has at most {OBJECT_MAX_BYTES} bytes here"));
    let (bytes, headers) = chunks::whole(body.map_err(|_| too_large())?, headers).ok_or_else(|| {
        refused("IncompleteBody", "the body is not in the chunks of aws-chunked that its headers say")
    })?;
    if bytes.len() > OBJECT_MAX_BYTES {
        return Err(too_large());
    }
    let metadata =
        headers.iter().filter_map(|(name, value)| Some(name.as_str().strip_prefix(METADATA)?.len() + value.len()));
    if metadata.sum::<usize>() > METADATA_MAX_BYTES {
        return Err(refused(
            "MetadataTooLarge",
            &format!("an object's metadata has at most {METADATA_MAX_BYTES} bytes"),
        ));
    }
    Ok((object(bytes, &headers)?, condition))
}

/// Returns an object whose digests are right.
fn object(bytes: Bytes, headers: &HeaderMap) -> Result<Object, Box<Response>> {
    let sha256 = text(headers, "x-amz-content-sha256").unwrap_or_default();
    let digest = Sha256::digest(&bytes);
    if sha256.len() == 64 && sha256 != hex(&digest) {
        return Err(Box::new(refusal(
            StatusCode::BAD_REQUEST,
            "XAmzContentSHA256Mismatch",
            "the body is not what x-amz-content-sha256 says",
        )));
    }
    if text(headers, "x-amz-checksum-sha256").is_some_and(|given| given != STANDARD.encode(digest)) {
        let why = "the body is not what x-amz-checksum-sha256 says";
        return Err(Box::new(refusal(StatusCode::BAD_REQUEST, "BadDigest", why)));
    }
    if text(headers, "content-md5").is_some_and(|given| given != STANDARD.encode(Md5::digest(&bytes))) {
        return Err(Box::new(refusal(StatusCode::BAD_REQUEST, "BadDigest", "the body is not what Content-MD5 says")));
    }
    let kept =
        |name: &HeaderName| KEPT.contains(name) || KEPT_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix));
    let headers = headers.iter().filter(|(name, _)| kept(name));
    let headers = headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    Ok(Object::new(bytes, headers.collect()))
}

/// The checksums, which are of the whole object, only where the request asks for them, and for all of it.
fn found(object: Object, asked: &HeaderMap) -> Result<Response, Fault> {
    let is_other = |etag: &str| etag != "*" && etag.trim_matches('"') != object.etag.trim_matches('"');
    if text(asked, "if-match").is_some_and(is_other) {
        return Err(Fault::PreconditionFailed);
    }
    let (of, part) = (object.bytes.len(), part(text(asked, "range"), object.bytes.len())?);
    let is_whole = part.is_none();
    let with_checksums = is_whole && text(asked, "x-amz-checksum-mode").is_some_and(|mode| mode == "ENABLED");
    let headers = answered(&object.headers, |name| with_checksums || !is_checksum(name));
    let modified = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(object.modified_ms));
    let own = [(header::ETAG, object.etag), (header::LAST_MODIFIED, modified), (header::ACCEPT_RANGES, "bytes".into())];
    Ok(match part {
        None => (own, headers, Body::from(object.bytes)).into_response(),
        Some(Range { start, end }) => {
            let place = [(header::CONTENT_RANGE, format!("bytes {start}-{}/{of}", end - 1))];
            (StatusCode::PARTIAL_CONTENT, own, place, headers, Body::from(object.bytes.slice(start..end)))
                .into_response()
        }
    })
}

/// Returns the part of so many bytes that a request asks for. `None` is all of them: so is what is no range, and several of them.
fn part(asked: Option<&str>, of: usize) -> Result<Option<Range<usize>>, Fault> {
    let Some((first, last)) = asked.and_then(|asked| asked.strip_prefix("bytes=")?.split_once('-')) else {
        return Ok(None);
    };
    let part = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last => first..of.min(last.saturating_add(1)),
        (Ok(first), _) if last.is_empty() => first..of,
        (_, Ok(count)) if first.is_empty() => of.saturating_sub(count)..of,
        _ => return Ok(None),
    };
    if part.is_empty() { Err(Fault::InvalidRange) } else { Ok(Some(part)) }
}

fn is_checksum(name: &str) -> bool {
    name.starts_with(CHECKSUM)
}

fn answered(headers: &[(String, String)], shown: impl Fn(&str) -> bool) -> HeaderMap {
    let headers = headers.iter().filter(|(name, _)| shown(name));
    // Each was in a request: it is a header.
    headers.filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value.parse().ok()?))).collect()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn not_here(method: &Method, what: &str) -> Response {
    let why = format!(
        "the local S3 does not support {method} with {what}: it has PutObject, GetObject, HeadObject and DeleteObject of single objects, by path"
    );
    refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &why)
}

/// An error as the SDKs read it. Names from the request may be in it: what XML would take for markup is left out.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    let message = message.replace(['&', '<', '>'], "");
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    (status, [(header::CONTENT_TYPE, "application/xml")], body::Body::from(xml)).into_response()
}
