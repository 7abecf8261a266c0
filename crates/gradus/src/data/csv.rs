//! CSV: an array or list with one element per row.
//!
//! A row is read as the element type asks: a leaf takes the only column; a tuple takes columns by position; a record takes columns by
//! name; an array takes all columns. The first row is a header if it names the fields of the record, or, for other types, if
//! no cell of a column of numbers or booleans can be read as one.

use super::DataError;
use crate::json::{array_at, first_irregular};
use crate::place::Misfit;
use crate::schema::{Schema, Shape};
use crate::value::quoted;
use crate::Value;
use ::csv::{ReaderBuilder, StringRecord, Trim};
use gradus_core::{Symbol, Type};
use std::fmt;

pub fn read(bytes: &[u8], ty: &Type, schema: &Schema) -> Result<Value, DataError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes); // spreadsheets like to begin with a byte order mark
    let shape = schema.shape(ty);
    let (Shape::Array(element) | Shape::List(element)) = &*shape else {
        return Err(not_storable("it must be an array or a list, one element for each row"));
    };
    let layout = Layout::of(element, schema)?;
    let mut rows =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(bytes).into_records();
    let mut items = Vec::new();
    let mut first_data_row = None;
    let mut order = None;
    for (number, row) in rows.by_ref().enumerate() {
        let row = row.map_err(|error| DataError::Malformed(malformed(&error)))?;
        if number == 0 {
            let header = layout.header(&row)?;
            if let Some(columns) = header {
                order = Some(columns);
                continue;
            }
        }
        let first = *first_data_row.get_or_insert(number);
        let line = row.position().map_or(0, |p| p.line());
        let reader = Row { cells: &row, number: number - first + 1, line, order: order.as_deref() };
        items.push(layout.read(&reader, element)?);
    }
    if let (Shape::Array(_), Some(irregular)) = (&*shape, first_irregular(&items)) {
        let length = |i: usize| items.get(i).map_or(0, |item| item.as_reals().map_or(0, |row| row.len()));
        return Err(DataError::Misfit(Misfit {
            place: format!("row {}", irregular + 1),
            expected: format!("{} like the first row", fields(length(0))),
            found: fields(length(irregular)),
        }));
    }
    Ok(match &*shape {
        Shape::List(_) => Value::list(items),
        _ => array_at(element, items),
    })
}

fn malformed(error: &::csv::Error) -> String {
    match (error.kind(), error.position()) {
        (::csv::ErrorKind::Utf8 { .. }, Some(position)) => format!("line {} is not valid UTF-8", position.line()),
        _ => error.to_string(),
    }
}

fn not_storable(reason: impl Into<String>) -> DataError {
    DataError::TypeNotStorable { format: "CSV", reason: reason.into() }
}

fn fields(count: usize) -> String {
    if count == 1 {
        "1 field".into()
    } else {
        format!("{count} fields")
    }
}

/// How a row becomes an element.
enum Layout {
    /// One column.
    Leaf(Leaf),
    /// Columns by position.
    Tuple(Vec<Leaf>),
    /// Columns by name.
    Record(std::sync::Arc<[Symbol]>, Vec<Leaf>),
    /// All columns, of one type.
    Array(Leaf),
}

/// What a cell may hold; an empty cell is `None` where the type is an option.
#[derive(Clone)]
struct Leaf {
    ty: Type,
    optional: bool,
}

impl Leaf {
    fn of(ty: &Type, schema: &Schema) -> Result<Leaf, DataError> {
        let leaf = |ty: &Type| matches!(ty, Type::Real | Type::Int | Type::Bool | Type::String);
        match ty {
            _ if leaf(ty) => Ok(Leaf { ty: ty.clone(), optional: false }),
            Type::Named(name, args) if &*name.base == "option" => match &**args {
                [inner] if leaf(inner) => Ok(Leaf { ty: inner.clone(), optional: true }),
                _ => Err(not_storable("a cell holds a number, a boolean or a string")),
            },
            Type::Named(..) if matches!(&*schema.shape(ty), Shape::Variant { constructors, .. } if constructors.iter().all(|(_, args)| args.is_empty())) => {
                Ok(Leaf { ty: ty.clone(), optional: false })
            }
            _ => Err(not_storable("a cell holds a number, a boolean or a string")),
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        if self.optional && text.is_empty() {
            return Some(Value::variant("None", []));
        }
        let value = match &self.ty {
            Type::Real => Value::Real(real(text)?),
            Type::Int => Value::Int(text.parse().ok()?),
            Type::Bool => match text {
                "true" | "True" | "TRUE" => Value::Bool(true),
                "false" | "False" | "FALSE" => Value::Bool(false),
                _ => return None,
            },
            _ => Value::from(text),
        };
        Some(if self.optional { Value::variant("Some", [value]) } else { value })
    }

    fn shape(&self) -> Shape {
        match self.ty {
            Type::Real => Shape::Real,
            Type::Int => Shape::Int,
            Type::Bool => Shape::Bool,
            _ => Shape::String,
        }
    }
}

/// Decimal and scientific notation, `nan`, `inf`, `-inf`.
fn real(text: &str) -> Option<f64> {
    let named = text.trim_start_matches(['+', '-']).chars().next().is_some_and(char::is_alphabetic);
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "+inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ if named => None,
        text => text.parse().ok(),
    }
}

/// A row with what is needed to speak about it.
struct Row<'a> {
    cells: &'a StringRecord,
    number: usize,
    line: u64,
    /// For each field of the record, its column.
    order: Option<&'a [usize]>,
}

impl Row<'_> {
    fn place(&self, field: impl fmt::Display) -> String {
        format!("row {} (line {}), {field}", self.number, self.line)
    }

    fn cell(&self, column: usize, leaf: &Leaf, field: impl fmt::Display) -> Result<Value, DataError> {
        let text = self.cells.get(column).unwrap_or("");
        leaf.read(text).ok_or_else(|| {
            let found = if text.is_empty() { "nothing".to_string() } else { quoted(text) };
            DataError::Misfit(Misfit::new(self.place(field), &leaf.shape(), found))
        })
    }

    fn must_have(&self, count: usize) -> Result<(), DataError> {
        if self.cells.len() == count {
            return Ok(());
        }
        Err(DataError::Misfit(Misfit {
            place: format!("row {} (line {})", self.number, self.line),
            expected: fields(count),
            found: fields(self.cells.len()),
        }))
    }
}

impl Layout {
    fn of(element: &Type, schema: &Schema) -> Result<Layout, DataError> {
        let leaves = |types: &[Type]| types.iter().map(|ty| Leaf::of(ty, schema)).collect::<Result<Vec<_>, _>>();
        Ok(match &*schema.shape(element) {
            Shape::Tuple(types) => Layout::Tuple(leaves(types)?),
            Shape::Record { fields, types } => Layout::Record(fields.clone(), leaves(types)?),
            Shape::Array(inner) | Shape::List(inner) => Layout::Array(Leaf::of(inner, schema)?),
            _ => Layout::Leaf(Leaf::of(element, schema)?),
        })
    }

    /// The order of the columns if the row is a header, else nothing. A record without its names is read by position only if the row
    /// fits the types.
    fn header(&self, row: &StringRecord) -> Result<Option<Vec<usize>>, DataError> {
        if let Layout::Record(names, leaves) = self {
            let at = |name: &Symbol| row.iter().position(|cell| cell == &**name);
            let columns: Vec<Option<usize>> = names.iter().map(at).collect();
            let missing = names.iter().zip(&columns).find(|(_, column)| column.is_none());
            let Some((missing, _)) = missing else { return Ok(Some(columns.into_iter().flatten().collect())) };
            let by_position =
                row.len() == leaves.len() && leaves.iter().zip(row).all(|(leaf, cell)| leaf.read(cell).is_some());
            if by_position && columns.iter().all(Option::is_none) {
                return Ok(None);
            }
            return Err(DataError::Misfit(Misfit {
                place: "the first row".into(),
                expected: format!("a column for each of the fields {}", names.join(", ")),
                found: format!("no column {missing}"),
            }));
        }
        let is_text = |leaf: &Leaf| !matches!(leaf.ty, Type::Real | Type::Int | Type::Bool);
        let column_type = |column: usize| match self {
            Layout::Leaf(leaf) | Layout::Array(leaf) => Some(leaf),
            Layout::Tuple(leaves) | Layout::Record(_, leaves) => leaves.get(column),
        };
        let typed = row.iter().enumerate().filter_map(|(i, cell)| column_type(i).map(|leaf| (leaf, cell)));
        let mut numbers = typed.filter(|(leaf, _)| !is_text(leaf)).peekable();
        let is_header =
            numbers.peek().is_some() && numbers.all(|(leaf, cell)| !cell.is_empty() && leaf.read(cell).is_none());
        Ok(is_header.then(|| (0..row.len()).collect()))
    }

    fn read(&self, row: &Row, element: &Type) -> Result<Value, DataError> {
        match self {
            Layout::Leaf(leaf) => {
                row.must_have(1)?;
                row.cell(0, leaf, "field 1")
            }
            Layout::Tuple(leaves) => {
                row.must_have(leaves.len())?;
                let cell = |(i, leaf)| row.cell(i, leaf, format_args!("field {}", i + 1));
                Ok(Value::Tuple(leaves.iter().enumerate().map(cell).collect::<Result<_, _>>()?))
            }
            Layout::Record(names, leaves) => {
                let width = row.order.map_or(leaves.len(), |order| order.iter().max().map_or(0, |last| last + 1));
                if row.cells.len() < width {
                    row.must_have(width)?;
                }
                let column = |i: usize| row.order.map_or(i, |order| order.get(i).copied().unwrap_or(i));
                let cell = |(i, (name, leaf))| row.cell(column(i), leaf, format_args!("field {name}"));
                let parts = names.iter().zip(leaves).enumerate().map(cell).collect::<Result<_, _>>()?;
                Ok(Value::Record { fields: names.clone(), parts })
            }
            Layout::Array(leaf) => {
                let cell = |i| row.cell(i, leaf, format_args!("field {}", i + 1));
                let items = (0..row.cells.len()).map(cell).collect::<Result<Vec<_>, _>>()?;
                Ok(match element {
                    Type::Array(inner) => array_at(inner, items),
                    _ => Value::list(items),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::{TypeBody, TypeDecl, TypeName};
    use indexmap::IndexMap;

    fn reads(text: &str, ty: Type) -> Result<String, String> {
        let point = TypeDecl {
            name: TypeName::new("point"),
            params: Vec::new(),
            body: TypeBody::Record(vec![("x".into(), Type::Real), ("n".into(), Type::Int)]),
            span: Default::default(),
        };
        let builtin = TypeDecl::builtin().into_iter().chain([point]);
        let declarations: IndexMap<_, _> = builtin.map(|d| (d.name.base.clone(), d)).collect();
        let value = read(text.as_bytes(), &ty, &Schema::new(&declarations));
        value.map(|v| v.to_string()).map_err(|e| e.to_string())
    }

    fn pairs() -> Type {
        Type::array(Type::tuple([Type::Real, Type::Real]))
    }

    fn points() -> Type {
        Type::array(Type::named("point", []))
    }

    #[track_caller]
    fn gives(text: &str, ty: Type, expected: &str) {
        assert_eq!(reads(text, ty), Ok(expected.to_string()));
    }

    #[track_caller]
    fn refuses(text: &str, ty: Type, expected: &str) {
        assert_eq!(reads(text, ty), Err(expected.to_string()));
    }

    #[test]
    fn with_and_without_header() {
        gives("x,y\n1,2\n3,4.5\n", pairs(), "[| (1.0, 2.0); (3.0, 4.5) |]");
        gives("1, 2\r\n3,nan", pairs(), "[| (1.0, 2.0); (3.0, nan) |]");
        gives("\u{feff}v\n1\n", Type::array(Type::Real), "[| 1.0 |]");
        gives("", pairs(), "[||]");
    }

    #[test]
    fn records_go_by_name() {
        gives("n,ignored,x\n1,a,0.5\n", points(), "[| { x = 0.5; n = 1 } |]");
        gives("0.5,1\n", points(), "[| { x = 0.5; n = 1 } |]");
        refuses(
            "x,m\n1,2\n",
            points(),
            "the first row: expected a column for each of the fields x, n, found no column n",
        );
    }

    #[test]
    fn rows_of_arrays() {
        gives("1,2\n3,4\n", Type::array(Type::array(Type::Real)), "[| [| 1.0; 2.0 |]; [| 3.0; 4.0 |] |]");
        gives("1,2\n3\n", Type::list(Type::array(Type::Int)), "[[| 1; 2 |]; [| 3 |]]");
        refuses(
            "1,2\n3\n",
            Type::array(Type::array(Type::Real)),
            "row 2: expected 2 fields like the first row, found 1 field",
        );
    }

    #[test]
    fn an_empty_cell_is_none() {
        gives("1\n\"\"\n", Type::list(Type::option(Type::Real)), "[Some 1.0; None]");
    }

    #[test]
    fn misfits_name_row_and_field() {
        refuses("x,y\n1,2\n3\n", pairs(), "row 2 (line 3): expected 2 fields, found 1 field");
        refuses("x,y\n1,2\n3,abc\n", pairs(), "row 2 (line 3), field 2: expected a number, found \"abc\"");
        refuses("x,n\n1,2\n3,2.5\n", points(), "row 2 (line 3), field n: expected an integer, found \"2.5\"");
        refuses("1,2\n3,\n", pairs(), "row 2 (line 2), field 2: expected a number, found nothing");
        refuses("1,abc\n3,4\n", pairs(), "row 1 (line 1), field 2: expected a number, found \"abc\"");
        refuses(
            "1",
            Type::Real,
            "a CSV file cannot hold this type: it must be an array or a list, one element for each row",
        );
    }

    #[test]
    fn bytes_that_are_not_text_say_where() {
        let declarations = IndexMap::new();
        let error = read(b"1\n\xff\xfe\n", &Type::array(Type::Real), &Schema::new(&declarations));
        assert_eq!(error.map_err(|e| e.to_string()), Err("line 2 is not valid UTF-8".to_string()));
    }
}
