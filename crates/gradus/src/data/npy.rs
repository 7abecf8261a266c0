//! NPY, the array files of NumPy: versions 1 to 3, numbers and booleans, either byte order, row- or column-major.

use super::DataError;
use crate::place::Misfit;
use crate::value::{Parts, Reals};
use crate::Value;
use gradus_core::Type;

/// The parts of the header that matter.
struct Header {
    kind: Kind,
    width: usize,
    big_endian: bool,
    column_major: bool,
    shape: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
}

pub fn read(bytes: &[u8], ty: &Type) -> Result<Value, DataError> {
    let (header, data) = header(bytes).ok_or_else(|| malformed("not an NPY file of numbers or booleans"))?;
    let (leaf, rank) = leaf_and_rank(ty);
    let fits = matches!(
        (leaf, header.kind),
        (Type::Real, Kind::Float | Kind::Signed | Kind::Unsigned)
            | (Type::Int, Kind::Signed | Kind::Unsigned)
            | (Type::Bool, Kind::Bool)
    );
    if !matches!(leaf, Type::Real | Type::Int | Type::Bool) {
        let reason = "it must be an array of reals, integers or booleans".into();
        return Err(DataError::TypeNotStorable { format: "NPY", reason });
    }
    if !fits || rank != header.shape.len() {
        return Err(DataError::Misfit(Misfit {
            place: "the header".into(),
            expected: format!("{} of {}", dimensions(rank), plural(leaf)),
            found: format!("{} of {}", dimensions(header.shape.len()), header.kind.plural()),
        }));
    }
    let count = header.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let size = count.and_then(|n| n.checked_mul(header.width));
    let (Some(count), Some(size)) = (count, size) else { return Err(malformed("the shape is too large")) };
    let Some(data) = data.get(..size) else {
        return Err(malformed(format!("the file ends early: {} bytes of {size}", data.len())));
    };
    let at = |index: usize| data.get(index * header.width..(index + 1) * header.width).unwrap_or_default();
    let order = (0..count).map(|i| if header.column_major { transposed(i, &header.shape) } else { i });
    Ok(match leaf {
        Type::Real => {
            let data: Vec<f64> = order.map(|i| header.real(at(i))).collect();
            match data.first() {
                Some(x) if rank == 0 => Value::Real(*x),
                _ => Reals::new(header.shape, data).map_or(Value::Array(Parts::default()), Value::Reals),
            }
        }
        Type::Int => {
            let items: Option<Vec<Value>> = order.map(|i| header.int(at(i)).map(Value::Int)).collect();
            nest(items.ok_or_else(|| malformed("an integer does not fit in 64 bits with a sign"))?, &header.shape)
        }
        _ => nest(order.map(|i| Value::Bool(at(i).iter().any(|b| *b != 0))).collect(), &header.shape),
    })
}

fn malformed(message: impl Into<String>) -> DataError {
    DataError::Malformed(message.into())
}

fn leaf_and_rank(ty: &Type) -> (&Type, usize) {
    match ty {
        Type::Array(element) => {
            let (leaf, rank) = leaf_and_rank(element);
            (leaf, rank + 1)
        }
        leaf => (leaf, 0),
    }
}

fn dimensions(rank: usize) -> String {
    match rank {
        0 => "a single one".into(),
        1 => "an array with 1 dimension".into(),
        _ => format!("an array with {rank} dimensions"),
    }
}

fn plural(leaf: &Type) -> &'static str {
    match leaf {
        Type::Real => "reals",
        Type::Int => "integers",
        _ => "booleans",
    }
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Kind::Float => "reals",
            Kind::Signed | Kind::Unsigned => "integers",
            Kind::Bool => "booleans",
        }
    }
}

/// Where the element with this row-major number lies in a column-major file.
fn transposed(mut row_major: usize, shape: &[usize]) -> usize {
    let mut index = 0;
    let mut stride: usize = shape.iter().product();
    for &dimension in shape.iter().rev() {
        stride /= dimension.max(1);
        index += (row_major % dimension.max(1)) * stride;
        row_major /= dimension.max(1);
    }
    index
}

/// A flat sequence as arrays of arrays.
fn nest(mut items: Vec<Value>, shape: &[usize]) -> Value {
    let Some((_, inner)) = shape.split_first() else { return items.pop().unwrap_or(Value::Unit) };
    for &length in inner.iter().rev() {
        let mut rows = Vec::new();
        let mut rest = items.into_iter();
        loop {
            let row: Vec<Value> = rest.by_ref().take(length).collect();
            if row.is_empty() {
                break;
            }
            rows.push(Value::Array(row.into()));
        }
        items = rows;
    }
    Value::Array(items.into())
}

impl Header {
    /// The bytes of an element, the least significant first.
    fn little(&self, bytes: &[u8]) -> [u8; 8] {
        let mut out = [0; 8];
        for (i, slot) in out.iter_mut().take(self.width).enumerate() {
            let from = if self.big_endian { self.width - 1 - i } else { i };
            *slot = bytes.get(from).copied().unwrap_or(0);
        }
        out
    }

    fn real(&self, bytes: &[u8]) -> f64 {
        let raw = self.little(bytes);
        match (self.kind, self.width) {
            (Kind::Float, 8) => f64::from_le_bytes(raw),
            (Kind::Float, _) => f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]).into(),
            (Kind::Signed, _) => self.signed(raw) as f64,
            (Kind::Unsigned | Kind::Bool, _) => u64::from_le_bytes(raw) as f64,
        }
    }

    fn int(&self, bytes: &[u8]) -> Option<i64> {
        let raw = self.little(bytes);
        match self.kind {
            Kind::Signed => Some(self.signed(raw)),
            Kind::Unsigned | Kind::Bool => u64::from_le_bytes(raw).try_into().ok(),
            Kind::Float => None,
        }
    }

    fn signed(&self, raw: [u8; 8]) -> i64 {
        let unused = 64 - 8 * self.width as u32;
        (i64::from_le_bytes(raw) << unused) >> unused
    }
}

/// The header, `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, and the bytes after it.
fn header(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let (version, rest) = rest.split_first_chunk::<2>()?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(n, rest)| (u16::from_le_bytes(*n) as usize, rest))?,
        2 | 3 => rest.split_first_chunk::<4>().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest))?,
        _ => return None,
    };
    let (text, data) = rest.split_at_checked(length)?;
    let text = std::str::from_utf8(text).ok()?;
    let after = |key: &str| Some(text.split_once(key)?.1.split_once(':')?.1.trim_start());
    let quoted = after("'descr'")?.strip_prefix('\'')?.split_once('\'')?.0;
    let order = quoted.chars().next()?;
    let described = quoted.trim_start_matches(['<', '>', '|', '=']);
    let (kind, width) = described.split_at_checked(1)?;
    let width: usize = width.parse().ok()?;
    let kind = match (kind, width) {
        ("f", 4 | 8) => Kind::Float,
        ("i", 1 | 2 | 4 | 8) => Kind::Signed,
        ("u", 1 | 2 | 4 | 8) => Kind::Unsigned,
        ("b", 1) => Kind::Bool,
        _ => return None,
    };
    let shape = after("'shape'")?.strip_prefix('(')?.split_once(')')?.0;
    let dimensions = shape.split(',').map(str::trim).filter(|d| !d.is_empty()).map(|d| d.parse().ok());
    let header = Header {
        kind,
        width,
        big_endian: order == '>',
        column_major: after("'fortran_order'")?.starts_with("True"),
        shape: dimensions.collect::<Option<_>>()?,
    };
    Some((header, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as NumPy writes it.
    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(data);
        bytes
    }

    fn matrix(leaf: Type) -> Type {
        Type::array(Type::array(leaf))
    }

    #[track_caller]
    fn gives(file: Vec<u8>, ty: Type, expected: &str) {
        assert_eq!(read(&file, &ty).map(|v| v.to_string()).map_err(|e| e.to_string()), Ok(expected.to_string()));
    }

    #[test]
    fn both_orders_and_widths() {
        let reals: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let rows = "[| [| 1.0; 2.0; 3.0 |]; [| 4.0; 5.0; 6.0 |] |]";
        gives(file("<f8", "False", "(2, 3)", &reals), matrix(Type::Real), rows);
        let columns = "[| [| 1.0; 3.0; 5.0 |]; [| 2.0; 4.0; 6.0 |] |]";
        gives(file("<f8", "True", "(2, 3)", &reals), matrix(Type::Real), columns);
        let big: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_be_bytes()).collect();
        gives(file(">f4", "False", "(2,)", &big), Type::array(Type::Real), "[| 1.5; -2.0 |]");
        gives(file("|i1", "False", "(2,)", &[255, 3]), Type::array(Type::Int), "[| -1; 3 |]");
        gives(file("|i1", "False", "(2,)", &[255, 3]), Type::array(Type::Real), "[| -1.0; 3.0 |]");
        gives(file("|b1", "False", "(1, 2)", &[1, 0]), matrix(Type::Bool), "[| [| true; false |] |]");
        gives(file("<f8", "False", "()", &7.0f64.to_le_bytes()), Type::Real, "7.0");
        gives(file("<f8", "False", "(0,)", &[]), Type::array(Type::Real), "[||]");
    }

    #[track_caller]
    fn refuses(file: &[u8], ty: Type, expected: &str) {
        assert_eq!(read(file, &ty).map_err(|e| e.to_string()), Err(expected.to_string()));
    }

    #[test]
    fn misfits() {
        refuses(
            &file("<f8", "False", "(1,)", &[0; 8]),
            matrix(Type::Real),
            "the header: expected an array with 2 dimensions of reals, found an array with 1 dimension of reals",
        );
        refuses(
            &file("<f8", "False", "(1,)", &[0; 8]),
            Type::array(Type::Int),
            "the header: expected an array with 1 dimension of integers, found an array with 1 dimension of reals",
        );
        refuses(&file("<f8", "False", "(2,)", &[0; 8]), Type::array(Type::Real), "the file ends early: 8 bytes of 16");
        let huge = file("<f8", "False", "(4611686018427387904, 8)", &[]);
        refuses(&huge, matrix(Type::Real), "the shape is too large");
        refuses(b"hello", Type::array(Type::Real), "not an NPY file of numbers or booleans");
        refuses(&file("<c16", "False", "(1,)", &[]), Type::array(Type::Real), "not an NPY file of numbers or booleans");
    }
}
