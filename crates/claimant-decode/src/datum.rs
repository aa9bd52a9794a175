//! Reads datums in Avro, straight to a type and within limits.
//!
//! apache-avro 0.22 reads a recursive schema as deep as the datum goes, until its stack overflows, makes as many values of an array
//! of nulls as its length says, takes what is cut off for `null`, and cannot skip an enum that the type does not have.

use serde::de::value::{BorrowedStrDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::cursor::{Cursor, Fault, OTHER};
use crate::shape::Node;

/// The value of a part, still to be read.
pub(crate) struct Value<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    part: usize,
    /// Whether it is one of several that an option can have, and so a variant of an enum by the name of its type.
    one_of_several: bool,
}

impl<'c, 'a> Value<'c, 'a> {
    /// Returns the deserializer of the whole datum.
    pub(crate) fn new(cursor: &'c mut Cursor<'a>) -> Self {
        Self { cursor, part: 0, one_of_several: false }
    }

    fn node(&self) -> &'a Node {
        &self.cursor.shape.part(self.part).node
    }

    /// Reads which variant a union has.
    fn variant(self, variants: &[usize]) -> Result<Self, Fault> {
        let part = *self.cursor.choice(variants)?;
        Ok(Self { part, ..self })
    }
}

/// Reads the value of a part within another.
fn inner<'a, S: DeserializeSeed<'a>>(cursor: &mut Cursor<'a>, part: usize, seed: S) -> Result<S::Value, Fault> {
    cursor.enter()?;
    let value = seed.deserialize(Value { cursor, part, one_of_several: false })?;
    cursor.leave();
    Ok(value)
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let node = self.node();
        if let Node::Union(variants) = node {
            // No union has another one in it.
            return self.variant(variants)?.deserialize_any(visitor);
        }
        let cursor = self.cursor;
        match node {
            Node::Null | Node::Union(_) => visitor.visit_unit(),
            Node::Bool => match cursor.array()? {
                [bit @ (0 | 1)] => visitor.visit_bool(bit == 1),
                _ => Err(OTHER),
            },
            Node::Number => visitor.visit_i64(cursor.number()?),
            Node::Float => visitor.visit_f32(f32::from_le_bytes(cursor.array()?)),
            Node::Double => visitor.visit_f64(f64::from_le_bytes(cursor.array()?)),
            Node::Bytes => visitor.visit_borrowed_bytes(cursor.sized()?),
            Node::Fixed(size) => visitor.visit_borrowed_bytes(cursor.take(*size)?),
            Node::Text => visitor.visit_borrowed_str(cursor.text()?),
            Node::Enum(symbols) => visitor.visit_borrowed_str(cursor.choice(symbols)?),
            Node::Array(item) => {
                read_all(Items { cursor, part: *item, left: 0, ended: false }, |items| visitor.visit_seq(items))
            }
            Node::Map(value) => {
                read_all(Items { cursor, part: *value, left: 0, ended: false }, |items| visitor.visit_map(items))
            }
            Node::Record(fields) => {
                let mut access = Fields { cursor, fields, value: None };
                let value = visitor.visit_map(&mut access)?;
                if access.fields.is_empty() { Ok(value) } else { Err(too_many()) }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = match self.node() {
            Node::Union(variants) => {
                let is_null = |part: &&usize| matches!(self.cursor.shape.part(**part).node, Node::Null);
                let one_of_several = variants.iter().filter(|part| !is_null(part)).count() > 1;
                Self { one_of_several, ..self.variant(variants)? }
            }
            _ => self,
        };
        if matches!(value.node(), Node::Null) { visitor.visit_none() } else { visitor.visit_some(value) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.node() {
            _ if self.one_of_several => visitor.visit_enum(self),
            // Each variant is one of the enum, by the name of its type.
            Node::Union(variants) => visitor.visit_enum(self.variant(variants)?),
            Node::Enum(symbols) => visitor.visit_enum(self.cursor.choice(symbols)?.as_str().into_deserializer()),
            Node::Text => visitor.visit_enum(self.cursor.text()?.into_deserializer()),
            _ => visitor.visit_enum(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // So that `Vec<u8>` can be read of them.
        let bytes = match self.node() {
            Node::Union(variants) => return self.variant(variants)?.deserialize_seq(visitor),
            Node::Bytes => self.cursor.sized()?,
            Node::Fixed(size) => self.cursor.take(*size)?,
            _ => return self.deserialize_any(visitor),
        };
        visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}

fn too_many() -> Fault {
    Fault::Shape("more items than its type has".to_owned())
}

/// The items of an array, or the entries of a map.
struct Items<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    part: usize,
    /// Of this block.
    left: u64,
    ended: bool,
}

/// Reads items, and checks that there are no more than were read: a type can have room for fewer.
fn read_all<'c, 'a, T>(
    mut items: Items<'c, 'a>,
    read: impl FnOnce(&mut Items<'c, 'a>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let value = read(&mut items)?;
    if items.has_next()? { Err(too_many()) } else { Ok(value) }
}

impl Items<'_, '_> {
    fn has_next(&mut self) -> Result<bool, Fault> {
        if self.left == 0 && !self.ended {
            self.left = self.cursor.block()?;
            self.ended = self.left == 0;
        }
        Ok(!self.ended)
    }
}

impl<'a> SeqAccess<'a> for &mut Items<'_, 'a> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        if !self.has_next()? {
            return Ok(None);
        }
        self.left -= 1;
        inner(self.cursor, self.part, seed).map(Some)
    }
}

impl<'a> MapAccess<'a> for &mut Items<'_, 'a> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        if !self.has_next()? {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(BorrowedStrDeserializer::new(self.cursor.text()?)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        inner(self.cursor, self.part, seed)
    }
}

/// The fields of a record.
struct Fields<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    fields: &'a [(String, usize)],
    value: Option<usize>,
}

impl<'a> MapAccess<'a> for &mut Fields<'_, 'a> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let Some(((name, part), rest)) = self.fields.split_first() else { return Ok(None) };
        (self.fields, self.value) = (rest, Some(*part));
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let part = self.value.take().ok_or_else(|| Fault::Shape("a value without its field".to_owned()))?;
        inner(self.cursor, part, seed)
    }
}

/// A variant of an enum: the one with the name of the value's type.
impl<'a> EnumAccess<'a> for Value<'_, 'a> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let name = &self.cursor.shape.part(self.part).name;
        Ok((seed.deserialize(BorrowedStrDeserializer::<Fault>::new(name))?, self))
    }
}

impl<'a> VariantAccess<'a> for Value<'_, 'a> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        serde::Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, Fault> {
        inner(self.cursor, self.part, seed)
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }
}
