//! Sums of adjoints of boxes: one function for each linear shape, written when all shapes are complete.

use super::*;

/// The function that adds boxes of a linear shape; its body comes later.
pub(super) fn ensure(module: &mut Module, shape: ShapeId) -> FunctionId {
    if let Some(merge) = module.shape(shape).merge {
        return merge;
    }
    let ty = Type::boxed(shape);
    let name = Name::new(&format!("boxes_merge_{}", module.shape(shape).name));
    let params = vec![Var::fresh("a", ty), Var::fresh("b", ty)];
    module.functions.push(Function { name, params, results: vec![ty], body: Block::default(), rule: None });
    let id = FunctionId(module.functions.len() - 1);
    module.shapes[shape.0 as usize].merge = Some(id);
    id
}

/// The sum of two boxes.
pub(super) fn call(b: &mut Builder, module: &mut Module, shape: ShapeId, x: Atom, y: Atom) -> Atom {
    match (x, y) {
        (Atom::Nil(_), other) | (other, Atom::Nil(_)) => return other,
        _ => {}
    }
    let function = ensure(module, shape);
    let sum = Var::fresh("sum", Type::boxed(shape));
    b.bind(vec![sum], Op::Call { function, args: vec![x, y] });
    sum.into()
}

/// Writes the bodies of all these functions.
pub(super) fn finish(module: &mut Module) {
    let mut done: FxHashSet<ShapeId> = FxHashSet::default();
    loop {
        let next = (0..module.shapes.len() as u32).map(ShapeId).find(|s| {
            let written = module.shape(*s).merge.is_some_and(|id| !module.function(id).body.results.is_empty());
            module.shape(*s).merge.is_some() && !written && !done.contains(s)
        });
        let Some(shape) = next else { return };
        done.insert(shape);
        let Some(id) = module.shape(shape).merge else { return };
        let params = module.function(id).params.clone();
        let mut b = Builder::new();
        let results = body(&mut b, module, shape, params[0].into(), params[1].into());
        module.functions[id.0].body = b.pop(results);
    }
}

/// Whichever is something, or the sum field by field: both have the tag of the value that they belong to.
fn body(b: &mut Builder, module: &mut Module, shape: ShapeId, x: Atom, y: Atom) -> Vec<Atom> {
    let one = |atom: Atom| Block { stmts: Vec::new(), results: vec![atom] };
    let cells = module.shape(shape).cells.clone();
    let x_tag = b.tag(x);
    let x_nothing = b.scalar(Prim::Less, &[x_tag, Atom::Int(0)]);
    b.push();
    let y_tag = b.tag(y);
    let y_nothing = b.scalar(Prim::Less, &[y_tag, Atom::Int(0)]);
    b.push();
    let mut cases = Vec::new();
    for (tag, fields) in cells.iter().enumerate() {
        b.push();
        let (xs, ys) = (b.unpack(fields, x, tag), b.unpack(fields, y, tag));
        let sums = xs.into_iter().zip(ys).map(|(x, y)| sum(b, module, x, y)).collect();
        let cell = b.cell(shape, tag, sums);
        cases.push((tag, b.pop(vec![cell])));
    }
    let results = crate::lower::choose_case(b, x_tag, cases, vec![x]);
    let both = b.pop(results);
    let results = b.branch(y_nothing, one(x), both);
    let not_x = b.pop(results);
    b.branch(x_nothing, one(y), not_x)
}

fn sum(b: &mut Builder, module: &mut Module, x: Atom, y: Atom) -> Atom {
    if x.ty().is_array() {
        if let Some(shape) = x.ty().shape() {
            ensure(module, shape);
        }
        let acc = b.open("sum".into(), x);
        b.accumulate(acc, Vec::new(), y);
        return b.freeze(acc);
    }
    match x.ty().shape() {
        Some(shape) => call(b, module, shape, x, y),
        None => b.add(x, y),
    }
}
