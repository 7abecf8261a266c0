//! Structured values and their flat form: how a caller's tuples, records, variants, lists and arrays become leaves and come back.

mod making;

use crate::flow::{Scalar, ShapeId, Type as LeafType};
use crate::leaf::Boxes;
use crate::lower::{DataLengths, Lowering};
use crate::{Leaf, Refusal};
use gradus_core::traverse::with_stack;
use gradus_core::{Program, Type, TypeBody, TypeDecl};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The structure of a type, down to its leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: Node,
    /// The cells of recursive types, which may contain each other.
    cells: Arc<Vec<Vec<Vec<Node>>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Real,
    Int,
    Bool,
    Unit,
    String,
    /// A tuple or a record.
    Tuple(Vec<Node>),
    /// For each constructor its fields.
    Variant(Vec<Vec<Node>>),
    Array(Box<Node>),
    /// A recursive type, by its number; `record` has one constructor and no tag, `list` is the builtin list.
    Boxed {
        cell: usize,
        record: bool,
        list: bool,
    },
    /// An element of an array in a cell of its own.
    Wrapped(Box<Node>),
}

/// A value of some layout. Fields and constructors stand by position.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Real(f64),
    Int(i64),
    Bool(bool),
    Unit,
    String(String),
    Tuple(Parts),
    Variant {
        tag: usize,
        args: Parts,
    },
    Array(Parts),
    /// The builtin list.
    List(Parts),
    /// An array, of any number of dimensions, of reals: the same as nested [`Data::Array`], without the cost.
    Reals {
        dims: Vec<usize>,
        data: Vec<f64>,
    },
}

impl Data {
    pub fn tuple(parts: impl Into<Parts>) -> Data {
        Data::Tuple(parts.into())
    }

    pub fn array(parts: impl Into<Parts>) -> Data {
        Data::Array(parts.into())
    }

    pub fn list(parts: impl Into<Parts>) -> Data {
        Data::List(parts.into())
    }
}

/// Parts of a value, let go without exhausting the stack however deep they are.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Parts(Vec<Data>);

impl Drop for Parts {
    fn drop(&mut self) {
        if !self.0.is_empty() && stacker::remaining_stack().is_some_and(|left| left < 64 * 1024) {
            let parts = std::mem::take(&mut self.0);
            with_stack(|| drop(parts));
        }
    }
}

impl From<Vec<Data>> for Parts {
    fn from(parts: Vec<Data>) -> Parts {
        Parts(parts)
    }
}

impl FromIterator<Data> for Parts {
    fn from_iter<I: IntoIterator<Item = Data>>(parts: I) -> Parts {
        Parts(parts.into_iter().collect())
    }
}

impl std::ops::Deref for Parts {
    type Target = [Data];
    fn deref(&self) -> &[Data] {
        &self.0
    }
}

impl Parts {
    pub fn into_vec(mut self) -> Vec<Data> {
        std::mem::take(&mut self.0)
    }
}

/// A value that does not have the layout, or an array whose rows differ in shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

/// A leaf as words: a number, or an array with its dimensions. Boxes are references into `heap`.
#[derive(Clone)]
struct Piece {
    ty: LeafType,
    dims: Vec<usize>,
    words: Vec<i64>,
    heap: Option<Rc<Vec<i64>>>,
}

/// Cells that are being written, each after those that it refers to.
#[derive(Default)]
struct Writer {
    words: Vec<i64>,
    places: Vec<i64>,
}

/// Nothing, and the value of a constructor without fields: see `cells.c`.
const NIL: i64 = -1;

fn immediate(tag: usize) -> i64 {
    -2 - tag as i64
}

fn boxed(rank: u8) -> LeafType {
    LeafType::array(Scalar::Box(ShapeId(0)), rank)
}

impl Layout {
    /// The layout of a data type of a program.
    pub fn of(program: &Program, ty: &Type) -> Result<Layout, Box<Refusal>> {
        let lengths = DataLengths::default();
        let mut lowering = Lowering::new(program, &lengths);
        lowering.leaves(ty, Span::default())?;
        let mut making = Making { lowering, program, numbers: FxHashMap::default(), cells: Vec::new() };
        let root = making.node(ty)?;
        Ok(Layout { root, cells: Arc::new(making.cells) })
    }

    /// The layouts of the parts of a tuple or record whose leaves stand one after the other; `None` for everything else.
    pub fn parts(&self) -> Option<Vec<Layout>> {
        match &self.root {
            Node::Tuple(parts) => {
                Some(parts.iter().map(|root| Layout { root: root.clone(), cells: self.cells.clone() }).collect())
            }
            _ => None,
        }
    }

    /// Whether this is a real, or an array, of any number of dimensions, of reals.
    pub fn is_dense(&self) -> bool {
        self.root.is_dense()
    }

    /// The types of the leaves, in order; all boxes look the same here.
    pub fn leaves(&self) -> Vec<LeafType> {
        self.root.leaves()
    }

    /// The leaves of a value.
    pub fn flatten(&self, data: &Data) -> Result<Vec<Leaf>, Mismatch> {
        let mut leaves = Vec::new();
        self.flatten_node(&self.root, data, &mut leaves)?;
        Ok(leaves)
    }

    fn flatten_node(&self, node: &Node, data: &Data, leaves: &mut Vec<Leaf>) -> Result<(), Mismatch> {
        match (node, data) {
            (Node::Tuple(parts), Data::Tuple(items)) if parts.len() == items.len() => {
                parts.iter().zip(items.iter()).try_for_each(|(n, d)| self.flatten_node(n, d, leaves))
            }
            (Node::Array(_), Data::Reals { dims, data }) => {
                let fits = node.leaves() == [LeafType::array(Scalar::Real, dims.len() as u8)];
                if !fits || dims.iter().product::<usize>() != data.len() {
                    return Err(Mismatch);
                }
                leaves.push(Leaf::Reals { dims: dims.clone(), data: data.clone() });
                Ok(())
            }
            _ => {
                let mut writer = Writer::default();
                let mut pieces = Vec::new();
                self.write(node, data, &mut writer, &mut pieces)?;
                leaves.extend(pieces.into_iter().map(|piece| piece.leaf(&writer)));
                Ok(())
            }
        }
    }

    fn write(&self, node: &Node, data: &Data, to: &mut Writer, pieces: &mut Vec<Piece>) -> Result<(), Mismatch> {
        with_stack(|| {
            match (node, data) {
                (Node::Real, Data::Real(x)) => pieces.push(Piece::number(LeafType::REAL, x.to_bits() as i64)),
                (Node::Int, Data::Int(x)) => pieces.push(Piece::number(LeafType::INT, *x)),
                (Node::Bool, Data::Bool(x)) => pieces.push(Piece::number(LeafType::BOOL, i64::from(*x))),
                (Node::Unit, Data::Unit) => {}
                (Node::String, Data::String(text)) => {
                    let words: Vec<i64> = text.chars().map(|c| i64::from(u32::from(c))).collect();
                    let ty = LeafType::array(Scalar::Int, 1);
                    pieces.push(Piece { ty, dims: vec![words.len()], words, heap: None });
                }
                (Node::Tuple(parts), Data::Tuple(items)) if parts.len() == items.len() => {
                    parts.iter().zip(items.iter()).try_for_each(|(n, d)| self.write(n, d, to, pieces))?;
                }
                (Node::Variant(constructors), Data::Variant { tag, args }) => {
                    pieces.push(Piece::number(LeafType::INT, *tag as i64));
                    if constructors.get(*tag).is_none_or(|fields| fields.len() != args.len()) {
                        return Err(Mismatch);
                    }
                    for (i, fields) in constructors.iter().enumerate() {
                        if i == *tag {
                            fields.iter().zip(args.iter()).try_for_each(|(n, d)| self.write(n, d, to, pieces))?;
                        } else {
                            pieces.extend(fields.iter().flat_map(Node::leaves).map(Piece::empty));
                        }
                    }
                }
                (Node::Array(element), Data::Array(items)) => pieces.extend(self.write_array(element, items, to)?),
                (Node::Array(element), Data::Reals { dims, data }) => {
                    let fits = node.leaves() == [LeafType::array(Scalar::Real, dims.len() as u8)];
                    if !fits || dims.iter().product::<usize>() != data.len() || !element.is_dense() {
                        return Err(Mismatch);
                    }
                    let words = data.iter().map(|x| x.to_bits() as i64).collect();
                    pieces.push(Piece { ty: node.leaves()[0], dims: dims.clone(), words, heap: None });
                }
                (Node::Boxed { cell, list: true, .. }, Data::List(items)) => {
                    let mut rest = immediate(0);
                    let Some([element, _]) = self.cells[*cell].get(1).map(|f| &f[..]) else { return Err(Mismatch) };
                    for item in items.iter().rev() {
                        let mut fields = Vec::new();
                        self.write(element, item, to, &mut fields)?;
                        fields.push(Piece::number(boxed(0), rest));
                        rest = to.cell(1, &fields);
                    }
                    pieces.push(Piece::number(boxed(0), rest));
                }
                (Node::Boxed { cell, record: true, .. }, Data::Tuple(args)) => {
                    let reference = self.write_cell(*cell, 0, args, to)?;
                    pieces.push(Piece::number(boxed(0), reference));
                }
                (Node::Boxed { cell, record: false, .. }, Data::Variant { tag, args }) => {
                    let reference = self.write_cell(*cell, *tag, args, to)?;
                    pieces.push(Piece::number(boxed(0), reference));
                }
                (Node::Wrapped(inner), _) => {
                    let mut fields = Vec::new();
                    self.write(inner, data, to, &mut fields)?;
                    let reference = to.cell(0, &fields);
                    pieces.push(Piece::number(boxed(0), reference));
                }
                _ => return Err(Mismatch),
            }
            Ok(())
        })
    }

    fn write_cell(&self, cell: usize, tag: usize, args: &[Data], to: &mut Writer) -> Result<i64, Mismatch> {
        let fields = self.cells[cell].get(tag).filter(|fields| fields.len() == args.len()).ok_or(Mismatch)?;
        let mut pieces = Vec::new();
        for (node, data) in fields.iter().zip(args) {
            self.write(node, data, to, &mut pieces)?;
        }
        Ok(to.cell(tag, &pieces))
    }

    /// Arrays of the leaves of items.
    fn write_array(&self, element: &Node, items: &[Data], to: &mut Writer) -> Result<Vec<Piece>, Mismatch> {
        let leaves = element.leaves();
        if leaves.is_empty() {
            let ty = LeafType::BOOL.in_array();
            return Ok(vec![Piece { ty, dims: vec![items.len()], words: vec![0; items.len()], heap: None }]);
        }
        let mut columns: Vec<Piece> = leaves.into_iter().map(|ty| Piece::empty(ty.in_array())).collect();
        for (row, item) in items.iter().enumerate() {
            let mut pieces = Vec::new();
            self.write(element, item, to, &mut pieces)?;
            for (column, piece) in columns.iter_mut().zip(pieces) {
                if row == 0 {
                    column.dims[1..].clone_from_slice(&piece.dims);
                } else if column.dims[1..] != piece.dims[..] {
                    return Err(Mismatch);
                }
                column.dims[0] = row + 1;
                column.words.extend(piece.words);
            }
        }
        Ok(columns)
    }

    /// The value with these leaves.
    pub fn unflatten(&self, leaves: &mut dyn Iterator<Item = Leaf>) -> Result<Data, Mismatch> {
        self.unflatten_node(&self.root, leaves)
    }

    fn unflatten_node(&self, node: &Node, leaves: &mut dyn Iterator<Item = Leaf>) -> Result<Data, Mismatch> {
        match node {
            Node::Tuple(parts) => {
                Ok(Data::Tuple(parts.iter().map(|n| self.unflatten_node(n, leaves)).collect::<Result<_, _>>()?))
            }
            Node::Array(element) if element.is_dense() => match leaves.next() {
                Some(Leaf::Reals { dims, data }) => Ok(Data::Reals { dims, data }),
                _ => Err(Mismatch),
            },
            _ => {
                let count = node.leaves().len();
                self.read(node, &mut leaves.take(count).map(Piece::of))
            }
        }
    }

    fn read(&self, node: &Node, pieces: &mut dyn Iterator<Item = Piece>) -> Result<Data, Mismatch> {
        with_stack(|| {
            let mut next = || pieces.next().ok_or(Mismatch);
            let word = |piece: Piece| piece.words.first().copied().ok_or(Mismatch);
            Ok(match node {
                Node::Real => Data::Real(f64::from_bits(word(next()?)? as u64)),
                Node::Int => Data::Int(word(next()?)?),
                Node::Bool => Data::Bool(word(next()?)? != 0),
                Node::Unit => Data::Unit,
                Node::String => {
                    let character = |c: &i64| u32::try_from(*c).ok().and_then(char::from_u32).ok_or(Mismatch);
                    Data::String(next()?.words.iter().map(character).collect::<Result<_, _>>()?)
                }
                Node::Tuple(parts) => {
                    Data::Tuple(parts.iter().map(|n| self.read(n, pieces)).collect::<Result<_, _>>()?)
                }
                Node::Variant(constructors) => {
                    let tag = word(next()?)?;
                    let mut chosen = None;
                    for (i, fields) in constructors.iter().enumerate() {
                        if i as i64 == tag {
                            let args = fields.iter().map(|n| self.read(n, pieces)).collect::<Result<_, _>>()?;
                            chosen = Some(Data::Variant { tag: i, args });
                        } else {
                            // What the other constructors would have is not looked at.
                            fields.iter().flat_map(Node::leaves).for_each(|_| {
                                pieces.next();
                            });
                        }
                    }
                    chosen.ok_or(Mismatch)?
                }
                Node::Array(element) => {
                    let columns: Vec<Piece> = node.leaves().iter().filter_map(|_| pieces.next()).collect();
                    let first = columns.first().ok_or(Mismatch)?;
                    if let (true, [all]) = (element.is_dense(), &columns[..]) {
                        let data = all.words.iter().map(|w| f64::from_bits(*w as u64)).collect();
                        return Ok(Data::Reals { dims: all.dims.clone(), data });
                    }
                    let count = first.dims.first().copied().ok_or(Mismatch)?;
                    let mut items = Vec::with_capacity(count);
                    for i in 0..count {
                        items.push(self.read(element, &mut columns.iter().map(|c| c.row(i)))?);
                    }
                    Data::Array(items.into())
                }
                Node::Boxed { cell, record, list } => {
                    let piece = next()?;
                    self.read_boxed(*cell, *record, *list, piece)?
                }
                Node::Wrapped(inner) => {
                    let piece = next()?;
                    let fields = self.fields(&piece, std::slice::from_ref(&**inner))?;
                    self.read(inner, &mut fields.into_iter())?
                }
            })
        })
    }

    fn read_boxed(&self, cell: usize, record: bool, list: bool, mut piece: Piece) -> Result<Data, Mismatch> {
        let constructors = &self.cells[cell];
        if list {
            let mut items = Vec::new();
            let fields = constructors.get(1).ok_or(Mismatch)?;
            while piece.tag()? == 1 {
                let mut all = self.fields(&piece, fields)?;
                piece = all.pop().ok_or(Mismatch)?;
                items.push(self.read(fields.first().ok_or(Mismatch)?, &mut all.into_iter())?);
            }
            return Ok(Data::List(items.into()));
        }
        let tag = piece.tag()?;
        let fields = constructors.get(tag).ok_or(Mismatch)?;
        let mut pieces = self.fields(&piece, fields)?.into_iter();
        let args: Parts = fields.iter().map(|n| self.read(n, &mut pieces)).collect::<Result<_, _>>()?;
        Ok(if record { Data::Tuple(args) } else { Data::Variant { tag, args } })
    }

    /// The leaves of the fields of a cell.
    fn fields(&self, cell: &Piece, nodes: &[Node]) -> Result<Vec<Piece>, Mismatch> {
        let leaves: Vec<LeafType> = nodes.iter().flat_map(Node::leaves).collect();
        if leaves.is_empty() {
            return Ok(Vec::new());
        }
        let heap = cell.heap.clone().ok_or(Mismatch)?;
        let place = cell.words.first().and_then(|w| usize::try_from(*w).ok()).ok_or(Mismatch)?;
        let mut at = place + 1;
        let mut pieces = Vec::new();
        for ty in leaves {
            let rank = ty.rank as usize;
            let dims: Vec<usize> = heap.get(at..at + rank).ok_or(Mismatch)?.iter().map(|d| *d as usize).collect();
            let count: usize = dims.iter().product();
            let words = heap.get(at + rank..at + rank + count).ok_or(Mismatch)?.to_vec();
            at += rank + count;
            pieces.push(Piece { ty, dims, words, heap: Some(heap.clone()) });
        }
        Ok(pieces)
    }
}

impl Node {
    fn leaves(&self) -> Vec<LeafType> {
        match self {
            Node::Real => vec![LeafType::REAL],
            Node::Int => vec![LeafType::INT],
            Node::Bool => vec![LeafType::BOOL],
            Node::Unit => Vec::new(),
            Node::String => vec![LeafType::array(Scalar::Int, 1)],
            Node::Tuple(parts) => parts.iter().flat_map(Node::leaves).collect(),
            Node::Variant(constructors) => {
                let fields = constructors.iter().flatten().flat_map(Node::leaves);
                std::iter::once(LeafType::INT).chain(fields).collect()
            }
            Node::Array(element) => {
                let leaves = element.leaves();
                let counted = leaves.is_empty().then_some(LeafType::BOOL);
                leaves.into_iter().chain(counted).map(LeafType::in_array).collect()
            }
            Node::Boxed { .. } | Node::Wrapped(_) => vec![boxed(0)],
        }
    }

    /// Reals, or arrays of these.
    pub fn is_dense(&self) -> bool {
        match self {
            Node::Real => true,
            Node::Array(inner) => inner.is_dense(),
            Node::Int | Node::Bool | Node::Unit | Node::String | Node::Tuple(_) | Node::Variant(_) => false,
            Node::Boxed { .. } | Node::Wrapped(_) => false,
        }
    }
}

/// Layouts under way: recursive types by number.
struct Making<'a> {
    lowering: Lowering<'a>,
    program: &'a Program,
    numbers: FxHashMap<Type, usize>,
    cells: Vec<Vec<Vec<Node>>>,
}

impl Writer {
    /// Writes a cell and gives its reference.
    fn cell(&mut self, tag: usize, fields: &[Piece]) -> i64 {
        if fields.is_empty() {
            return immediate(tag);
        }
        let place = self.words.len() as i64;
        self.words.push(tag as i64);
        for piece in fields {
            self.words.extend(piece.dims.iter().map(|d| *d as i64));
            self.words.extend(&piece.words);
        }
        self.places.push(place);
        place
    }
}

impl Piece {
    fn number(ty: LeafType, word: i64) -> Piece {
        Piece { ty, dims: Vec::new(), words: vec![word], heap: None }
    }

    /// Zero, nothing, or an array without elements.
    fn empty(ty: LeafType) -> Piece {
        let words = match (ty.rank, ty.scalar) {
            (0, Scalar::Box(_)) => vec![NIL],
            (0, Scalar::Real | Scalar::Int | Scalar::Bool) => vec![0],
            _ => Vec::new(),
        };
        Piece { ty, dims: vec![0; ty.rank as usize], words, heap: None }
    }

    /// The tag of a box.
    fn tag(&self) -> Result<usize, Mismatch> {
        let reference = *self.words.first().ok_or(Mismatch)?;
        let tag = match usize::try_from(reference) {
            Ok(place) => *self.heap.as_ref().and_then(|h| h.get(place)).ok_or(Mismatch)?,
            Err(_) => -2 - reference,
        };
        usize::try_from(tag).map_err(|_| Mismatch)
    }

    /// Row `i` of an array.
    fn row(&self, i: usize) -> Piece {
        let dims = self.dims.get(1..).unwrap_or_default().to_vec();
        let width: usize = dims.iter().product();
        let words = self.words.get(i * width..(i + 1) * width).unwrap_or_default().to_vec();
        Piece { ty: self.ty.at(1), dims, words, heap: self.heap.clone() }
    }

    fn leaf(self, writer: &Writer) -> Leaf {
        let Piece { ty, dims, words, .. } = self;
        let real = |w: &i64| f64::from_bits(*w as u64);
        let first = words.first().copied().unwrap_or(0);
        match (ty.scalar, ty.rank) {
            (Scalar::Real, 0) => Leaf::Real(real(&first)),
            (Scalar::Int, 0) => Leaf::Int(first),
            (Scalar::Bool, 0) => Leaf::Bool(first != 0),
            (Scalar::Real, _) => Leaf::Reals { dims, data: words.iter().map(real).collect() },
            (Scalar::Int, _) => Leaf::Ints { dims, data: words },
            (Scalar::Bool, _) => Leaf::Bools { dims, data: words.iter().map(|w| u8::from(*w != 0)).collect() },
            (Scalar::Box(_), rank) => {
                let mut all = writer.words.clone();
                let root = if rank == 0 { first } else { all.len() as i64 };
                if rank > 0 {
                    all.extend(dims.iter().map(|d| *d as i64));
                    all.extend(words);
                }
                let used = all.len();
                all.extend(&writer.places);
                Leaf::Boxes(Boxes { rank, words: all, used, root })
            }
        }
    }

    fn of(leaf: Leaf) -> Piece {
        let ty = leaf.ty();
        let bits = |x: &f64| x.to_bits() as i64;
        match leaf {
            Leaf::Real(x) => Piece::number(ty, bits(&x)),
            Leaf::Int(x) => Piece::number(ty, x),
            Leaf::Bool(x) => Piece::number(ty, i64::from(x)),
            Leaf::Reals { dims, data } => Piece { ty, dims, words: data.iter().map(bits).collect(), heap: None },
            Leaf::Ints { dims, data } => Piece { ty, dims, words: data, heap: None },
            Leaf::Bools { dims, data } => {
                Piece { ty, dims, words: data.iter().map(|b| i64::from(*b)).collect(), heap: None }
            }
            Leaf::Boxes(boxes) => {
                let heap = Rc::new(boxes.words);
                if boxes.rank == 0 {
                    return Piece { ty, dims: Vec::new(), words: vec![boxes.root], heap: Some(heap) };
                }
                let at = boxes.root as usize;
                let rank = boxes.rank as usize;
                let dims: Vec<usize> = heap.iter().skip(at).take(rank).map(|d| *d as usize).collect();
                let count = dims.iter().product();
                let words = heap.iter().skip(at + rank).take(count).copied().collect();
                Piece { ty, dims, words, heap: Some(heap) }
            }
        }
    }
}
