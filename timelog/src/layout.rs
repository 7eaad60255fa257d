//! The numbers in a value, by the name of its type.

use std::fmt::Write;

use crate::Record;

/// Columns of one value. More are one of bytes.
const MOST_COLUMNS: usize = 1024;

/// The columns of a value, for programs that know no more than the [name](Record::type_name) of its
/// type: those of numbers, and of arrays and tuples of them, have one for each number. All others have
/// one of bytes, as hexadecimal digits.
///
/// # Examples
///
/// ```
/// use timelog::{Layout, Record};
///
/// let layout = Layout::new(&<(f64, [u16; 2])>::type_name(), 12);
/// let mut value = [0; 12];
/// (1.5, [7_u16, 8]).encode(&mut value);
/// let texts: Vec<_> = layout.columns().iter().map(|it| it.text(&value)).collect();
/// assert_eq!(texts, ["1.5", "7", "8"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<Column>,
}

/// One of the columns of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    offset: usize,
    bytes: usize,
    scalar: Scalar,
}

macro_rules! scalars {
    ($($scalar:ident $number:ident)*) => {
        /// What a column has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each is the type of its name")]
        pub enum Scalar {
            $($scalar,)*
            /// Bytes of no known meaning.
            Bytes,
        }

        fn scalar_of(name: &str) -> Option<(Scalar, usize)> {
            match name {
                $(stringify!($number) => Some((Scalar::$scalar, <$number>::BYTES)),)*
                _ => None,
            }
        }

        impl Column {
            /// A value of the column, of the bytes of the whole value.
            pub fn text(&self, value: &[u8]) -> String {
                let bytes = self.of(value);
                match self.scalar {
                    $(Scalar::$scalar => <$number>::decode(bytes).to_string(),)*
                    Scalar::Bytes => bytes.iter().fold(String::new(), |mut text, byte| {
                        let _ = write!(text, "{byte:02x}");
                        text
                    }),
                }
            }

            /// Puts what a text says into the bytes of the whole value. An error says what was
            /// expected.
            ///
            /// # Errors
            /// If it is no value of the column.
            pub fn parse(&self, text: &str, value: &mut [u8]) -> Result<(), String> {
                let place = &mut value[self.offset..][..self.bytes];
                match self.scalar {
                    $(Scalar::$scalar => {
                        let number = text.parse::<$number>();
                        let number = number.map_err(|error| format!("{} ({error})", stringify!($number)))?;
                        number.encode(place);
                    })*
                    Scalar::Bytes => {
                        let wanted = || format!("{} hexadecimal digits", 2 * self.bytes);
                        if text.len() != 2 * self.bytes || !text.is_ascii() {
                            return Err(wanted());
                        }
                        for (index, byte) in place.iter_mut().enumerate() {
                            let digits = &text[2 * index..2 * index + 2];
                            *byte = u8::from_str_radix(digits, 16).map_err(|_| wanted())?;
                        }
                    }
                }
                Ok(())
            }
        }
    };
}

scalars!(U8 u8 U16 u16 U32 u32 U64 u64 U128 u128 I8 i8 I16 i16 I32 i32 I64 i64 I128 i128 F32 f32 F64 f64 Bool bool);

impl Column {
    /// What it has.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn end(&self) -> usize {
        self.offset + self.bytes
    }

    /// Its bytes, of those of the whole value.
    pub fn of<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        &value[self.offset..][..self.bytes]
    }
}

impl Layout {
    /// Of a type, whose values have so many bytes.
    pub fn new(type_name: &str, value_bytes: usize) -> Self {
        let mut columns = Vec::new();
        let mut rest = type_name;
        let mut offset = 0;
        let is_known = parse(&mut rest, &mut offset, &mut columns).is_some();
        if is_known && rest.is_empty() && offset == value_bytes {
            return Self { columns };
        }
        let column = Column {
            offset: 0,
            bytes: value_bytes,
            scalar: Scalar::Bytes,
        };
        Self {
            columns: vec![column],
        }
    }

    /// The columns, in the order of their bytes.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The name of each column: `value`, or `value_0`, `value_1` and so on.
    pub fn names(&self) -> Vec<String> {
        match self.columns.len() {
            1 => vec!["value".to_owned()],
            count => (0..count).map(|index| format!("value_{index}")).collect(),
        }
    }
}

/// Takes a type from the beginning of `rest`.
fn parse(rest: &mut &str, offset: &mut usize, columns: &mut Vec<Column>) -> Option<()> {
    if let Some(inside) = rest.strip_prefix('(') {
        *rest = inside;
        if let Some(after) = rest.strip_prefix(')') {
            *rest = after;
            return Some(());
        }
        loop {
            parse(rest, offset, columns)?;
            if let Some(after) = rest.strip_prefix(')') {
                *rest = after;
                return Some(());
            }
            *rest = rest.strip_prefix(", ")?;
        }
    }
    if let Some(inside) = rest.strip_prefix('[') {
        let mut first = Vec::new();
        let mut bytes = 0;
        *rest = inside;
        parse(rest, &mut bytes, &mut first)?;
        let (count, after) = rest.strip_prefix("; ")?.split_once(']')?;
        *rest = after;
        let count: usize = count.parse().ok()?;
        if columns.len() + count.checked_mul(first.len().max(1))? > MOST_COLUMNS {
            return None;
        }
        for index in 0..count {
            let moved = first.iter().map(|column| Column {
                offset: *offset + index * bytes + column.offset,
                ..column.clone()
            });
            columns.extend(moved);
        }
        *offset += count * bytes;
        return Some(());
    }
    let end = rest.find([',', ')', ';', ']']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let (scalar, bytes) = scalar_of(name)?;
    *rest = after;
    columns.push(Column {
        offset: *offset,
        bytes,
        scalar,
    });
    *offset += bytes;
    (columns.len() <= MOST_COLUMNS).then_some(())
}

#[cfg(test)]
mod tests {
    use super::{Layout, Scalar};

    #[test]
    fn names_of_types_are_taken_apart_or_are_bytes() {
        let count = |name, bytes| {
            let layout = Layout::new(name, bytes);
            let is_known = layout.columns.iter().all(|it| it.scalar != Scalar::Bytes);
            is_known.then_some(layout.columns.len())
        };
        assert_eq!(count("u64", 8), Some(1));
        assert_eq!(count("()", 0), Some(0));
        assert_eq!(count("(f64, [(u8, bool); 3])", 14), Some(7));
        assert_eq!(count("[[u16; 2]; 2]", 8), Some(4));
        for (name, bytes) in [
            ("Trade", 8),
            ("u64", 4),
            ("(u64", 8),
            ("u64)", 8),
            ("[u8; 60000]", 60_000),
            ("[u8; 99999999999999999999]", 4),
            ("[[u8; 4294967296]; 4294967296]", 4),
            ("", 0),
            ("(((((", 3),
        ] {
            assert_eq!(count(name, bytes), None, "{name}");
        }
    }
}
