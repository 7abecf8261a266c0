//! Facts about the calls of a module: which functions can come to call themselves, and which can fail.

use crate::flow::*;
use gradus_core::traverse::with_stack;

/// What a block calls; boxes are added by functions.
fn callees(block: &Block, module: &Module, found: &mut Vec<usize>) {
    walk::for_each_stmt(block, &mut |stmt| match &stmt.op {
        Op::Call { function, .. } => found.push(function.0),
        Op::Add { acc, .. } => found.extend(acc.ty.shape().and_then(|s| module.shape(s).merge).map(|f| f.0)),
        _ => {}
    });
}

/// For each function whether it can come to call itself.
pub fn recursive(module: &Module) -> Vec<bool> {
    let callees = |f: &Function| {
        let mut found = Vec::new();
        callees(&f.body, module, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    };
    let graph: Vec<_> = module.functions.iter().map(callees).collect();
    cycles(&graph).into_iter().map(|cycle| cycle.is_some()).collect()
}

/// For each node of a graph, given by what follows it, the number of the component in which it lies on a cycle, if it does. Tarjan's algorithm with a
/// stack of its own.
pub fn cycles(graph: &[Vec<usize>]) -> Vec<Option<usize>> {
    let count = graph.len();
    let mut found = vec![None; count];
    const NEW: usize = usize::MAX;
    let (mut order, mut low, mut on_path) = (vec![NEW; count], vec![NEW; count], vec![false; count]);
    let (mut component, mut work, mut number) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if order[root] != NEW {
            continue;
        }
        work.push((root, 0));
        while let Some((at, edge)) = work.pop() {
            if edge == 0 {
                order[at] = number;
                low[at] = number;
                number += 1;
                component.push(at);
                on_path[at] = true;
            }
            match graph[at].get(edge) {
                Some(&next) => {
                    work.push((at, edge + 1));
                    if order[next] == NEW {
                        work.push((next, 0));
                    } else if on_path[next] {
                        low[at] = low[at].min(order[next]);
                    }
                }
                None => {
                    if let Some((above, _)) = work.last() {
                        low[*above] = low[*above].min(low[at]);
                    }
                    if low[at] == order[at] {
                        let start = component.iter().rposition(|c| *c == at).unwrap_or(0);
                        let members = component.split_off(start);
                        let cyclic = members.len() > 1 || graph[at].contains(&at);
                        for member in members {
                            on_path[member] = false;
                            found[member] = cyclic.then_some(at);
                        }
                    }
                }
            }
        }
    }
    found
}

/// Whether a function allocates, checks, loops or calls: otherwise it needs nothing of the runtime.
pub fn can_fail(module: &Module, id: FunctionId) -> bool {
    fn block_can_fail(block: &Block) -> bool {
        with_stack(|| {
            block.stmts.iter().any(|stmt| {
                let arrays = stmt.binds.iter().any(|v| v.ty.is_counted());
                let stops =
                    matches!(stmt.op, Op::Push { .. } | Op::Check { .. } | Op::Call { .. } | Op::For(_) | Op::While(_))
                        || matches!(&stmt.op, Op::Add { acc, .. } if acc.ty.shape().is_some());
                arrays || stops || stmt.op.blocks().any(block_can_fail)
            })
        })
    }
    let function = module.function(id);
    function.results.iter().any(|t| t.is_counted()) || block_can_fail(&function.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_calls() {
        let function = |name: &str, calls: &[usize]| {
            let calls: String = calls.iter().map(|c| format!("  call f{c}\n")).collect();
            format!("fun {name}() -> () {{\n{calls}  return\n}}\n\n")
        };
        let graph: [&[usize]; 6] = [&[1, 2], &[3], &[2], &[4], &[1], &[0, 4]];
        let text: String = graph.iter().enumerate().map(|(i, calls)| function(&format!("f{i}"), calls)).collect();
        let module = read::module(&text).expect("reads");
        assert_eq!(recursive(&module), [false, true, true, true, true, false]);
    }
}
