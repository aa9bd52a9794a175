//! The local cloud's S3 endpoint, with the real SDK: here, since no other crate has that.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::s3::S3;
use claimant_local::stack::Stack;
use tokio::net::TcpListener;

use super::client;

async fn started() -> (S3, Client) {
    let s3 = S3::new();
    s3.create_bucket("payloads");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(s3.clone().serve(listener, std::future::pending()));
    (s3, client(&url))
}

fn code<E: ProvideErrorMetadata>(error: &SdkError<E>) -> &str {
    error.as_service_error().and_then(ProvideErrorMetadata::code).unwrap_or("none")
}

#[tokio::test]
async fn objects_are_put_read_and_deleted() {
    let (s3, client) = started().await;
    let key = "a/b c/ä%2F+.json";
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let put = client.put_object().bucket("payloads").key(key).content_type("text/x").metadata("of", "m-1");
    let put = put.body(ByteStream::from(bytes.clone())).send().await.unwrap();
    assert_eq!(s3.keys("payloads"), [key]);
    assert_eq!(s3.object("payloads", key), Some(bytes.clone()));
    // The SDK sends a checksum, and checks the one that comes back.
    assert!(put.checksum_crc32().is_some());
    let got =
        client.get_object().bucket("payloads").key(key).expected_bucket_owner("000000000000").send().await.unwrap();
    assert_eq!((got.content_length(), got.content_type(), got.e_tag()), (Some(300_000), Some("text/x"), put.e_tag()));
    assert_eq!((got.checksum_crc32(), got.metadata().unwrap()["of"].as_str()), (put.checksum_crc32(), "m-1"));
    assert_eq!(got.body.collect().await.unwrap().to_vec(), bytes);
    let head = client.head_object().bucket("payloads").key(key).send().await.unwrap();
    assert_eq!((head.content_length(), head.checksum_crc32()), (Some(300_000), None));
    // A second put replaces the first; a second deletion is no error.
    client.put_object().bucket("payloads").key(key).body(ByteStream::from_static(b"")).send().await.unwrap();
    assert_eq!(s3.object("payloads", key), Some(Vec::new()));
    for _ in 0..2 {
        client.delete_object().bucket("payloads").key(key).send().await.unwrap();
    }
    assert!(s3.keys("payloads").is_empty());
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_imitated_is_refused_by_name() {
    let (s3, client) = started().await;
    let get = |bucket: &str, key: &str| client.get_object().bucket(bucket).key(key);
    assert_eq!(code(&get("payloads", "none").send().await.unwrap_err()), "NoSuchKey");
    assert_eq!(code(&get("others", "none").send().await.unwrap_err()), "NoSuchBucket");
    let other = get("payloads", "none").expected_bucket_owner("111111111111").send().await.unwrap_err();
    assert_eq!(code(&other), "AccessDenied");
    assert_eq!(code(&client.list_objects_v2().bucket("payloads").send().await.unwrap_err()), "NotImplemented");
    let versions = get("payloads", "none").version_id("1").send().await.unwrap_err();
    assert_eq!(code(&versions), "NotImplemented");
    let parts = client.create_multipart_upload().bucket("payloads").key("k").send().await.unwrap_err();
    assert_eq!(code(&parts), "NotImplemented");
    let copy = client.copy_object().bucket("payloads").key("k").copy_source("payloads/none").send().await.unwrap_err();
    assert_eq!(code(&copy), "NotImplemented");
    let wrong = client.put_object().bucket("payloads").key("k").content_md5("AAAAAAAAAAAAAAAAAAAAAA==");
    let wrong = wrong.body(ByteStream::from_static(b"x")).send().await.unwrap_err();
    assert_eq!(code(&wrong), "BadDigest");
    let put = |key: &str, of: usize| client.put_object().bucket("payloads").key(key).metadata("of", "x".repeat(of));
    assert_eq!(code(&put(&"é".repeat(513), 0).send().await.unwrap_err()), "KeyTooLongError");
    assert_eq!(code(&put("k", 2047).send().await.unwrap_err()), "MetadataTooLarge");
    assert!(s3.keys("payloads").is_empty());
    assert!(put(&"é".repeat(512), 2046).send().await.is_ok());
}

const TEMPLATE: &str = "
Resources:
  Payloads: {Type: AWS::S3::Bucket}
  Named:
    Type: AWS::S3::Bucket
    Properties: {BucketName: orders-large, NotificationConfiguration: {EventBridgeConfiguration: {EventBridgeEnabled: true}}}
";

#[tokio::test]
async fn buckets_of_a_template_are_there_and_functions_are_told_where() {
    let directory = tempfile::tempdir().unwrap();
    let template = directory.path().join("template.yaml");
    std::fs::write(&template, TEMPLATE).unwrap();
    let cloud = Cloud::start(CloudConfig::new(&template, directory.path())).await.unwrap();
    let url = cloud.endpoints().s3.clone().unwrap();
    assert!(cloud.variables().contains(&("AWS_ENDPOINT_URL_S3".to_owned(), url.clone())));
    for bucket in ["payloads", "orders-large"] {
        client(&url).put_object().bucket(bucket).key("k").body(ByteStream::from_static(b"x")).send().await.unwrap();
        assert_eq!(cloud.s3().keys(bucket), ["k"]);
    }
    let not_run = cloud.stack().not_run_lines("template.yaml");
    assert!(
        matches!(&not_run[..], [one] if one.contains("S3 notifications") && one.contains("template.yaml:6")),
        "{not_run:?}"
    );
    cloud.stop().await;
    // Without a bucket there is no endpoint.
    std::fs::write(&template, "Resources: {Orders: {Type: AWS::SQS::Queue}}").unwrap();
    let cloud = Cloud::start(CloudConfig::new(&template, directory.path())).await.unwrap();
    assert!(cloud.endpoints().s3.is_none() && !cloud.variables().iter().any(|(name, _)| name == "AWS_ENDPOINT_URL_S3"));
    cloud.stop().await;
}

#[test]
fn templates_refer_to_buckets() {
    let function = "
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Handler: bootstrap
      CodeUri: worker/
      Environment: {Variables: {BUCKET: !Ref Payloads, ARN: !GetAtt Named.Arn}}
";
    let stack =
        Stack::parse(&format!("Transform: AWS::Serverless-2016-10-31{TEMPLATE}{function}"), &Default::default());
    let stack = stack.unwrap();
    assert_eq!(stack.buckets, ["payloads", "orders-large"]);
    let environment = &stack.functions[0].environment;
    assert_eq!(
        (environment["BUCKET"].as_str(), environment["ARN"].as_str()),
        ("payloads", "arn:aws:s3:::orders-large")
    );
}
