//! Payloads in Protobuf.

use std::fmt::Display;

use claimant_core::{Decoder, Fault, Message, Rejection};

/// The most levels of fields that an error shows.
const PATH_MAX: usize = 8;

/// Decodes contents in Protobuf to types that implement [`prost::Message`], as `prost-build` generates them or its derive does.
///
/// A content has to end where its message ends, and is nested 100 deep at most. Protobuf says little of what is wrong: nothing at all is
/// an empty message, unknown fields are skipped, and missing ones have their default. So check in the handler what has to be there; an
/// empty key is rejected in any case.
///
/// A body is a text, so Protobuf in it is in Base64 most often.
///
/// The fingerprint is that of the bytes. One message can be written in several ways (the order of a map, unknown fields): where
/// producers encode again what they send again, set [`fingerprint_of`](claimant_core::Consumer::fingerprint_of).
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_decode::{Base64, Protobuf};
/// # use claimant::{Context, HandlerError, memory::MemoryStore};
/// #[derive(Clone, PartialEq, prost::Message)]
/// struct Order {
///     #[prost(string, tag = "1")]
///     order_id: String,
///     #[prost(uint64, tag = "2")]
///     total_cents: u64,
/// }
///
/// async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
///     println!("confirming {} of {} cents", order.order_id, order.total_cents);
///     Ok(())
/// }
///
/// let consumer = claimant::decoded_by(Protobuf)
///     .consumer("order-confirmation", MemoryStore::new(), confirm)
///     .key(|order| &order.order_id)
///     .envelope(Base64::standard());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Protobuf;

impl<T: prost::Message + Default> Decoder<T> for Protobuf {
    fn decode(&self, content: &[u8], message: &Message) -> Result<T, Rejection> {
        let mut rest = content;
        T::decode(&mut rest).map_err(|error| {
            let (at, path) = (content.len() - rest.len(), field_path(&error));
            let fault = Fault::new(format!("is not the Protobuf message that is expected{path}"));
            message.rejection(fault.at(format!("at byte {at}")))
        })
    }
}

/// Returns the fields that an error names, which are those of the type: `, in Order.items, Item.quantity`. The rest of its text can quote
/// what it found.
fn field_path(error: &impl Display) -> String {
    let text = error.to_string();
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let fields = text.split(": ").skip(1).take_while(|part| {
        let names: Vec<&str> = part.split('.').collect();
        matches!(names[..], [message, field] if is_name(message) && is_name(field))
    });
    let mut fields: Vec<&str> = fields.take(PATH_MAX).collect();
    // The innermost comes first.
    fields.reverse();
    if fields.is_empty() { String::new() } else { format!(", in {}", fields.join(", ")) }
}

#[cfg(test)]
pub(crate) mod tests {
    use prost::Message as _;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Order {
        #[prost(string, tag = "1")]
        pub(crate) order_id: String,
        #[prost(message, repeated, tag = "2")]
        pub(crate) items: Vec<Item>,
        #[prost(message, optional, boxed, tag = "3")]
        pub(crate) replaces: Option<Box<Order>>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Item {
        #[prost(string, tag = "1")]
        pub(crate) sku: String,
        #[prost(uint32, tag = "2")]
        pub(crate) quantity: u32,
    }

    fn decode(content: &[u8]) -> Result<Order, String> {
        let message = Message::new("m-1", "").unwrap();
        Protobuf.decode(content, &message).map_err(|rejection: Rejection| rejection.to_string())
    }

    #[test]
    fn protobuf_is_decoded_and_what_is_wrong_has_its_place() {
        let item = Item { sku: "TEA".to_owned(), quantity: 2 };
        let order = Order { order_id: "ord-1".to_owned(), items: vec![item], replaces: None };
        assert_eq!(decode(&order.encode_to_vec()), Ok(order));
        assert_eq!(decode(b""), Ok(Order::default()));
        let rows: [(&[u8], &str); 7] = [
            (b"\x0a\x06secret\x0a\x07sec", "in Order.order_id (at byte"),
            (b"\x0a\x02\xff\xff", "in Order.order_id (at byte 4)"),
            (b"\x12\x04\x0a\x02\xff\xff", "in Order.items, Item.sku (at byte 6)"),
            (b"\x08\x01", "in Order.order_id (at byte 1)"),
            (b"{\"secret\": 1}", "that is expected (at byte"),
            (b"\x0f", "that is expected (at byte 1)"),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "that is expected (at byte"),
        ];
        for (content, wanted) in rows {
            let said = decode(content).unwrap_err();
            assert!(said.contains(wanted) && !said.contains("secret"), "{}: {said}", content.escape_ascii());
        }
        assert_eq!(field_path(&"failed: A.b: c.D: 7 got: \"x.y\""), ", in c.D, A.b");
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| {
            (0..depth).fold(Order::default(), |inner, _| Order { replaces: Some(Box::new(inner)), ..Order::default() })
        };
        assert!(decode(&nested(99).encode_to_vec()).is_ok());
        assert!(decode(&nested(101).encode_to_vec()).is_err());
    }
}
