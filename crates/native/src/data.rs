//! Structured values and their flat form: how a caller's tuples, records, variants and arrays become leaves and come back.

use crate::flow::{Scalar, Type as LeafType};
use crate::lower::Lowering;
use crate::{Leaf, Refusal};
use gradus_core::traverse::with_stack;
use gradus_core::{Program, Type, TypeBody, TypeDecl};
use gradus_source::Span;

/// The structure of a type, down to its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    Real,
    Int,
    Bool,
    Unit,
    /// A string, of which nothing is kept.
    Opaque,
    /// A tuple or a record.
    Tuple(Vec<Layout>),
    /// For each constructor its fields.
    Variant(Vec<Vec<Layout>>),
    Array(Box<Layout>),
}

/// A value of some layout. Fields and constructors stand by position.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Real(f64),
    Int(i64),
    Bool(bool),
    Unit,
    Tuple(Vec<Data>),
    Variant {
        tag: usize,
        args: Vec<Data>,
    },
    Array(Vec<Data>),
    /// An array, of any number of dimensions, of reals: the same as nested [`Data::Array`], without the cost.
    Reals {
        dims: Vec<usize>,
        data: Vec<f64>,
    },
}

/// A value that does not have the layout, or an array whose rows differ in shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

impl Layout {
    /// The layout of a type of a program; refuses types without a flat form.
    pub fn of(program: &Program, ty: &Type) -> Result<Layout, Box<Refusal>> {
        Lowering::new(program).check_type(ty)?;
        Ok(Layout::made(program, ty))
    }

    fn made(program: &Program, ty: &Type) -> Layout {
        with_stack(|| match ty {
            Type::Real => Layout::Real,
            Type::Int => Layout::Int,
            Type::Bool => Layout::Bool,
            Type::Tuple(parts) => Layout::Tuple(parts.iter().map(|t| Layout::made(program, t)).collect()),
            Type::Array(element) => Layout::Array(Box::new(Layout::made(program, element))),
            Type::Named(name, args) => {
                let builtin = TypeDecl::builtin();
                let decl = program.types.values().chain(&builtin).find(|d| d.name == *name);
                let Some(decl) = decl else { return Layout::Unit };
                let constructors = decl.constructors(args);
                let all = |types: &[Type]| types.iter().map(|t| Layout::made(program, t)).collect::<Vec<_>>();
                match &decl.body {
                    TypeBody::Record(_) => Layout::Tuple(constructors.iter().flat_map(|(_, ts)| all(ts)).collect()),
                    TypeBody::Variant(_) => Layout::Variant(constructors.iter().map(|(_, ts)| all(ts)).collect()),
                }
            }
            Type::String => Layout::Opaque,
            Type::Unit | Type::Fun(_) | Type::Var(_) => Layout::Unit,
        })
    }

    /// The types of the leaves, in order.
    pub fn leaves(&self) -> Vec<LeafType> {
        match self {
            Layout::Real => vec![LeafType::REAL],
            Layout::Int => vec![LeafType::INT],
            Layout::Bool => vec![LeafType::BOOL],
            Layout::Unit | Layout::Opaque => Vec::new(),
            Layout::Tuple(parts) => parts.iter().flat_map(Layout::leaves).collect(),
            Layout::Variant(constructors) => {
                let fields = constructors.iter().flatten().flat_map(Layout::leaves);
                std::iter::once(LeafType::INT).chain(fields).collect()
            }
            Layout::Array(element) => element.leaves().into_iter().map(LeafType::in_array).collect(),
        }
    }

    /// The leaves of a value.
    pub fn flatten(&self, data: &Data) -> Result<Vec<Leaf>, Mismatch> {
        let mut leaves = Vec::new();
        self.flatten_into(data, &mut leaves)?;
        Ok(leaves)
    }

    fn flatten_into(&self, data: &Data, leaves: &mut Vec<Leaf>) -> Result<(), Mismatch> {
        with_stack(|| {
            match (self, data) {
                (Layout::Real, Data::Real(x)) => leaves.push(Leaf::Real(*x)),
                (Layout::Int, Data::Int(x)) => leaves.push(Leaf::Int(*x)),
                (Layout::Bool, Data::Bool(x)) => leaves.push(Leaf::Bool(*x)),
                (Layout::Unit, Data::Unit) | (Layout::Opaque, _) => {}
                (Layout::Tuple(parts), Data::Tuple(items)) if parts.len() == items.len() => {
                    parts.iter().zip(items).try_for_each(|(l, d)| l.flatten_into(d, leaves))?;
                }
                (Layout::Variant(constructors), Data::Variant { tag, args }) => {
                    leaves.push(Leaf::Int(*tag as i64));
                    for (i, fields) in constructors.iter().enumerate() {
                        if i == *tag && fields.len() == args.len() {
                            fields.iter().zip(args).try_for_each(|(l, d)| l.flatten_into(d, leaves))?;
                        } else if i == *tag {
                            return Err(Mismatch);
                        } else {
                            leaves.extend(fields.iter().flat_map(Layout::leaves).map(empty));
                        }
                    }
                }
                (Layout::Array(_), Data::Reals { dims, data }) => {
                    let fits = self.leaves() == [LeafType::array(Scalar::Real, dims.len() as u8)];
                    if !fits || dims.iter().product::<usize>() != data.len() {
                        return Err(Mismatch);
                    }
                    leaves.push(Leaf::Reals { dims: dims.clone(), data: data.clone() });
                }
                (Layout::Array(element), Data::Array(items)) => leaves.extend(element.stack(items)?),
                _ => return Err(Mismatch),
            }
            Ok(())
        })
    }

    /// Arrays of the leaves of items of this layout.
    fn stack(&self, items: &[Data]) -> Result<Vec<Leaf>, Mismatch> {
        let mut columns: Vec<Leaf> = self.leaves().into_iter().map(|ty| empty(ty.in_array())).collect();
        for (row, item) in items.iter().enumerate() {
            for (column, leaf) in columns.iter_mut().zip(self.flatten(item)?) {
                append(column, row, leaf)?;
            }
        }
        Ok(columns)
    }

    /// The value with these leaves.
    pub fn unflatten(&self, leaves: &mut dyn Iterator<Item = Leaf>) -> Result<Data, Mismatch> {
        with_stack(|| {
            Ok(match self {
                Layout::Real | Layout::Int | Layout::Bool => match leaves.next() {
                    Some(Leaf::Real(x)) => Data::Real(x),
                    Some(Leaf::Int(x)) => Data::Int(x),
                    Some(Leaf::Bool(x)) => Data::Bool(x),
                    _ => return Err(Mismatch),
                },
                Layout::Unit => Data::Unit,
                Layout::Opaque => return Err(Mismatch),
                Layout::Tuple(parts) => {
                    Data::Tuple(parts.iter().map(|l| l.unflatten(leaves)).collect::<Result<_, _>>()?)
                }
                Layout::Variant(constructors) => {
                    let Some(Leaf::Int(tag)) = leaves.next() else { return Err(Mismatch) };
                    let mut chosen = None;
                    for (i, fields) in constructors.iter().enumerate() {
                        let args = fields.iter().map(|l| l.unflatten(leaves)).collect::<Result<Vec<_>, _>>()?;
                        if i as i64 == tag {
                            chosen = Some(Data::Variant { tag: i, args });
                        }
                    }
                    chosen.ok_or(Mismatch)?
                }
                Layout::Array(element) => {
                    let columns: Vec<Leaf> = self.leaves().iter().filter_map(|_| leaves.next()).collect();
                    if let ([Leaf::Reals { .. }], true) = (&columns[..], element.is_dense()) {
                        let Some(Leaf::Reals { dims, data }) = columns.into_iter().next() else { return Err(Mismatch) };
                        return Ok(Data::Reals { dims, data });
                    }
                    let count = columns.first().map_or(0, |c| dims(c).first().copied().unwrap_or(0));
                    let mut items = Vec::new();
                    for i in 0..count {
                        items.push(element.unflatten(&mut columns.iter().map(|c| row(c, i)))?);
                    }
                    Data::Array(items)
                }
            })
        })
    }

    /// Reals, or arrays of these.
    pub fn is_dense(&self) -> bool {
        match self {
            Layout::Real => true,
            Layout::Array(inner) => inner.is_dense(),
            Layout::Int | Layout::Bool | Layout::Unit | Layout::Opaque | Layout::Tuple(_) | Layout::Variant(_) => false,
        }
    }
}

impl Lowering<'_> {
    /// Refuses a type without a flat form.
    pub fn check_type(&self, ty: &Type) -> Result<(), Box<Refusal>> {
        self.leaves(ty, Span::default()).map(|_| ())
    }
}

/// Zero, or an array without elements.
fn empty(ty: LeafType) -> Leaf {
    let dims = vec![0; ty.rank as usize];
    match (ty.scalar, ty.rank) {
        (Scalar::Real, 0) => Leaf::Real(0.0),
        (Scalar::Int, 0) => Leaf::Int(0),
        (Scalar::Bool, 0) => Leaf::Bool(false),
        (Scalar::Real, _) => Leaf::Reals { dims, data: Vec::new() },
        (Scalar::Int, _) => Leaf::Ints { dims, data: Vec::new() },
        (Scalar::Bool, _) => Leaf::Bools { dims, data: Vec::new() },
        (Scalar::Box(_), _) => gradus_source::bug!("a layout with boxes"),
    }
}

fn dims(leaf: &Leaf) -> &[usize] {
    match leaf {
        Leaf::Real(_) | Leaf::Int(_) | Leaf::Bool(_) | Leaf::Boxes(_) => &[],
        Leaf::Reals { dims, .. } | Leaf::Ints { dims, .. } | Leaf::Bools { dims, .. } => dims,
    }
}

/// Adds a row to an array; the first row decides the shape.
fn append(column: &mut Leaf, rows: usize, row: Leaf) -> Result<(), Mismatch> {
    let inner = dims(&row).to_vec();
    let (Leaf::Reals { dims, .. } | Leaf::Ints { dims, .. } | Leaf::Bools { dims, .. }) = column else {
        return Err(Mismatch);
    };
    if rows == 0 {
        dims[1..].clone_from_slice(&inner);
    } else if dims[1..] != inner[..] {
        return Err(Mismatch);
    }
    dims[0] = rows + 1;
    match (column, row) {
        (Leaf::Reals { data, .. }, Leaf::Real(x)) => data.push(x),
        (Leaf::Ints { data, .. }, Leaf::Int(x)) => data.push(x),
        (Leaf::Bools { data, .. }, Leaf::Bool(x)) => data.push(u8::from(x)),
        (Leaf::Reals { data, .. }, Leaf::Reals { data: more, .. }) => data.extend(more),
        (Leaf::Ints { data, .. }, Leaf::Ints { data: more, .. }) => data.extend(more),
        (Leaf::Bools { data, .. }, Leaf::Bools { data: more, .. }) => data.extend(more),
        _ => return Err(Mismatch),
    }
    Ok(())
}

/// Row `i` of an array.
fn row(leaf: &Leaf, i: usize) -> Leaf {
    let inner = dims(leaf).get(1..).unwrap_or_default().to_vec();
    let width: usize = inner.iter().product();
    let range = i * width..(i + 1) * width;
    match leaf {
        Leaf::Reals { data, .. } if inner.is_empty() => Leaf::Real(data[i]),
        Leaf::Ints { data, .. } if inner.is_empty() => Leaf::Int(data[i]),
        Leaf::Bools { data, .. } if inner.is_empty() => Leaf::Bool(data[i] != 0),
        Leaf::Reals { data, .. } => Leaf::Reals { dims: inner, data: data[range].to_vec() },
        Leaf::Ints { data, .. } => Leaf::Ints { dims: inner, data: data[range].to_vec() },
        Leaf::Bools { data, .. } => Leaf::Bools { dims: inner, data: data[range].to_vec() },
        Leaf::Real(_) | Leaf::Int(_) | Leaf::Bool(_) | Leaf::Boxes(_) => leaf.clone(),
    }
}
