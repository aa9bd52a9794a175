//! Payloads in Avro.

use std::fmt;

use apache_avro::headers::{HeaderBuilder as _, RabinFingerprintHeader};
use apache_avro::{AvroResult, Schema};
use claimant_core::decode::shape_fault;
use claimant_core::{Decoder, Error, Message, Rejection};
use serde::de::DeserializeOwned;

use crate::cursor::{Cursor, Fault, VALUES_DEFAULT};
use crate::datum::Value;
use crate::shape::Shape;

/// Decodes contents in Avro to types that implement serde's `Deserialize`.
///
/// The schemas are those that datums were *written* with. They are not resolved to another one: fields get to the type by their names,
/// and serde's attributes say what becomes of one that an older writer did not have (`#[serde(default)]`) or named otherwise
/// (`#[serde(alias = "…")]`). Fields that the type does not have are skipped.
///
/// A datum has to end where the content ends. One that is nested deeper than 128 or has more than
/// [`VALUES_DEFAULT`](crate::VALUES_DEFAULT) values is rejected before anything is made of it; [`at_most`](Self::at_most) sets
/// another number. Object container files are not read.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_decode::{Avro, Base64};
/// # use claimant::{Context, HandlerError, memory::MemoryStore};
/// #[derive(serde::Deserialize)]
/// struct Order {
///     order_id: String,
///     #[serde(default)]
///     total_cents: i64,
/// }
///
/// const V1: &str = r#"{"type": "record", "name": "Order", "fields": [{"name": "order_id", "type": "string"}]}"#;
/// const V2: &str = r#"{"type": "record", "name": "Order", "fields": [
///     {"name": "order_id", "type": "string"}, {"name": "total_cents", "type": "long"}]}"#;
///
/// async fn confirm(order: Order, _: Context) -> Result<(), HandlerError> {
///     println!("confirming {} of {} cents", order.order_id, order.total_cents);
///     Ok(())
/// }
///
/// let consumer = claimant::decoded_by(Avro::single_object([V2, V1])?)
///     .consumer("order-confirmation", MemoryStore::new(), confirm)
///     .key(|order: &Order| &order.order_id)
///     .envelope(Base64::standard());
/// # Ok::<_, claimant::Error>(())
/// ```
pub struct Avro {
    writers: Vec<Writer>,
    values_max: usize,
}

/// What is known of a schema that datums were written with.
struct Writer {
    /// What stands in front of its datums.
    header: Vec<u8>,
    shape: Shape,
}

impl Avro {
    /// Returns the decoder of datums with nothing in front of them, which were all written with this schema, in JSON.
    ///
    /// # Errors
    /// When the schema is not usable.
    pub fn datum(schema: &str) -> Result<Self, Error> {
        Self::headed([(Vec::new(), schema)])
    }

    /// Returns the decoder of Avro's single-object encoding: in front of a datum are the bytes C3 01 and the fingerprint of the schema
    /// that it was written with, which is one of these.
    ///
    /// # Errors
    /// When a schema is not usable, two are the same, or there is none.
    pub fn single_object<'a>(schemas: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let header = |schema: &Schema| RabinFingerprintHeader::from_schema(schema).build_header();
        Self::build(schemas.into_iter().map(|schema| (None, schema)), header)
    }

    /// Returns the decoder of datums behind headers of your own, each for the schema beside it: those of a schema registry, for
    /// example. AWS Glue's are the bytes 3 and 0 and the 16 of the schema version's UUID, Confluent's are 0 and the four of the
    /// schema's id.
    ///
    /// # Errors
    /// When a schema is not usable, a header begins with another one, or there is none.
    pub fn headed<'a>(schemas: impl IntoIterator<Item = (Vec<u8>, &'a str)>) -> Result<Self, Error> {
        Self::build(schemas.into_iter().map(|(header, schema)| (Some(header), schema)), |_| Vec::new())
    }

    fn build<'a>(
        schemas: impl Iterator<Item = (Option<Vec<u8>>, &'a str)>,
        header_of: impl Fn(&Schema) -> Vec<u8>,
    ) -> Result<Self, Error> {
        let mut writers: Vec<Writer> = Vec::new();
        for (index, (header, schema)) in schemas.enumerate() {
            let unusable = |error| Error::invalid(format!("Avro schema {} is not usable", index + 1)).caused_by(error);
            let writer = Writer::new(schema, header, &header_of).map_err(unusable)?;
            let alike =
                |other: &Writer| writer.header.starts_with(&other.header) || other.header.starts_with(&writer.header);
            if let Some(other) = writers.iter().position(alike) {
                return Err(Error::invalid(format!(
                    "datums of Avro schema {} cannot be distinguished from those of schema {}: their headers are alike",
                    index + 1,
                    other + 1
                )));
            }
            writers.push(writer);
        }
        if writers.is_empty() {
            return Err(Error::invalid("there is no Avro schema: name those that datums are written with"));
        }
        Ok(Self { writers, values_max: VALUES_DEFAULT })
    }

    /// Sets how many values a datum has at most: each record, array, number, text and so on is one.
    #[must_use]
    pub fn at_most(self, values: usize) -> Self {
        Self { values_max: values, ..self }
    }
}

impl Writer {
    fn new(schema: &str, header: Option<Vec<u8>>, header_of: impl Fn(&Schema) -> Vec<u8>) -> AvroResult<Self> {
        let schema = Schema::parse_str(schema)?;
        let header = header.unwrap_or_else(|| header_of(&schema));
        Ok(Self { header, shape: Shape::of(&schema)? })
    }
}

impl<T: DeserializeOwned> Decoder<T> for Avro {
    fn decode(&self, content: &[u8], message: &Message) -> Result<T, Rejection> {
        let Some(writer) = self.writers.iter().find(|writer| content.starts_with(&writer.header)) else {
            return Err(message.rejection("begins with the header of no Avro schema that is known here"));
        };
        let header = writer.header.len();
        let mut cursor = Cursor::new(&writer.shape, &content[header..], self.values_max);
        let payload = serde_path_to_error::deserialize(Value::new(&mut cursor));
        let fault = match payload {
            Ok(payload) => match cursor.end() {
                Ok(()) => return Ok(payload),
                Err(fault) => format!("is not a datum of its Avro schema: {fault}"),
            },
            Err(error) => match error.inner() {
                Fault::Datum(fault) => format!("is not a datum of its Avro schema: {fault}"),
                Fault::Shape(fault) => format!("has the wrong shape at path {}", shape_fault(fault, error.path())),
            },
        };
        let place = format!("at byte {}", header + cursor.at());
        Err(message.rejection(claimant_core::Fault::new(fault).at(place)))
    }
}

impl fmt::Debug for Avro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Avro").field("schemas", &self.writers.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::cursor::DEPTH_MAX;

    #[derive(Debug, PartialEq, Deserialize)]
    pub(crate) struct Order {
        order_id: String,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        note: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    pub(crate) struct Item {
        quantity: i32,
    }

    pub(crate) const V1: &str =
        r#"{"type":"record","name":"shop.Order","fields":[{"name":"order_id","type":"string"}]}"#;

    pub(crate) const V2: &str = r#"{"type":"record","name":"Order","namespace":"shop","fields":[
        {"name":"order_id","type":"string"},
        {"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[
            {"name":"quantity","type":"int"},{"name":"gift","type":"boolean"}]}}},
        {"name":"more","type":{"type":"map","values":["null","Item","double",{"type":"enum","name":"E","symbols":["A","B"]}]}},
        {"name":"hash","type":{"type":"fixed","name":"Hash","size":2}},
        {"name":"note","type":["null","string"]}]}"#;

    /// `ord-1`, two items in two blocks (one with its length), a map of two values, a hash, a note.
    pub(crate) const ORDER: &[u8] =
        b"\x0aord-1\x02\x06\x01\x01\x04\x08\x00\x00\x04\x02a\x02\x02\x01\x02b\x06\x02\x00\xab\xcd\x02\x06tea";

    fn decode<T: DeserializeOwned>(avro: &Avro, content: &[u8]) -> Result<T, String> {
        let message = Message::new("m-1", "").unwrap();
        avro.decode(content, &message).map_err(|rejection| rejection.to_string())
    }

    #[test]
    fn avro_is_decoded_by_the_schema_that_it_was_written_with() {
        let order = |quantities: &[i32], note: Option<&str>| Order {
            order_id: "ord-1".to_owned(),
            items: quantities.iter().map(|quantity| Item { quantity: *quantity }).collect(),
            note: note.map(str::to_owned),
        };
        let avro = Avro::datum(V2).unwrap();
        assert_eq!(decode(&avro, ORDER), Ok(order(&[3, 4], Some("tea"))));
        assert_eq!(decode(&Avro::datum(V1).unwrap(), b"\x0aord-1"), Ok(order(&[], None)));
        // The fingerprints are CRC-64-AVRO of the canonical forms, little-endian.
        let single = Avro::single_object([V2, V1]).unwrap();
        let [v2, v1] = [0, 1].map(|index: usize| single.writers[index].header.clone());
        assert!(v1 != v2 && v1.starts_with(&[0xc3, 0x01]) && v1.len() == 10);
        assert_eq!(decode(&single, &[&v2, ORDER].concat()), Ok(order(&[3, 4], Some("tea"))));
        assert_eq!(decode(&single, &[&v1[..], b"\x0aord-1"].concat()), Ok(order(&[], None)));
        let glue = Avro::headed([([&[3, 0][..], &[7; 16]].concat(), V1)]).unwrap();
        assert_eq!(decode(&glue, &[&[3, 0][..], &[7; 16], b"\x0aord-1"].concat()), Ok(order(&[], None)));
        for content in [&b"\x0aord-1"[..], &v1[..9], b"", b"\xc3\x01secret-8\x0aord-1"] {
            let said = decode::<Order>(&single, content).unwrap_err();
            assert!(said.contains("begins with the header of no Avro schema"), "{said}");
        }
    }

    #[test]
    fn unions_enums_and_bytes_have_types_of_their_own() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Payment {
            by: By,
            currency: Option<Currency>,
            mark: Vec<u8>,
            seal: Vec<u8>,
            rate: f64,
            seen: [bool; 2],
        }
        #[derive(Debug, PartialEq, Deserialize)]
        enum By {
            Card {
                last: u16,
            },
            #[serde(rename = "string")]
            Other(String),
        }
        #[derive(Debug, PartialEq, Deserialize)]
        enum Currency {
            #[serde(rename = "EUR")]
            Euro,
        }
        let avro = Avro::datum(
            r#"{"type":"record","name":"Payment","fields":[
            {"name":"by","type":[{"type":"record","name":"Card","fields":[{"name":"last","type":"int"}]},"string"]},
            {"name":"currency","type":["null",{"type":"enum","name":"Currency","symbols":["USD","EUR"]}]},
            {"name":"mark","type":"bytes"},
            {"name":"seal","type":{"type":"fixed","name":"Seal","size":1}},
            {"name":"rate","type":"float"},
            {"name":"seen","type":{"type":"array","items":"boolean"}}]}"#,
        )
        .unwrap();
        let payment =
            |by, currency| Payment { by, currency, mark: vec![7, 8], seal: vec![9], rate: 0.5, seen: [true, false] };
        let rest = b"\x04\x07\x08\x09\x00\x00\x00\x3f\x04\x01\x00\x00";
        let read = decode(&avro, &[b"\x00\x54\x02\x02", &rest[..]].concat());
        assert_eq!(read, Ok(payment(By::Card { last: 42 }, Some(Currency::Euro))));
        let read = decode(&avro, &[b"\x02\x06tea\x00", &rest[..]].concat());
        assert_eq!(read, Ok(payment(By::Other("tea".to_owned()), None)));
        let more = [b"\x02\x06tea\x00", &rest[..8], b"\x06\x01\x00\x00\x00"].concat();
        let said = decode::<Payment>(&avro, &more).unwrap_err();
        assert!(said.contains("wrong shape at path seen: the value has the wrong type or form"), "{said}");
        let said = decode::<Payment>(&avro, &[b"\x02\x06tea\x02\x00", &rest[..]].concat()).unwrap_err();
        assert!(said.contains("wrong shape at path currency"), "{said}");
    }

    #[test]
    fn a_union_with_null_is_an_option_of_what_else_it_has() {
        #[derive(Debug, PartialEq, Deserialize)]
        enum By {
            Card(Card),
            Mark(Mark),
            #[serde(rename = "string")]
            Other(String),
            #[serde(rename = "bytes")]
            Token(Vec<u8>),
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Card {
            last: u16,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        enum Mark {
            A,
            B,
        }
        let avro = Avro::datum(
            r#"["null",{"type":"record","name":"Card","fields":[{"name":"last","type":"int"}]},"string","bytes",
            {"type":"enum","name":"Mark","symbols":["A","B"]}]"#,
        )
        .unwrap();
        for (content, wanted) in [
            (&b"\x00"[..], None),
            (b"\x02\x54", Some(By::Card(Card { last: 42 }))),
            (b"\x04\x06tea", Some(By::Other("tea".to_owned()))),
            // A text that is the name of another variant.
            (b"\x04\x08Card", Some(By::Other("Card".to_owned()))),
            (b"\x06\x04\x07\x08", Some(By::Token(vec![7, 8]))),
            (b"\x08\x02", Some(By::Mark(Mark::B))),
        ] {
            assert_eq!(decode(&avro, content), Ok(wanted), "{}", content.escape_ascii());
        }
        let never_null = Avro::datum(r#"["string","bytes"]"#).unwrap();
        assert_eq!(decode(&never_null, b"\x00\x06tea"), Ok(Some(By::Other("tea".to_owned()))));
        // Bytes of a union, where the type has no room for its null.
        assert_eq!(decode(&Avro::datum(r#"["null","bytes"]"#).unwrap(), b"\x02\x04\x07\x08"), Ok(vec![7_u8, 8]));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let avro = Avro::datum(V2).unwrap();
        let changed = |at: usize, byte: u8| {
            let mut order = ORDER.to_vec();
            order[at] = byte;
            order
        };
        let rows: [(Vec<u8>, &str); 9] = [
            (ORDER[..ORDER.len() - 1].to_vec(), "cut off, or was written with another schema (at byte 29)"),
            ([ORDER, b"secret"].concat(), "bytes behind its end (at byte 32)"),
            (vec![], "cut off"),
            (changed(0, 0x0b), "another schema, or is damaged (at byte 1)"),
            (changed(8, 2), "another schema, or is damaged (at byte 9)"),
            (changed(17, 8), "another schema, or is damaged (at byte 18)"),
            (changed(1, 0xff), "a text that is not UTF-8 (at byte 6)"),
            (vec![0xff; 12], "another schema, or is damaged (at byte 10)"),
            (b"\x0dsecret!".to_vec(), "is damaged"),
        ];
        for (content, wanted) in rows {
            let said = decode::<Order>(&avro, &content).unwrap_err();
            assert!(said.contains(wanted) && !said.contains("secret"), "{}: {said}", content.escape_ascii());
        }
        let said = decode::<Item>(&Avro::datum(V1).unwrap(), b"\x0csecret").unwrap_err();
        assert_eq!(said, "the body has the wrong shape at path .: field `quantity` is missing (at byte 7)");
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only its shape matters")]
        struct Numbered {
            order_id: u64,
        }
        let said = decode::<Numbered>(&Avro::datum(V1).unwrap(), b"\x0csecret").unwrap_err();
        assert!(said.contains("at path order_id: the value has the wrong type") && !said.contains("secret"), "{said}");
    }

    #[derive(Debug, Deserialize)]
    struct Node {
        next: Option<Box<Node>>,
    }

    #[test]
    fn bombs_are_not_decoded() {
        let list = Avro::datum(r#"{"type":"record","name":"Node","fields":[{"name":"next","type":["null","Node"]}]}"#);
        let list = list.unwrap();
        let nested = |nodes| [vec![2; nodes], vec![0]].concat();
        let most = DEPTH_MAX - 1;
        let mut found = decode::<Node>(&list, &nested(most)).unwrap();
        let mut depth = 0;
        while let Some(next) = found.next {
            (found, depth) = (*next, depth + 1);
        }
        assert_eq!(depth, most);
        for nodes in [most + 1, 1 << 20] {
            let said = decode::<Node>(&list, &nested(nodes)).unwrap_err();
            assert!(said.contains("nested deeper than 128"), "{said}");
        }
        let nulls = Avro::datum(r#"{"type":"array","items":{"type":"array","items":"null"}}"#).unwrap();
        // The zigzag form of 1,024, and of 2^61.
        let block = |count: &[u8]| [&[2][..], count, &[0, 0]].concat();
        let read = decode::<Vec<Vec<()>>>(&nulls, &block(&[0x80, 0x10])).unwrap();
        assert_eq!(read[0].len(), 1_024);
        let said = decode::<Vec<Vec<()>>>(&nulls, &block(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]));
        assert!(said.unwrap_err().contains("more values than the limit that is set for it (at byte 10)"));
        // The inner array counts too.
        for (values_max, fits) in [(1_024, false), (1_025, true)] {
            let nulls = Avro::datum(r#"{"type":"array","items":{"type":"array","items":"null"}}"#).unwrap();
            let read = decode::<Vec<Vec<()>>>(&nulls.at_most(values_max), &block(&[0x80, 0x10]));
            assert_eq!(read.is_ok(), fits, "{values_max}");
        }
        let longs = Avro::datum(r#"{"type":"array","items":"long"}"#).unwrap();
        let said = decode::<Vec<i64>>(&longs, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 2]).unwrap_err();
        assert!(said.contains("cut off"), "{said}");
        let bytes =
            decode::<String>(&Avro::datum(r#""string""#).unwrap(), &[0x80, 0x80, 0x80, 0x80, 0x10]).unwrap_err();
        assert!(bytes.contains("cut off"), "{bytes}");
    }

    #[test]
    fn schemas_that_are_not_usable_are_named() {
        let rows = [
            (Avro::datum("{"), "Avro schema 1 is not usable"),
            (Avro::single_object([V1, r#"{"type":"record"}"#]), "Avro schema 2 is not usable"),
            (Avro::single_object([V1, V2, V1]), "schema 3 cannot be distinguished from those of schema 1"),
            (Avro::headed([(vec![1], V1), (vec![], V2)]), "their headers are alike"),
            (Avro::single_object([]), "there is no Avro schema"),
        ];
        for (built, wanted) in rows {
            let said = built.unwrap_err().to_string();
            assert!(said.contains(wanted), "{said}");
        }
    }
}
