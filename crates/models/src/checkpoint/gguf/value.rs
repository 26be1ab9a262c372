//! The values of GGUF's metadata. Long ones stay in the file: a vocabulary is fifty thousand texts, and most who open a
//! file do not want it.

use std::ops::Range;

use super::cursor::{Cursor, Problem};

/// What a metadata value or an element of an array is, by GGUF's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    fn of(number: u32) -> Result<Self, Problem> {
        use Kind::*;
        let kinds = [U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64];
        kinds.get(number as usize).copied().ok_or_else(|| format!("there is no value type {number}"))
    }

    /// The bytes a value takes, at least.
    fn least(self) -> usize {
        match self {
            Kind::U8 | Kind::I8 | Kind::Bool => 1,
            Kind::U16 | Kind::I16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32 => 4,
            Kind::U64 | Kind::I64 | Kind::F64 | Kind::Text => 8,
            Kind::Array => 12,
        }
    }
}

/// One value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Any whole number.
    Whole(i128),
    /// Any floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text, where its UTF-8 is in the file.
    Text(Range<usize>),
    /// An array: what its elements are, how many, and where they are in the file. Checked as far as the last element.
    Array(Kind, usize, Range<usize>),
}

/// Arrays in arrays are allowed and used by nobody; in a deeper file something is wrong.
const MAX_DEPTH: usize = 2;

/// The type of a value, and the value.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Value, Problem> {
    let kind = Kind::of(cursor.u32()?)?;
    read_as(kind, cursor, 0)
}

fn read_as(kind: Kind, cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Problem> {
    Ok(match kind {
        Kind::Text => {
            let length = cursor.text()?.len();
            Value::Text(cursor.position() - length..cursor.position())
        }
        Kind::Array => {
            if depth == MAX_DEPTH {
                return Err(format!("arrays are nested more than {MAX_DEPTH} deep"));
            }
            let element = Kind::of(cursor.u32()?)?;
            let count = cursor.count(element.least())?;
            let start = cursor.position();
            match element {
                Kind::Text | Kind::Array | Kind::Bool => {
                    for _ in 0..count {
                        read_as(element, cursor, depth + 1)?;
                    }
                }
                _ => drop(cursor.take(count * element.least())?),
            }
            Value::Array(element, count, start..cursor.position())
        }
        Kind::Bool => match cursor.take(1)?[0] {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => return Err(format!("a truth value is {other}, expected 0 or 1")),
        },
        number => number_from(number, cursor.take(number.least())?),
    })
}

/// A number from its bytes, as many as its kind takes.
fn number_from(kind: Kind, bytes: &[u8]) -> Value {
    macro_rules! from {
        ($number:ty) => {
            <$number>::from_le_bytes(bytes.try_into().expect("as many bytes as the number takes"))
        };
    }
    match kind {
        Kind::U8 => Value::Whole(from!(u8).into()),
        Kind::I8 => Value::Whole(from!(i8).into()),
        Kind::U16 => Value::Whole(from!(u16).into()),
        Kind::I16 => Value::Whole(from!(i16).into()),
        Kind::U32 => Value::Whole(from!(u32).into()),
        Kind::I32 => Value::Whole(from!(i32).into()),
        Kind::U64 => Value::Whole(from!(u64).into()),
        Kind::I64 => Value::Whole(from!(i64).into()),
        Kind::F32 => Value::Float(from!(f32).into()),
        Kind::F64 => Value::Float(from!(f64)),
        Kind::Bool | Kind::Text | Kind::Array => unreachable!("{kind:?} is no number"),
    }
}

/// The elements of an array of texts. `bytes` is where the array is, as [`read`] checked it.
pub(super) fn texts(bytes: &[u8], count: usize) -> impl Iterator<Item = &str> {
    let mut cursor = Cursor::new(bytes);
    (0..count).map(move |_| cursor.text().expect("the array was checked when it was read"))
}

/// The elements of an array of numbers. `bytes` is where the array is, as [`read`] checked it.
pub(super) fn numbers(kind: Kind, bytes: &[u8]) -> impl Iterator<Item = Value> {
    bytes.chunks_exact(kind.least()).map(move |bytes| number_from(kind, bytes))
}
