//! How much of a program is loaded when it starts: its code and data, without symbols and lines for debuggers, which a build may have or not.

use std::ops::Range;

/// What a file begins with that Linux loads, for a machine of 64 bits whose numbers begin with the lowest byte.
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const MACHINE: Range<usize> = 18..20;
const X86_64: u64 = 62;

/// Where the table of segments begins, how large an entry is, and how many there are.
const SEGMENTS: [Range<usize>; 3] = [32..40, 54..56, 56..58];

/// Of a segment: its type, and its size in the file.
const TYPE: Range<usize> = 0..4;
const FILE_SIZE: Range<usize> = 32..40;
const LOAD: u64 = 1;

/// Returns the bytes of this program's file that are loaded; `None` if it is none of Linux on x86-64, or is cut off.
#[must_use]
pub fn bytes(program: &[u8]) -> Option<u64> {
    if !program.starts_with(&MAGIC) || number(program, MACHINE)? != X86_64 {
        return None;
    }
    let [begin, size, count] = SEGMENTS.map(|at| number(program, at).and_then(|n| usize::try_from(n).ok()));
    let (begin, size, count) = (begin?, size?, count?);
    let segments = (0..count).map(|n| program.get(begin.checked_add(n.checked_mul(size)?)?..));
    let sizes = segments.map(|segment| match number(segment?, TYPE)? {
        LOAD => number(segment?, FILE_SIZE),
        _ => Some(0),
    });
    sizes.sum()
}

fn number(bytes: &[u8], at: Range<usize>) -> Option<u64> {
    Some(bytes.get(at)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
