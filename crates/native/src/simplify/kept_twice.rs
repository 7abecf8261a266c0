//! A matrix that a trace keeps as it is and once more with rows and columns exchanged is kept once: products on the way back read the one where they would
//! read the other, which is then made for nobody. So is a parameter of the function, which needs not be kept at all.

use super::copies;
use crate::flow::*;
use crate::recursion;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// The matrices that loops make of others by exchanging rows and columns, each with the loop's counts.
type Exchanged = FxHashMap<Var, (Factor, [Atom; 2])>;

/// What stands for a field of a trace.
#[derive(Clone, Copy)]
struct Instead {
    from: Source,
    transposed: bool,
}

#[derive(Clone, Copy)]
enum Source {
    Field(usize),
    /// A parameter of the function.
    Param(Var),
}

/// The only place where traces of a shape with a tag are made: the function, and the fields.
type Makers = FxHashMap<(ShapeId, usize), Option<(usize, Vec<Atom>)>>;

/// When all derivatives have been taken, and products found.
pub fn run(module: &mut Module) {
    let has_products = |function: &Function| {
        let mut any = false;
        walk::for_each_stmt(&function.body, &mut |stmt| any |= matches!(stmt.op, Op::Product(_)));
        any
    };
    if !module.functions.iter().any(has_products) {
        return;
    }
    let mut instead: FxHashMap<(ShapeId, usize), (usize, FxHashMap<usize, Instead>)> = FxHashMap::default();
    let mut given_up: FxHashSet<Var> = FxHashSet::default();
    let recursive = recursion::recursive(module);
    let all: Vec<Exchanged> = module.functions.iter().map(|function| exchanged(&function.body)).collect();
    for (cell, maker) in makers(module) {
        let Some((id, fields)) = maker else { continue };
        // A trace that is taken apart where it was made is of the same call, unless one can come in from another call.
        let params = &module.functions[id].params;
        let is_own = !recursive[id] && params.iter().all(|param| param.ty.shape().is_none());
        let params = if is_own { &params[..] } else { &[] };
        let found: FxHashMap<usize, Instead> =
            (0..fields.len()).filter_map(|at| Some((at, other(&fields, at, params, &all[id])?))).collect();
        given_up.extend(found.keys().filter_map(|at| fields[*at].var()));
        if !found.is_empty() {
            instead.insert(cell, (id, found));
        }
    }
    if instead.is_empty() {
        return;
    }
    for (id, exchanged) in all.iter().enumerate() {
        let mut factors = FxHashMap::default();
        let body = &module.functions[id].body;
        walk::for_each_stmt(body, &mut |stmt| {
            let Op::Unpack { cell, tag } = &stmt.op else { return };
            let Some((maker, fields)) = cell.ty().shape().and_then(|shape| instead.get(&(shape, *tag))) else { return };
            for (at, Instead { from, transposed }) in fields {
                let matrix = match from {
                    Source::Field(other) => stmt.binds[*other],
                    Source::Param(param) if *maker == id => *param,
                    Source::Param(_) => continue,
                };
                factors.insert(stmt.binds[*at], Factor { matrix, transposed: *transposed });
            }
        });
        let lengths = walk::lengths(body);
        let body = &mut module.functions[id].body;
        read_others(body, &factors);
        lengths_by_counts(body, exchanged, &given_up, &lengths);
    }
}

fn makers(module: &Module) -> Makers {
    let mut makers = Makers::default();
    for (id, function) in module.functions.iter().enumerate() {
        walk::for_each_stmt(&function.body, &mut |stmt| {
            let Op::Cell { shape, tag, fields } = &stmt.op else { return };
            if module.shape(*shape).trace {
                let only = |maker: &mut Option<(usize, Vec<Atom>)>| *maker = None;
                makers.entry((*shape, *tag)).and_modify(only).or_insert_with(|| Some((id, fields.clone())));
            }
        });
    }
    makers
}

fn exchanged(body: &Block) -> Exchanged {
    let nothing = FxHashSet::default();
    let mut found = Exchanged::default();
    walk::for_each_stmt(body, &mut |stmt| {
        let Op::For(outer) = &stmt.op else { return };
        let Some(of) = copies::copied(outer, &nothing).filter(|of| of.transposed) else { return };
        let inner = outer.body.stmts.iter().find_map(|stmt| match &stmt.op {
            Op::For(inner) => Some(inner.count),
            _ => None,
        });
        if let (Some(columns), [matrix]) = (inner, &stmt.binds[..]) {
            found.insert(*matrix, (of, [outer.count, columns]));
        }
    });
    found
}

/// What was kept or given anyway, of which a field is a copy: the one that was there first.
fn other(fields: &[Atom], at: usize, params: &[Var], exchanged: &Exchanged) -> Option<Instead> {
    let mut transposed = false;
    let mut matrix = fields[at].var()?;
    let mut found = None;
    while let Some((of, _)) = exchanged.get(&matrix) {
        matrix = of.matrix;
        transposed = !transposed;
        let field = fields.iter().position(|field| *field == matrix.into()).map(Source::Field);
        let source = params.contains(&matrix).then_some(Source::Param(matrix)).or(field);
        found = source.map(|from| Instead { from, transposed }).or(found);
    }
    found
}

fn read_others(block: &mut Block, factors: &FxHashMap<Var, Factor>) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            if let Op::Product(product) = &mut stmt.op {
                for factor in [&mut product.left, &mut product.right] {
                    if let Some(of) = factors.get(&factor.matrix) {
                        *factor = Factor { matrix: of.matrix, transposed: factor.transposed != of.transposed };
                    }
                }
            }
            stmt.op.blocks_mut().for_each(|inner| read_others(inner, factors));
        }
    })
}

/// Asks for no lengths of these matrices: they are the counts of the loops that make them.
fn lengths_by_counts(block: &mut Block, exchanged: &Exchanged, some: &FxHashSet<Var>, lengths: &FxHashSet<Var>) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| lengths_by_counts(inner, exchanged, some, lengths));
            let known = match &stmt.op {
                Op::Dim { array, axis } if some.contains(array) => {
                    exchanged.get(array).map(|(_, counts)| (counts, *axis))
                }
                _ => None,
            };
            let is_length = |count: &Atom| match count {
                Atom::Int(count) => *count >= 0,
                count => count.var().is_some_and(|v| lengths.contains(&v)),
            };
            match known {
                Some((counts, 0)) if is_length(&counts[0]) => stmt.op = Op::Copy { value: counts[0] },
                Some((counts, _)) if counts.iter().all(is_length) => {
                    // Without rows it has no columns.
                    let runs = Var::fresh("t", Type::BOOL);
                    let compare = Op::Scalar { prim: Prim::Less, args: vec![Atom::Int(0), counts[0]] };
                    out.push(Stmt { binds: vec![runs], op: compare, span: stmt.span });
                    stmt.op = Op::Select { cond: runs.into(), then: counts[1], otherwise: Atom::Int(0) };
                }
                _ => {}
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}
