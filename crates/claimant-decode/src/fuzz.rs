//! Fuzz targets: any content is decoded within its limits or rejected, and nothing of it is said.

use claimant_core::{Envelope, Message, Rejection};
use claimant_testkit::fuzz::{Bytes, hold, spoilt};

use crate::Base64;

/// The longest that is said of a content: fields of its type, a place.
const REJECTION_MAX_BYTES: usize = 400;

/// Opens or decodes; what is said of a rejected content is short and has nothing of it but names of fields.
fn check<V>(result: Result<V, Rejection>) -> Option<V> {
    result
        .map_err(|rejection| {
            let said = rejection.to_string();
            let plain = |c: char| c.is_ascii_alphanumeric() || " -_.,:*()[]`".contains(c);
            assert!(said.len() <= REJECTION_MAX_BYTES && said.chars().all(plain), "{said}");
        })
        .ok()
}

fn message(content: Vec<u8>) -> Message {
    Message::new("m-1", "").expect("a short id").unpacked(content)
}

fn open(envelope: impl Envelope, content: Vec<u8>) -> Option<Vec<u8>> {
    check(envelope.open(message(content))).map(|opened| opened[0].content().to_vec())
}

#[test]
fn base64() {
    let corpus = [&b"eyJvcmRlcl9pZCI6Im9yZC0xIn0="[..], b"-_8", b"+/8=\n", b"{\"order_id\":\"ord-1\"}"];
    hold("contents in Base64", file!(), spoilt(corpus.map(<[u8]>::to_vec).to_vec()), |Bytes(content)| {
        for envelope in [Base64::standard(), Base64::url_safe()] {
            let length = content.len();
            assert!(open(envelope, content.clone()).is_none_or(|opened| opened.len() <= length / 4 * 3 + 2));
        }
    });
}

#[cfg(feature = "gzip")]
#[test]
fn gzip() {
    use crate::gzip::tests::packed;

    const LIMIT: usize = 1_000;
    let once = packed(br#"{"order_id":"ord-1"}"#);
    let corpus = vec![packed(b""), packed(&[0; 2_000]), packed(&once), [once.clone(), once.clone()].concat(), once];
    hold("contents in gzip", file!(), spoilt(corpus), |Bytes(content)| {
        assert!(open(crate::Gzip::new().at_most(LIMIT), content).is_none_or(|opened| opened.len() <= LIMIT));
    });
}

#[cfg(feature = "protobuf")]
#[test]
fn protobuf() {
    use claimant_core::Decoder as _;
    use prost::Message as _;

    use crate::protobuf::tests::{Item, Order};

    let order = Order {
        order_id: "ord-1".to_owned(),
        items: vec![Item { sku: "TEA".to_owned(), quantity: 2 }, Item::default()],
        replaces: Some(Box::default()),
    };
    let corpus = vec![order.encode_to_vec(), Vec::new(), br#"{"order_id":"ord-1"}"#.to_vec()];
    hold("contents in Protobuf", file!(), spoilt(corpus), |Bytes(content)| {
        let decoded = check::<Order>(crate::Protobuf.decode(&content, &message(Vec::new())));
        assert!(decoded.is_none_or(|order| order.encoded_len() <= content.len() * 2));
    });
}

#[cfg(feature = "avro")]
#[test]
fn avro() {
    use claimant_core::Decoder as _;

    use crate::avro::tests::{ORDER, Order, V1, V2};

    let datum = crate::Avro::datum(V2).expect("a schema");
    let single = crate::Avro::single_object([V2, V1]).expect("two schemas");
    let corpus = vec![ORDER.to_vec(), b"\x0aord-1".to_vec(), b"\xc3\x01".to_vec(), vec![0x80; 9]];
    hold("contents in Avro", file!(), spoilt(corpus), |Bytes(content)| {
        for avro in [&datum, &single] {
            check::<Order>(avro.decode(&content, &message(Vec::new())));
        }
    });
}
