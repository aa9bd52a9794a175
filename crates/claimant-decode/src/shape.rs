//! What datums of a schema are read as: its parts by their indexes, with references followed.

use std::collections::HashMap;

use apache_avro::schema::{InnerDecimalSchema, Name, NamesRef, ResolvedSchema, UuidSchema};
use apache_avro::{AvroResult, Error, Schema, error::Details};

/// The parts of a schema; the first is the whole.
#[derive(Debug)]
pub(crate) struct Shape(Vec<Part>);

/// One part of a schema.
#[derive(Debug)]
pub(crate) struct Part {
    /// The name of its type, without a namespace; of those without a name, their word in a schema.
    pub(crate) name: String,
    pub(crate) node: Node,
}

/// How a part is read. Logical types are read as what they are made of.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool,
    /// `int` and `long`.
    Number,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
    Enum(Vec<String>),
}

impl Shape {
    pub(crate) fn of(schema: &Schema) -> AvroResult<Self> {
        let resolved = ResolvedSchema::new(schema)?;
        let mut compiler = Compiler { names: resolved.get_names(), parts: Vec::new(), known: HashMap::new() };
        compiler.add(schema)?;
        Ok(Self(compiler.parts))
    }

    pub(crate) fn part(&self, index: usize) -> &Part {
        &self.0[index]
    }
}

struct Compiler<'a> {
    names: &'a NamesRef<'a>,
    parts: Vec<Part>,
    known: HashMap<&'a Name, usize>,
}

impl<'a> Compiler<'a> {
    /// Adds a schema, and returns the index of its part.
    fn add(&mut self, schema: &'a Schema) -> AvroResult<usize> {
        if let Schema::Ref { name } = schema {
            let named =
                *self.names.get(name).ok_or_else(|| Error::new(Details::SchemaResolutionError(name.clone())))?;
            return self.add(named);
        }
        let name = schema.name();
        if let Some(known) = name.and_then(|name| self.known.get(name)) {
            return Ok(*known);
        }
        let index = self.parts.len();
        // A record can hold itself, so its index is known before its fields are.
        self.parts.push(Part { name: name.map_or_else(String::new, |name| name.name().to_owned()), node: Node::Null });
        if let Some(name) = name {
            self.known.insert(name, index);
        }
        let (word, node) = self.node(schema)?;
        let part = &mut self.parts[index];
        part.node = node;
        if part.name.is_empty() {
            word.clone_into(&mut part.name);
        }
        Ok(index)
    }

    fn node(&mut self, schema: &'a Schema) -> AvroResult<(&'static str, Node)> {
        Ok(match schema {
            Schema::Null => ("null", Node::Null),
            Schema::Boolean => ("boolean", Node::Bool),
            Schema::Float => ("float", Node::Float),
            Schema::Double => ("double", Node::Double),
            Schema::Fixed(fixed) | Schema::Duration(fixed) | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
                ("fixed", Node::Fixed(fixed.size))
            }
            Schema::Decimal(decimal) => match &decimal.inner {
                InnerDecimalSchema::Fixed(fixed) => ("fixed", Node::Fixed(fixed.size)),
                InnerDecimalSchema::Bytes => ("bytes", Node::Bytes),
            },
            Schema::Bytes | Schema::BigDecimal | Schema::Uuid(UuidSchema::Bytes) => ("bytes", Node::Bytes),
            Schema::String | Schema::Uuid(UuidSchema::String) => ("string", Node::Text),
            Schema::Int | Schema::Date | Schema::TimeMillis => ("int", Node::Number),
            Schema::Long
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => ("long", Node::Number),
            Schema::Array(array) => ("array", Node::Array(self.add(&array.items)?)),
            Schema::Map(map) => ("map", Node::Map(self.add(&map.types)?)),
            Schema::Enum(of) => ("enum", Node::Enum(of.symbols.clone())),
            Schema::Union(union) => {
                let variants = union.variants().iter().map(|variant| self.add(variant));
                ("union", Node::Union(variants.collect::<AvroResult<_>>()?))
            }
            Schema::Record(record) => {
                let fields = record.fields.iter().map(|field| Ok((field.name.clone(), self.add(&field.schema)?)));
                ("record", Node::Record(fields.collect::<AvroResult<_>>()?))
            }
            Schema::Ref { .. } => unreachable!("the caller follows references"),
        })
    }
}
