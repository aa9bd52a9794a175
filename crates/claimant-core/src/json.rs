//! A JSON text for fingerprints: its values are found in it, one after the other. A tree of them would take many times the text's memory,
//! 176 bytes for `[0],`, and what unpacks to megabytes would end the process before anything is claimed.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// How many fields of an object there is room for at first.
const FIELDS_FEW: usize = 8;

/// How deep `serde_json` reads.
const DEPTH_MAX: usize = 127;

/// A text that is JSON, and where its arrays and objects are. With the [`Fields`] of the objects that are being walked through, it takes at
/// most four times the memory of the text.
pub(crate) struct JsonText<'a> {
    text: &'a str,
    has_escapes: bool,
    /// Its arrays and objects, in the order in which they begin.
    containers: Vec<Container>,
}

/// An array or an object.
#[derive(Clone, Copy)]
struct Container {
    /// Which byte is the first behind it.
    end: u32,
    /// How many containers begin before that byte.
    next: u32,
}

/// Where a value begins.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    byte: u32,
    /// How many containers begin before it.
    container: u32,
}

/// The fields of an object in the order of their names, each once: of fields of one name the last counts, as for
/// [`Value`](serde_json::Value).
pub(crate) struct Fields<'a> {
    /// What the names are parts of.
    names: Cow<'a, str>,
    fields: Vec<Field>,
}

struct Field {
    /// Which bytes its name is.
    name: (u32, u32),
    value: Place,
}

impl<'a> JsonText<'a> {
    /// The outermost value.
    pub(crate) const ROOT: Place = Place { byte: 0, container: 0 };

    /// Finds the arrays and objects of a text; `None` where it is not JSON, or nested deeper than 127.
    pub(crate) fn new(text: &'a str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        let Valid(count) = serde_json::from_str(text).ok()?;
        let mut containers: Vec<Container> = Vec::with_capacity(count);
        let (mut open, mut depth) = ([0; DEPTH_MAX], 0);
        for (at, byte) in structure(text) {
            match byte {
                b'[' | b'{' => {
                    *open.get_mut(depth)? = containers.len();
                    depth += 1;
                    containers.push(Container { end: 0, next: 0 });
                }
                b']' | b'}' => {
                    // OK because in JSON what ends has begun.
                    depth -= 1;
                    containers[open[depth]] = Container { end: short(at + 1), next: short(containers.len()) };
                }
                _ => {}
            }
        }
        Some(Self { text, has_escapes: text.contains('\\'), containers })
    }

    /// Returns the first byte of a value.
    pub(crate) fn first(&self, value: Place) -> u8 {
        self.text.as_bytes()[start(self.text, value.byte as usize)]
    }

    /// Returns the values directly in an array, or the names and values in an object.
    pub(crate) fn within(&self, container: Place) -> Within<'_> {
        let next =
            Place { byte: short(start(self.text, container.byte as usize) + 1), container: container.container + 1 };
        Within { json: self, next }
    }

    /// Returns the fields of an object.
    pub(crate) fn fields(&self, object: Place) -> Fields<'a> {
        let mut names = if self.has_escapes { Cow::Owned(String::new()) } else { Cow::Borrowed(self.text) };
        let mut fields = Vec::with_capacity(FIELDS_FEW);
        let mut within = self.within(object);
        while let Some(name) = within.next() {
            if fields.len() == fields.capacity() {
                // To all that there are, and no more.
                fields.reserve_exact(within.clone().count().div_ceil(2));
            }
            let quoted = (name.byte as usize, within.next.byte as usize);
            let name = match &mut names {
                Cow::Borrowed(_) => (quoted.0 + 1, quoted.1 - 1),
                Cow::Owned(names) => {
                    let start = names.len();
                    names.push_str(&self.unquoted(&self.text[quoted.0..quoted.1]));
                    (start, names.len())
                }
            };
            fields.extend(within.next().map(|value| Field { name: (short(name.0), short(name.1)), value }));
        }
        let mut fields = Fields { names, fields };
        fields.sort();
        fields
    }

    /// Returns a string; without a copy, unless it has escapes.
    pub(crate) fn string(&self, value: Place) -> Cow<'a, str> {
        let at = start(self.text, value.byte as usize);
        self.unquoted(&self.text[at..after_string(self.text, at)])
    }

    fn unquoted(&self, quoted: &'a str) -> Cow<'a, str> {
        let inner = &quoted[1..quoted.len() - 1];
        if self.has_escapes && inner.contains('\\') {
            Cow::Owned(serde_json::from_str(quoted).expect("the text was read as JSON, and this string in it"))
        } else {
            Cow::Borrowed(inner)
        }
    }

    pub(crate) fn number(&self, value: Place) -> Number {
        let at = start(self.text, value.byte as usize);
        serde_json::from_str(&self.text[at..after_scalar(self.text, at)])
            .expect("the text was read as JSON, and this number in it")
    }
}

impl Fields<'_> {
    fn sort(&mut self) {
        let Self { names, fields } = self;
        let name = |field: &Field| &names[field.name.0 as usize..field.name.1 as usize];
        // Of fields of one name the last one stays the last.
        fields.sort_unstable_by(|a, b| name(a).cmp(name(b)).then(a.value.byte.cmp(&b.value.byte)));
        fields.dedup_by(|later, kept| {
            let same = name(later) == name(kept);
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
    }

    pub(crate) fn count(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Place)> {
        let name = |field: &Field| &self.names[field.name.0 as usize..field.name.1 as usize];
        self.fields.iter().map(move |field| (name(field), field.value))
    }
}

/// Yields where the values directly in an array begin; in an object, each name and its value.
#[derive(Clone)]
pub(crate) struct Within<'a> {
    json: &'a JsonText<'a>,
    next: Place,
}

impl Iterator for Within<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let JsonText { text, containers, .. } = self.json;
        let at = start(text, self.next.byte as usize);
        let place = Place { byte: short(at), ..self.next };
        self.next = match text.as_bytes()[at] {
            b']' | b'}' => return None,
            b'[' | b'{' => {
                let Container { end, next } = containers[place.container as usize];
                Place { byte: end, container: next }
            }
            b'"' => Place { byte: short(after_string(text, at)), ..place },
            _ => Place { byte: short(after_scalar(text, at)), ..place },
        };
        Some(place)
    }
}

/// OK because no text of more than `u32::MAX` bytes is walked through.
fn short(number: usize) -> u32 {
    number as u32
}

/// Returns where what follows white space, commas and colons begins; it is there.
fn start(text: &str, at: usize) -> usize {
    let between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
    at + text.as_bytes()[at..].iter().take_while(between).count()
}

/// Returns where a number, `true`, `false` or `null` ends.
pub(crate) fn after_scalar(text: &str, at: usize) -> usize {
    let within = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.');
    at + text.as_bytes()[at..].iter().take_while(within).count()
}

/// Returns where a string ends that begins at this byte; of one that never ends, where the text does.
pub(crate) fn after_string(text: &str, at: usize) -> usize {
    let mut next = at + 1;
    // The standard library's search is far faster than a look at each byte.
    while let Some(found) = text[next..].find('"') {
        let quote = next + found;
        let escapes = text.as_bytes()[next..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        next = quote + 1;
        if escapes % 2 == 0 {
            return next;
        }
    }
    text.len()
}

/// Yields the bytes that are in no string, and where they are.
fn structure(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while text.as_bytes().get(at) == Some(&b'"') {
            at = after_string(text, at);
        }
        let byte = *text.as_bytes().get(at)?;
        at += 1;
        Some((at - 1, byte))
    })
}

/// A JSON value, of which nothing is kept but how many arrays and objects it has. serde's `IgnoredAny` also takes what is no JSON: half a
/// character. Recursion is bounded: `serde_json` refuses text nested deeper than 127.
struct Valid(usize);

impl<'de> Deserialize<'de> for Valid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValidVisitor)
    }
}

struct ValidVisitor;

impl<'de> Visitor<'de> for ValidVisitor {
    type Value = Valid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_str<E>(self, _: &str) -> Result<Valid, E> {
        Ok(Valid(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Valid, A::Error> {
        let mut count = 1;
        while let Some(Valid(within)) = items.next_element()? {
            count += within;
        }
        Ok(Valid(count))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Valid, A::Error> {
        let mut count = 1;
        while let Some((Valid(_), Valid(within))) = fields.next_entry()? {
            count += within;
        }
        Ok(Valid(count))
    }
}
