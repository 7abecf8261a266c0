//! Loops that do the same share one function: the same operations on variables of the same types, whatever their names and wherever they stand. Programs repeat
//! themselves, not least because functions are written out where they are called.
//!
//! A loop is written with its variables and places numbered anew; two that then read the same are the same. The function fails with the numbers of its own places,
//! and whoever runs it adds where these begin among all places.

use super::chunks::Body;
use super::emit::Linker;
use crate::cores::{Chunked, Join};
use crate::flow::*;
use crate::place::{Place, Places};
use cranelift_module::{FuncId, Module as _};
use gradus_core::traverse::with_stack;
use gradus_source::{FileId, Span};
use rustc_hash::FxHashMap;

/// Longer loops are not compared.
const LONG: usize = 200;

/// The function of a loop, and how its failures are numbered.
pub(super) struct Shared {
    pub(super) function: FuncId,
    /// The number of the place of the loop itself in the function's numbers.
    pub(super) place: usize,
    /// How many places come before those of the function.
    pub(super) before: usize,
}

/// What loops have in common that share a function, once their variables are numbered: first those that they take from outside.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Same {
    l: For,
    joins: Vec<Join>,
    outside: Vec<Var>,
    sums: Vec<Var>,
    arrays: Vec<Var>,
    once: bool,
    /// Of the variables, in the order of their numbers.
    types: Vec<Type>,
}

impl Linker<'_> {
    /// The function that runs a range of iterations of a loop.
    pub(super) fn body(&mut self, l: &For, chunked: &Chunked, arrays: &[Var], span: Span) -> Shared {
        if !can_be_shared(&l.body, &mut 0) {
            let place = self.places.number(None, span);
            let body = Body::new(self.declare_body(), l.clone(), chunked, arrays.to_vec(), span, None);
            let function = body.function;
            self.bodies.push(body);
            return Shared { function, place, before: 0 };
        }
        let mut numbering = Numbering::default();
        let span = numbering.made_of_rows(span);
        let mut chunked = chunked.clone();
        [&mut chunked.outside, &mut chunked.sums].into_iter().flatten().for_each(|v| *v = numbering.var(*v));
        // What is only of interest to those who run it.
        chunked.work.clear();
        chunked.rows.clear();
        let arrays: Vec<Var> = arrays.iter().map(|v| numbering.var(*v)).collect();
        let mut l = l.clone();
        numbering.atom(&mut l.count);
        l.index = numbering.var(l.index);
        for ((var, init), join) in l.carried.iter_mut().zip(&chunked.joins) {
            *var = numbering.var(*var);
            *init = join.neutral();
        }
        numbering.block(&mut l.body);
        let before = self.places.append(&numbering.places);
        let same = Same {
            l,
            joins: chunked.joins.clone(),
            outside: chunked.outside.clone(),
            sums: chunked.sums.clone(),
            arrays: arrays.clone(),
            once: chunked.once,
            types: numbering.types,
        };
        let function = match self.shared.get(&same) {
            Some(function) => *function,
            None => {
                let function = self.declare_body();
                self.bodies.push(Body::new(function, same.l.clone(), &chunked, arrays, span, Some(numbering.own)));
                self.shared.insert(same, function);
                function
            }
        };
        Shared { function, place: 1, before }
    }

    fn declare_body(&mut self) -> FuncId {
        match self.jit.declare_anonymous_function(&self.body_signature()) {
            Ok(function) => function,
            Err(error) => gradus_source::bug!("the function of a loop cannot be declared: {error}"),
        }
    }
}

/// Whether a block calls no functions, which have places of their own, and is no long one.
fn can_be_shared(block: &Block, length: &mut usize) -> bool {
    with_stack(|| {
        *length += block.stmts.len();
        *length < LONG
            && block.stmts.iter().all(|stmt| {
                !matches!(stmt.op, Op::Call { .. }) && stmt.op.blocks().all(|inner| can_be_shared(inner, length))
            })
    })
}

/// Numbers for variables and places, in the order in which they are met.
#[derive(Default)]
struct Numbering {
    vars: FxHashMap<Var, Var>,
    types: Vec<Type>,
    spans: FxHashMap<Span, Span>,
    /// Where the loop can fail, and the same with the new positions.
    places: Vec<Place>,
    own: Places,
}

impl Numbering {
    fn var(&mut self, var: Var) -> Var {
        let Numbering { vars, types, .. } = self;
        *vars.entry(var).or_insert_with(|| {
            types.push(var.ty);
            // From the end of all numbers, so that nobody else has it.
            Var { id: u32::MAX - types.len() as u32, ty: var.ty, name: Name::new("v") }
        })
    }

    fn atom(&mut self, atom: &mut Atom) {
        if let Atom::Var(var) = atom {
            *var = self.var(*var);
        }
    }

    /// A position that stands for another one, where something can run out.
    fn span(&mut self, span: Span) -> Span {
        let number = self.spans.len() as u32;
        let new = *self.spans.entry(span).or_insert_with(|| Span::new(FileId(u32::MAX), number, number));
        self.place(None, span, new);
        new
    }

    /// The same, where rows of an array can differ, too.
    fn made_of_rows(&mut self, span: Span) -> Span {
        let new = self.span(span);
        self.place(Some(Failure::Rows), span, new);
        new
    }

    fn place(&mut self, failure: Option<Failure>, span: Span, new: Span) {
        if self.own.number(failure, new) > self.places.len() {
            self.places.push(Place { failure, span });
        }
    }

    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            for stmt in &mut block.stmts {
                let new = match &stmt.op {
                    Op::For(_) | Op::While(_) | Op::Literal { .. } => self.made_of_rows(stmt.span),
                    _ => self.span(stmt.span),
                };
                if let Op::Check { failure, .. } = &stmt.op {
                    self.place(Some(*failure), stmt.span, new);
                }
                stmt.span = new;
                stmt.op.for_each_operand_mut(&mut |a| self.atom(a));
                stmt.op.for_each_param_mut(&mut |v| *v = self.var(*v));
                stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                stmt.binds.iter_mut().for_each(|v| *v = self.var(*v));
            }
            block.results.iter_mut().for_each(|a| self.atom(a));
        })
    }
}
