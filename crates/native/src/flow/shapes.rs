//! Shapes of cells: adding them, their linear shapes, and modules put together.

use super::*;
use gradus_core::traverse::with_stack;

/// How often a function may be differentiated inside its own derivative.
const MAX_ORDER: usize = 6;

impl Module {
    pub fn shape(&self, id: ShapeId) -> &Shape {
        match self.shapes.get(id.0 as usize) {
            Some(shape) => shape,
            None => gradus_source::bug!("no shape {id}"),
        }
    }

    /// The word of a cell at which a field of it begins.
    pub fn place(&self, cell: Var, tag: usize, field: usize) -> usize {
        match cell.ty.shape() {
            Some(shape) => CellLayout::of(self.fields(shape, tag)).places[field].at,
            None => gradus_source::bug!("{} is no cell", cell.name),
        }
    }

    /// The types of the fields of a cell.
    pub fn fields(&self, shape: ShapeId, tag: usize) -> &[Type] {
        match self.shape(shape).cells.get(tag) {
            Some(fields) => fields,
            None => gradus_source::bug!("no tag {tag} in shape {shape}"),
        }
    }

    /// A shape without cells yet: shapes may contain each other.
    pub fn new_shape(&mut self, name: impl Into<Name>) -> ShapeId {
        self.shapes.push(Shape { name: name.into(), cells: Vec::new(), trace: false, linear_of: None, merge: None });
        ShapeId(self.shapes.len() as u32 - 1)
    }

    /// The same for what reverse mode keeps.
    pub fn new_trace(&mut self) -> ShapeId {
        let shape = self.new_shape("trace");
        self.shapes[shape.0 as usize].trace = true;
        shape
    }

    /// Adds a tag to a shape, and to its linear shape if there is one.
    pub fn add_cell(&mut self, shape: ShapeId, fields: Vec<Type>) -> usize {
        let tag = self.shape(shape).cells.len();
        let linear = self.known_linear(shape);
        self.shapes[shape.0 as usize].cells.push(fields);
        if let Some(linear) = linear {
            self.fill_linear(linear, shape);
        }
        tag
    }

    fn known_linear(&self, shape: ShapeId) -> Option<ShapeId> {
        self.shapes.iter().position(|s| s.linear_of == Some(shape)).map(|i| ShapeId(i as u32))
    }

    /// The shape of tangents and adjoints of a shape.
    pub fn linear(&mut self, shape: ShapeId) -> ShapeId {
        if self.shape(shape).linear_of.is_some() {
            return shape;
        }
        if let Some(known) = self.known_linear(shape) {
            return known;
        }
        let name = self.shape(shape).name.with("_linear");
        let linear = self.new_shape(name);
        self.shapes[linear.0 as usize].linear_of = Some(shape);
        self.fill_linear(linear, shape);
        linear
    }

    fn fill_linear(&mut self, linear: ShapeId, shape: ShapeId) {
        with_stack(|| {
            for tag in self.shape(linear).cells.len()..self.shape(shape).cells.len() {
                // Kept in step with the shape, also when making the fields' linear shapes leads back here.
                self.shapes[linear.0 as usize].cells.push(Vec::new());
                let fields: Vec<Type> = self.shape(shape).cells[tag].clone();
                let fields = fields.into_iter().filter(|t| t.may_be_active()).map(|t| self.linear_type(t)).collect();
                self.shapes[linear.0 as usize].cells[tag] = fields;
            }
        })
    }

    /// The type of the tangent or adjoint of a value of a type that may be active.
    pub fn linear_type(&mut self, ty: Type) -> Type {
        match ty.scalar {
            Scalar::Box(shape) => Type { scalar: Scalar::Box(self.linear(shape)), ..ty },
            Scalar::Real | Scalar::Int | Scalar::Bool => ty,
        }
    }

    /// Whether a function adds boxes.
    pub fn is_merge(&self, function: FunctionId) -> bool {
        self.shapes.iter().any(|s| s.merge == Some(function))
    }

    /// The parameters that a function takes over from its caller; others it borrows. Sums of boxes take over both, to make the sum of their cells;
    /// so do the loops that `holes` makes of them.
    pub fn taken_over(&self, function: FunctionId) -> &[Var] {
        match self.is_merge(function) || self.loops_of_merges.contains(&function) {
            true => &self.function(function).params,
            false => &[],
        }
    }

    /// Whether a function can come to call itself, for all that is known.
    ///
    /// `known`: those of which this was found. Of those that do not, all that they call is complete, and none of it calls a function that calls them.
    pub fn may_recurse(&self, id: FunctionId, known: &mut FxHashMap<FunctionId, bool>) -> bool {
        if let Some(known) = known.get(&id) {
            return *known;
        }
        let mut next = vec![id];
        let mut callers: FxHashMap<FunctionId, FunctionId> = FxHashMap::default();
        while let Some(caller) = next.pop() {
            if known.get(&caller) == Some(&false) {
                continue;
            }
            let function = self.function(caller);
            if function.is_unfinished() {
                return true;
            }
            let mut called = Vec::new();
            walk::callees(&function.body, &mut called);
            if called.contains(&id) {
                // So do all on the way there.
                let way = std::iter::successors(Some(caller), |f| Some(*f).filter(|f| *f != id).map(|f| callers[&f]));
                known.extend(way.map(|f| (f, true)));
                return true;
            }
            for called in called {
                callers.entry(called).or_insert_with(|| {
                    next.push(called);
                    caller
                });
            }
        }
        known.insert(id, false);
        false
    }

    /// A new function that comes from differentiating another one, its body still to be written. Beyond the highest order it is one that
    /// stops the program.
    pub fn derived(&mut self, of: FunctionId, name: Name, params: Vec<Var>, results: Vec<Type>) -> FunctionId {
        let id = FunctionId(self.functions.len());
        let order = self.orders.get(&of).copied().unwrap_or(0) + 1;
        self.orders.insert(id, order);
        let mut body = Block::unfinished();
        if order > MAX_ORDER {
            let mut b = Builder::new();
            b.span = self.function(of).body.stmts.first().map_or(b.span, |s| s.span);
            b.check(Atom::Bool(false), Failure::Order);
            let nothing = results.iter().map(|ty| b.dummy(*ty)).collect();
            body = b.pop(nothing);
        }
        self.functions.push(Function { name, params, results, body, rule: None });
        id
    }

    /// Adds the functions of another module; its function `i` gets the number `i` plus the result.
    pub fn append(&mut self, other: Module) -> usize {
        let shift = Shift { functions: self.functions.len(), shapes: self.shapes.len() as u32 };
        for mut shape in other.shapes {
            shape.cells.iter_mut().flatten().for_each(|t| shift.ty(t));
            shape.linear_of.iter_mut().for_each(|s| s.0 += shift.shapes);
            shape.merge.iter_mut().for_each(|f| f.0 += shift.functions);
            self.shapes.push(shape);
        }
        for mut function in other.functions {
            function.params.iter_mut().for_each(|v| shift.ty(&mut v.ty));
            function.results.iter_mut().for_each(|t| shift.ty(t));
            if let Some(rule) = &mut function.rule {
                rule.reverse.iter_mut().chain(&mut rule.forward).for_each(|f| f.0 += shift.functions);
            }
            shift.block(&mut function.body);
            self.functions.push(function);
        }
        shift.functions
    }
}

/// Renumbers functions and shapes.
struct Shift {
    functions: usize,
    shapes: u32,
}

impl Shift {
    fn ty(&self, ty: &mut Type) {
        if let Scalar::Box(shape) = &mut ty.scalar {
            shape.0 += self.shapes;
        }
    }

    fn atom(&self, atom: &mut Atom) {
        match atom {
            Atom::Var(v) => self.ty(&mut v.ty),
            Atom::Nil(shape) => shape.0 += self.shapes,
            Atom::Real(_) | Atom::Int(_) | Atom::Bool(_) => {}
        }
    }

    fn block(&self, block: &mut Block) {
        with_stack(|| {
            for stmt in &mut block.stmts {
                stmt.binds.iter_mut().for_each(|v| self.ty(&mut v.ty));
                match &mut stmt.op {
                    Op::Call { function, .. } => function.0 += self.functions,
                    Op::Cell { shape, .. } => shape.0 += self.shapes,
                    Op::Literal { ty, .. } => self.ty(ty),
                    Op::Pop { types } => types.iter_mut().for_each(|t| self.ty(t)),
                    _ => {}
                }
                stmt.op.for_each_operand_mut(&mut |a| self.atom(a));
                for inner in stmt.op.blocks_mut() {
                    self.block(inner);
                }
                stmt.op.for_each_param_mut(&mut |v| self.ty(&mut v.ty));
            }
            block.results.iter_mut().for_each(|a| self.atom(a));
        })
    }
}

/// Where a field stands in its cell, in words after the header: first all boxes, then the owners of arrays, then the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number, the box, or the owner of the array.
    pub at: usize,
    /// Of an array: its data pointer, followed by its dimensions.
    pub rest: usize,
}

/// How the words of a cell are used.
#[derive(Clone, Debug, Default)]
pub struct CellLayout {
    pub places: Vec<Place>,
    pub boxes: usize,
    pub blocks: usize,
    pub words: usize,
}

impl CellLayout {
    pub fn of(fields: &[Type]) -> CellLayout {
        let is_box = |t: &&Type| t.rank == 0 && t.shape().is_some();
        let boxes = fields.iter().filter(is_box).count();
        let blocks = fields.iter().filter(|t| t.is_array()).count();
        let (mut next_box, mut next_block, mut next) = (0, boxes, boxes + blocks);
        let mut places = Vec::new();
        for field in fields {
            let (place, width) = if field.is_array() {
                next_block += 1;
                (Place { at: next_block - 1, rest: next }, 1 + field.rank as usize)
            } else if is_box(&field) {
                next_box += 1;
                (Place { at: next_box - 1, rest: 0 }, 0)
            } else {
                (Place { at: next, rest: 0 }, 1)
            };
            places.push(place);
            next += width;
        }
        CellLayout { places, boxes, blocks, words: next }
    }
}

/// Where values pushed together lie, in bytes: words first, then booleans, one byte each, so that what comes next need not be aligned.
#[derive(Clone, Debug, Default)]
pub struct TapeLayout {
    pub places: Vec<usize>,
    pub bytes: usize,
}

impl TapeLayout {
    pub fn of(types: &[Type]) -> TapeLayout {
        let is_byte = |ty: &Type| *ty == Type::BOOL;
        // An array is its data pointer, its owner and its dimensions.
        let size = |ty: &Type| if ty.is_array() { 8 * (2 + ty.rank as usize) } else { 8 };
        let words: usize = types.iter().filter(|t| !is_byte(t)).map(size).sum();
        let (mut word, mut byte) = (0, words);
        let mut places = Vec::with_capacity(types.len());
        for ty in types {
            let (next, width) = if is_byte(ty) { (&mut byte, 1) } else { (&mut word, size(ty)) };
            places.push(*next);
            *next += width;
        }
        TapeLayout { places, bytes: byte }
    }
}
