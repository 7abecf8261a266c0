//! Runs of the monadic derivative: the tape that our evaluator makes, and the one that the extracted semantics makes. They must be equal entry for entry.

use crate::compare::{ok, run, Place, Prepared, Subject};
use crate::types::layout;
use crate::values::{same, same_delta};
use crate::wire::Sexp;
use gradus_core::traverse::with_stack;
use gradus_core::{Definitions, Type};
use gradus_generate::Data;
use gradus_reference::{Kinks, Value};
use gradus_source::bug;

/// What `proofs/Monadic.v` allows for a step of the program (`KM`).
const MOST: u64 = 500;

/// Compares the tape at a point, `delta_program f x`, with the answer about it. `primal`: the steps of the program.
/// Gives the number of entries and the steps of the derivative; `None` if it takes too long.
pub(crate) fn judge(
    subject: &Subject,
    prepared: &Prepared,
    point: &Place,
    answer: &Sexp,
    primal: u64,
) -> Result<Option<(usize, u64)>, String> {
    let term = prepared.linker.delta_program(&subject.function, point.term.clone(), &subject.input, &subject.output);
    let ours = run(&prepared.linker, Kinks::Ignore, |machine| machine.eval(&term));
    let ours = match &ours {
        Ok(None) => return Ok(None),
        Ok(Some(Value::Node(0, parts))) => match &parts[..] {
            [result, Value::Node(0, state)] => Ok((result, bindings(&state[1]))),
            _ => return Err("a Delta program without a state".into()),
        },
        Ok(Some(_)) => return Err("a Delta program that is no pair".into()),
        Err(problem) => Err(problem),
    };
    let (steps, entries) = match (ok(answer)?, ours) {
        (None, Err(_)) => return Ok(Some((0, 0))),
        (None, Ok(_)) => return Err("the tape is undefined in the proofs, not in the code".into()),
        (Some(_), Err(problem)) => return Err(format!("a tape in the proofs, in the code: {problem}")),
        (Some((theirs, steps, _, tape)), Ok((result, entries))) => {
            let inputs = inputs(&prepared.linker, &subject.input, &point.data, &mut 0);
            let theirs = renumbered(theirs, &inputs);
            if !same(&prepared.linker, &subject.output, result, &theirs, true) {
                return Err(format!("the taped result at {:?} is {theirs:?} in the proofs", point.data));
            }
            let tape = tape.map(|tape| renumbered(tape, &inputs));
            same_tape(&entries, tape.as_ref().and_then(Sexp::list).unwrap_or_default(), &point.data)?;
            (steps, entries.len())
        }
    };
    // A top-level value is computed once in the program.
    if prepared.values.is_empty() && steps > MOST * primal {
        return Err(format!("{steps} steps of the monadic derivative of {primal} steps"));
    }
    Ok(Some((entries, steps)))
}

/// The identifiers of the reals of a point, in the order of the proofs: there the label of a tree comes before its subtrees, here
/// the arguments of a constructor are in the order of its declaration.
fn inputs(definitions: &dyn Definitions, ty: &Type, data: &Data, next: &mut i64) -> Vec<i64> {
    with_stack(|| match (ty, data) {
        (_, Data::Real(_)) => {
            *next += 1;
            vec![*next - 1]
        }
        (_, Data::Int(_) | Data::Bool(_)) => vec![],
        (Type::Tuple(types), Data::Tuple(items)) => {
            types.iter().zip(items).flat_map(|(ty, item)| inputs(definitions, ty, item, next)).collect()
        }
        (Type::Array(element), Data::Array(items)) => {
            items.iter().flat_map(|item| inputs(definitions, element, item, next)).collect()
        }
        (Type::Named(name, types), Data::Construct { tag, args }) => {
            let layout = layout(definitions, name, types).unwrap_or_else(|_| bug!("a point of type {ty:?}"));
            let (mut label, mut subtrees) = (vec![], vec![]);
            for (own, arg) in layout.constructors[*tag].iter().zip(args) {
                match own {
                    Some(own) => label.extend(inputs(definitions, own, arg, next)),
                    None => subtrees.extend(inputs(definitions, ty, arg, next)),
                }
            }
            label.extend(subtrees);
            label
        }
        _ => bug!("a point does not have its type {ty:?}"),
    })
}

/// An answer with our identifiers of the inputs.
fn renumbered(answer: &Sexp, inputs: &[i64]) -> Sexp {
    with_stack(|| match answer {
        Sexp::Atom(_) => answer.clone(),
        Sexp::List(parts) => match &parts[..] {
            [name, Sexp::Atom(number)] if name.atom() == Some("var") => {
                let input = number.parse::<usize>().ok().and_then(|theirs| inputs.get(theirs));
                let ours = input.map_or(number.clone(), i64::to_string);
                Sexp::List(vec![name.clone(), Sexp::Atom(ours)])
            }
            parts => Sexp::List(parts.iter().map(|part| renumbered(part, inputs)).collect()),
        },
    })
}

fn same_tape(entries: &[(i64, Value)], tape: &[Sexp], point: &Data) -> Result<(), String> {
    if tape.len() != entries.len() {
        return Err(format!("{} tape entries at {point:?} in the proofs, in the code {}", tape.len(), entries.len()));
    }
    // Ours are the latest first.
    for ((id, delta), entry) in entries.iter().rev().zip(tape) {
        let equal = match entry.list() {
            Some([number, theirs]) => number.atom().is_some_and(|n| n.parse() == Ok(*id)) && same_delta(delta, theirs),
            _ => false,
        };
        if !equal {
            return Err(format!("tape entry {id} at {point:?} is {entry:?} in the proofs"));
        }
    }
    Ok(())
}

/// A list of `DeltaId * Delta`.
fn bindings(list: &Value) -> Vec<(i64, Value)> {
    let mut found = Vec::new();
    let mut rest = list.clone();
    while let Value::Node(1, parts) = rest {
        if let Value::Node(0, binding) = &parts[0] {
            if let Value::Int(id) = binding[0] {
                found.push((id, binding[1].clone()));
            }
        }
        rest = parts[1].clone();
    }
    found
}
