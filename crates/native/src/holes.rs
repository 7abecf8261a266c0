//! The very last pass: recursion that ends by putting its result into a new cell becomes a loop that makes the cell first.
//!
//! `map f (x :: rest) = f x :: map f rest` calls itself before it makes the cell, so it needs a stack as long as the list. Here the cell is made with
//! a *hole* where the rest belongs, and the loop goes on with the rest and where it is to be put: `f(params)` becomes a loop in
//! `f_into(hole, params)` that gives nothing, and `f` itself begins with a cell that has nothing but a hole. Sums of adjoints of lists are made
//! by such functions (`adjoint::merge`), and so are the lists of users.
//!
//! Only the caller knows of a cell with a hole, and no other pass comes after this one; so that cells never change remains true for everybody else.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_source::Span;

/// Makes loops of the recursion of a module, where that is possible.
pub fn run(module: &mut Module) {
    for id in (0..module.functions.len()).map(FunctionId) {
        let function = module.function(id);
        let Some(shape) = only_box(&function.results) else { continue };
        let mut calls = Vec::new();
        if !last_calls(&function.body, id, &mut calls) {
            continue;
        }
        // What each call passes on as it is stays outside of the loop.
        let changes = |(i, param): &(usize, &Var)| calls.iter().any(|args| args[*i].var() != Some(**param));
        let state: Vec<usize> = function.params.iter().enumerate().filter(changes).map(|(i, _)| i).collect();
        if !state.iter().any(|i| function.params[*i].ty.accumulator) {
            split(module, id, shape, &state);
        }
    }
}

fn only_box(results: &[Type]) -> Option<ShapeId> {
    match results {
        [ty] if !ty.is_array() => ty.shape(),
        _ => None,
    }
}

/// How a block ends.
enum End {
    /// With a branch that gives the result.
    Branch,
    /// With a call of the function itself that gives the result.
    Call,
    /// With a cell, of which a field is what a call of the function itself gives, at this statement.
    Cell {
        call: usize,
        field: usize,
    },
    Other,
}

fn end(block: &Block, id: FunctionId) -> End {
    let ([Atom::Var(result)], Some((last, before))) = (&block.results[..], block.stmts.split_last()) else {
        return End::Other;
    };
    if last.binds != [*result] {
        return End::Other;
    }
    match &last.op {
        Op::If { .. } => End::Branch,
        op if arguments(op, id).is_some() => End::Call,
        Op::Cell { fields, .. } => {
            let Some(call) = before.iter().rposition(|stmt| arguments(&stmt.op, id).is_some()) else {
                return End::Other;
            };
            let given = before[call].binds[0];
            // What stands between the call and the cell can as well be done before the call.
            let is_apart = |stmt: &Stmt| {
                let mut uses = false;
                stmt.op.for_each_operand(&mut |a| uses |= a.var() == Some(given));
                !uses && is_plain(&stmt.op)
            };
            let places: Vec<usize> = (0..fields.len()).filter(|i| fields[*i].var() == Some(given)).collect();
            match places[..] {
                [field] if before[call + 1..].iter().all(is_apart) => End::Cell { call, field },
                _ => End::Other,
            }
        }
        _ => End::Other,
    }
}

/// The arguments of a call of this function.
fn arguments(op: &Op, id: FunctionId) -> Option<&[Atom]> {
    match op {
        Op::Call { function, args } if *function == id => Some(args),
        _ => None,
    }
}

/// Whether an operation neither fails nor changes anything nor takes long.
fn is_plain(op: &Op) -> bool {
    is_number(op) || matches!(op, Op::Copy { .. } | Op::Get { .. } | Op::Unpack { .. } | Op::Cell { .. })
}

/// Whether an operation only looks, and gives a number.
fn is_number(op: &Op) -> bool {
    matches!(op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Tag { .. })
}

/// Collects the arguments of the calls with which a block ends; whether it has one for a field of a cell.
fn last_calls<'a>(block: &'a Block, id: FunctionId, found: &mut Vec<&'a [Atom]>) -> bool {
    let mut collect = |stmt: &'a Stmt| found.extend(arguments(&stmt.op, id));
    match end(block, id) {
        End::Branch => with_stack(|| {
            let sides = block.stmts.last().into_iter().flat_map(|stmt| stmt.op.blocks());
            sides.fold(false, |any, side| last_calls(side, id, found) | any)
        }),
        End::Call => {
            block.stmts.last().into_iter().for_each(collect);
            false
        }
        End::Cell { call, .. } => {
            collect(&block.stmts[call]);
            true
        }
        End::Other => false,
    }
}

/// Writes the loop as a function of its own, which `id` then calls; `state` says which parameters change.
fn split(module: &mut Module, id: FunctionId, shape: ShapeId, state: &[usize]) {
    let function = module.function(id).clone();
    let mut rename = walk::Renaming::default();
    let start = Var::fresh("hole", Type::INT);
    let hole = start.refresh();
    let (mut params, mut carried) = (vec![start], vec![(hole, start.into())]);
    for (i, param) in function.params.iter().enumerate() {
        let own = rename.renew(*param);
        if state.contains(&i) {
            let first = own.refresh();
            params.push(first);
            carried.push((own, first.into()));
        } else {
            params.push(own);
        }
    }
    let vars = carried.iter().skip(1).map(|(v, _)| *v).collect();
    let body = Loop { id, shape, hole, state, vars }.block(rename.block(&function.body));
    let mut b = Builder::new();
    b.while_loop(carried, body);
    let name = Name::new(&format!("{}_into", function.name));
    module.functions.push(Function { name, params, results: Vec::new(), body: b.pop(Vec::new()), rule: None });
    let into = FunctionId(module.functions.len() - 1);
    if module.is_merge(id) {
        module.loops_of_merges.insert(into);
    }
    let cells = vec![vec![Type::boxed(shape)]];
    module.shapes.push(Shape { name: Name::new("hole"), cells, trace: false, linear_of: None, merge: None });
    let first = ShapeId(module.shapes.len() as u32 - 1);
    let args = function.params.iter().map(|v| Atom::Var(*v)).collect();
    let mut body = function.body;
    Start { id, into, first, shape, args }.block(&mut body);
    module.functions[id.0].body = body;
}

/// The body of the loop.
struct Loop<'a> {
    id: FunctionId,
    shape: ShapeId,
    /// Where the result of this iteration belongs.
    hole: Var,
    /// Which arguments are state, and the variables for it.
    state: &'a [usize],
    vars: Vec<Var>,
}

impl Loop<'_> {
    /// The block with other results: whether to go on, where the next result belongs, and the next state.
    fn block(&self, mut block: Block) -> Block {
        match end(&block, self.id) {
            End::Branch => {
                if let Some(Stmt { op: Op::If { cond, then, otherwise, replayed }, span, .. }) = block.stmts.pop() {
                    let [then, otherwise] = [then, otherwise].map(|side| with_stack(|| self.block(*side)));
                    let mut binds = vec![Var::fresh("go", Type::BOOL), self.hole.refresh()];
                    binds.extend(self.vars.iter().map(|v| v.refresh()));
                    block.results = binds.iter().map(|v| Atom::Var(*v)).collect();
                    block.stmts.push(Stmt { binds, op: Op::branch(cond, then, otherwise, replayed), span });
                }
            }
            End::Call => {
                let call = block.stmts.pop();
                block.results = self.go_on(self.hole, call);
            }
            End::Cell { call, field } => {
                let call = block.stmts.remove(call);
                let next = self.hole.refresh();
                if let Some(Stmt { binds, op: Op::Cell { tag, fields, .. }, span }) = block.stmts.last_mut() {
                    fields[field] = Atom::Nil(self.shape);
                    let (cell, span) = (binds[0], *span);
                    let hole = Op::Hole { cell, tag: *tag, field };
                    block.stmts.push(Stmt { binds: vec![next], op: hole, span });
                    block.stmts.push(self.plug(cell.into(), span));
                }
                block.results = self.go_on(next, Some(call));
            }
            End::Other => {
                block.stmts.push(self.plug(block.results[0], Span::default()));
                // Nobody looks at the state any more.
                let last = |v: &Var| if v.ty.is_array() { Atom::Var(*v) } else { Builder::zero(v.ty.scalar) };
                block.results = vec![Atom::Bool(false), self.hole.into()];
                block.results.extend(self.vars.iter().map(last));
            }
        }
        block
    }

    fn plug(&self, value: Atom, span: Span) -> Stmt {
        Stmt { binds: Vec::new(), op: Op::Plug { hole: self.hole.into(), value }, span }
    }

    /// The results of an iteration that ends with a call.
    fn go_on(&self, hole: Var, call: Option<Stmt>) -> Vec<Atom> {
        let args = call.as_ref().and_then(|stmt| arguments(&stmt.op, self.id)).unwrap_or_default();
        let state = self.state.iter().map(|i| args[*i]);
        [Atom::Bool(true), hole.into()].into_iter().chain(state).collect()
    }
}

/// What is left of the function itself.
struct Start {
    id: FunctionId,
    into: FunctionId,
    /// The shape of the first cell, which has only a hole, and that of the result.
    first: ShapeId,
    shape: ShapeId,
    args: Vec<Atom>,
}

impl Start {
    /// Goes into the loop where the block would call itself; as long as it only asks, it asks here, for an end needs no cell.
    fn block(&self, block: &mut Block) {
        if !last_calls(block, self.id, &mut Vec::new()) {
            return;
        }
        match block.stmts.split_last_mut() {
            Some((last, before)) if before.iter().all(|stmt| is_number(&stmt.op)) && last.op.has_blocks() => {
                with_stack(|| last.op.blocks_mut().for_each(|side| self.block(side)))
            }
            _ => {
                let mut b = Builder::new();
                let cell = b.cell(self.first, 0, vec![Atom::Nil(self.shape)]);
                let hole = Var::fresh("hole", Type::INT);
                b.stmts(cell.var().map(|cell| Stmt {
                    binds: vec![hole],
                    op: Op::Hole { cell, tag: 0, field: 0 },
                    span: Span::default(),
                }));
                let args = [vec![hole.into()], self.args.clone()].concat();
                b.bind(Vec::new(), Op::Call { function: self.into, args });
                let result = b.unpack(&[Type::boxed(self.shape)], cell, 0);
                *block = b.pop(result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_holes(text: &str) -> String {
        let mut module = read::module(text).expect("reads");
        check::module(&module).expect("is well formed");
        run(&mut module);
        check::module(&module).expect("is still well formed");
        let found = print::module(&module);
        let again = read::module(&found).expect("reads again");
        assert_eq!(found, print::module(&again));
        found
    }

    /// Those of a list that are not zero, times a number.
    const SCALED: &str = "\
shape 0 list = () | (real, box0)

fun scaled(by: real, list: box0) -> (box0) {
  tag = tag list
  end = eq tag 0
  all = if end {
    yield list
  } else {
    x, rest = unpack list 1
    zero = eq x 0.0
    some = if zero {
      same = call scaled by rest
      yield same
    } else {
      others = call scaled by rest
      y = mul x by
      longer = cell box0 1 y others
      yield longer
    }
    yield some
  }
  return all
}
";

    #[test]
    fn a_list_is_made_from_its_beginning() {
        let found = with_holes(SCALED);
        for part in [
            "shape 1 hole = (box0)",
            "    cell = cell box1 0 nil0\n    hole = hole cell 0 0\n    call scaled_into hole by list\n    field = unpack cell 0\n",
            "fun scaled_into(hole: int, by: real, list: box0) -> () {\n  hole.3, list.3 = while with hole.2: int = hole, list.2: box0 = list {",
            "      plug hole.2 list.2\n      yield false hole.2 nil0",
            "        yield true hole.2 rest",
            "        longer = cell box0 1 y nil0\n        hole.6 = hole longer 1 1\n        plug hole.2 longer\n        yield true hole.6 rest",
        ] {
            assert!(found.contains(part), "no {part} in\n{found}");
        }
    }

    #[test]
    fn other_recursion_stays_as_it_is() {
        let used_twice = SCALED.replace("y = mul x by\n", "y = mul x by\n      n = tag others\n");
        let checked = SCALED.replace("y = mul x by\n", "y = mul x by\n      check end index\n");
        for text in [used_twice, checked] {
            let module = read::module(&text).expect("reads");
            assert_eq!(with_holes(&text), print::module(&module));
        }
    }
}
