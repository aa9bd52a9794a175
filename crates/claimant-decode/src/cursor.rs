//! The bytes of a datum, read within limits.

use std::fmt;

use crate::shape::Shape;

/// How deep a datum is nested at most: records, arrays and maps in each other.
pub(crate) const DEPTH_MAX: usize = 128;

/// How many values a datum in Avro has at most, unless set: as few as no bytes make one.
pub const VALUES_DEFAULT: usize = 1 << 20;

const CUT_OFF: Fault = Fault::Datum("it is cut off, or was written with another schema");
pub(crate) const OTHER: Fault = Fault::Datum("it was written with another schema, or is damaged");

/// Why a datum is not read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is none of its schema, or over a limit.
    Datum(&'static str),
    /// It has another shape than the type. serde's text of it quotes the value.
    Shape(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datum(fault) => f.write_str(fault),
            Self::Shape(fault) => f.write_str(fault),
        }
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(fault: T) -> Self {
        Self::Shape(fault.to_string())
    }
}

/// A datum that is being read.
pub(crate) struct Cursor<'a> {
    pub(crate) shape: &'a Shape,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    values_left: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(shape: &'a Shape, bytes: &'a [u8], values_max: usize) -> Self {
        Self { shape, bytes, at: 0, depth: 0, values_left: values_max }
    }

    /// Returns how many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(Fault::Datum("it has bytes behind its end")) }
    }

    /// Goes into a value that is within another.
    pub(crate) fn enter(&mut self) -> Result<(), Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::Datum("it is nested deeper than 128"));
        }
        let left = self.values_left.checked_sub(1);
        self.values_left = left.ok_or(Fault::Datum("it has more values than the limit that is set for it"))?;
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let taken = self.bytes[self.at..].get(..count).ok_or(CUT_OFF)?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.take(N)?.try_into().map_err(|_| CUT_OFF)
    }

    /// Reads a number of variable length: seven bits a byte, the lowest first, and the sign in the lowest.
    pub(crate) fn number(&mut self) -> Result<i64, Fault> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // OK because the halved value fits, and the sign is all ones or none.
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(OTHER)
    }

    pub(crate) fn sized(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| OTHER)?)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.sized()?).map_err(|_| Fault::Datum("it has a text that is not UTF-8"))
    }

    pub(crate) fn choice<'c, C>(&mut self, choices: &'c [C]) -> Result<&'c C, Fault> {
        let chosen = usize::try_from(self.number()?).map_err(|_| OTHER)?;
        choices.get(chosen).ok_or(OTHER)
    }

    /// Reads how many items the next block of an array or map has; none where it ends.
    pub(crate) fn block(&mut self) -> Result<u64, Fault> {
        let count = self.number()?;
        if count < 0 {
            // Its length in bytes, for those who skip it.
            self.number()?;
        }
        Ok(count.unsigned_abs())
    }
}
