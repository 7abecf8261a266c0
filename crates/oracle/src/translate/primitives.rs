//! Primitives, and the loops that the core language has as primitives.

use super::*;

impl Translator<'_> {
    pub(super) fn prim(&mut self, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Within<Wire> {
        match prim {
            Prim::Build | Prim::Ifold | Prim::Iterate => return self.iteration(prim, types, args),
            Prim::Polygamma => return self.polygamma(args),
            _ => {}
        }
        let mut wires = args.iter().map(|arg| self.wire(arg)).collect::<Within<Vec<_>>>()?;
        if let Some(name) = scalar(prim) {
            return Ok(Wire::Op(name, wires));
        }
        let compare = |int: &'static str, real: &'static str| match types.first() {
            Some(Type::Int) => Ok(int),
            Some(Type::Real) => Ok(real),
            _ => outside(format!("`{}` of structured data", prim.info().name)),
        };
        Ok(match prim {
            Prim::Less => Wire::Op(compare("ilt", "lt")?, wires),
            Prim::LessEqual => Wire::Op(compare("ile", "le")?, wires),
            Prim::Equal => Wire::Op(compare("ieq", "eq")?, wires),
            Prim::Greater => greater(compare("ile", "lt")?, wires),
            Prim::GreaterEqual => greater(compare("ilt", "le")?, wires),
            Prim::NotEqual => negate(Wire::Op(compare("ieq", "eq")?, wires)),
            Prim::Not => match wires.pop() {
                Some(wire) => negate(wire),
                None => return outside("`not` of nothing"),
            },
            // The order of the two sides is that of the Booleans.
            Prim::Sign => {
                wires.push(Wire::Lit(0, 0));
                Wire::op("lt", wires)
            }
            Prim::VectorAdd if matches!(&types[..], [Type::Real]) => Wire::Op("add", wires),
            Prim::VectorSub if matches!(&types[..], [Type::Real]) => Wire::Op("sub", wires),
            Prim::NegInt => Wire::op("isub", [vec![Wire::Int(0)], wires].concat()),
            Prim::CheckSize => return self.check_size(&types[0], args),
            other => return outside(format!("`{}`", other.info().name)),
        })
    }

    /// `polygamma k x`: the proved language evaluates the real first, which makes no difference unless k makes bindings of its own.
    fn polygamma(&mut self, args: &[Term]) -> Within<Wire> {
        if !binds_nothing(&args[0]) {
            return outside("an order of `polygamma` that more than arithmetic decides");
        }
        Ok(Wire::op("polygamma", [self.wire(&args[1])?, self.wire(&args[0])?]))
    }

    /// `check_size a n`: an index that is not there stands for the error.
    fn check_size(&mut self, element: &Type, args: &[Term]) -> Within<Wire> {
        let array = self.wire(&args[0])?;
        let bound = self.scope.len();
        let size = self.under([None], |t| t.wire(&args[1]))?;
        let element = self.ty(element)?;
        self.under([None], |t| {
            let fits = Wire::op("ieq", [Wire::op("len", [t.index(bound)]), size]);
            let error = Wire::op("get", [Wire::Nil(Ty::array(element)), Wire::Int(0)]);
            let same = t.under([None], |t| Ok(t.index(bound)))?;
            Ok(Wire::bind(array, Wire::case(fits, same, error)))
        })
    }

    /// A function that is written out is used as it is; another one is bound first.
    fn iteration(&mut self, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Within<Wire> {
        match (prim, args) {
            (Prim::Build, [size, function]) => {
                let size = self.wire(size)?;
                if let TermKind::Lambda(l) = &*function.kind {
                    return Ok(Wire::Build(Box::new(size), Box::new(self.lambda_body(l)?.0)));
                }
                let n = self.scope.len();
                let (function, body) = self.under([None], |t| {
                    let function = t.wire(function)?;
                    let f = t.scope.len();
                    t.under([None], |t| {
                        let size = t.index(n);
                        let item = t.under([None], |t| Ok(Wire::op("app", [t.index(f), Wire::Var(0)])))?;
                        Ok((function, Wire::Build(Box::new(size), Box::new(item))))
                    })
                })?;
                Ok(Wire::bind(size, Wire::bind(function, body)))
            }
            (Prim::Ifold, [number, step, start]) => {
                if let Some((l, inner)) = two_parameters(step) {
                    let count = self.wire(number)?;
                    let start = self.wire(start)?;
                    let index = Some((l.param.clone(), l.ty.clone()));
                    let state = Some((inner.param.clone(), inner.ty.clone()));
                    let body = self.under([index, state], |t| t.wire(&inner.body))?;
                    return Ok(Wire::Loop(Box::new(count), Box::new(start), Box::new(body)));
                }
                // A function of the index that computes the function of the state.
                if self.in_place && matches!(&*step.kind, TermKind::Lambda(_)) {
                    let count = self.wire(number)?;
                    let start = self.wire(start)?;
                    let body = self.under([None, None], |t| {
                        let first = Wire::op("app", [t.wire(step)?, Wire::Var(1)]);
                        Ok(Wire::op("app", [first, Wire::Var(0)]))
                    })?;
                    return Ok(Wire::Loop(Box::new(count), Box::new(start), Box::new(body)));
                }
                let looped = |t: &mut Self, n: &dyn Fn(&mut Self) -> Within<Wire>| {
                    let step = t.wire(step)?;
                    let f = t.scope.len();
                    let rest = t.under([None], |t| {
                        let (count, start) = (n(t)?, t.wire(start)?);
                        let body = t.under([None, None], |t| {
                            let first = Wire::op("app", [t.index(f), Wire::Var(1)]);
                            Ok(Wire::op("app", [first, Wire::Var(0)]))
                        })?;
                        Ok(Wire::Loop(Box::new(count), Box::new(start), Box::new(body)))
                    })?;
                    Ok(Wire::bind(step, rest))
                };
                if number.is_path() {
                    return looped(self, &|t| t.wire(number));
                }
                let count = self.wire(number)?;
                let n = self.scope.len();
                let rest = self.under([None], |t| looped(t, &|t| Ok(t.index(n))))?;
                Ok(Wire::bind(count, rest))
            }
            (Prim::Iterate, [step, start]) => {
                let [from, to] = &types[..] else { return outside("`iterate` without its types") };
                let (from, to) = (self.ty(from)?, self.ty(to)?);
                // The argument is 0, itself 1. What the two sides hold has a name, and the last one also as a whole, as in every match.
                let body = |step| {
                    let next = Wire::op("app", [step, Wire::Var(0)]);
                    let again = Wire::bind(Wire::Var(0), Wire::op("app", [Wire::Var(3), Wire::Var(0)]));
                    let last = Wire::bind(Wire::Var(0), Wire::bind(Wire::Var(0), Wire::Var(0)));
                    Box::new(Wire::case(next, again, last))
                };
                if self.in_place && matches!(&*step.kind, TermKind::Lambda(_)) {
                    let step = self.under([None, None], |t| t.wire(step))?;
                    return Ok(Wire::op("app", [Wire::Fix(from, to, body(step)), self.wire(start)?]));
                }
                let step = self.wire(step)?;
                let f = self.scope.len();
                let rest = self.under([None], |t| {
                    let f = t.under([None, None], |t| Ok(t.index(f)))?;
                    let start = t.under([None], |t| Ok(Wire::op("app", [Wire::Var(0), t.wire(start)?])))?;
                    Ok(Wire::bind(Wire::Fix(from, to, body(f)), start))
                })?;
                Ok(Wire::bind(step, rest))
            }
            _ => outside(format!("`{}`", prim.info().name)),
        }
    }
}

/// Whether a number is found by arithmetic alone, so that no mode makes a binding for it.
fn binds_nothing(term: &Term) -> bool {
    let mut plain = match &*term.kind {
        TermKind::Literal(_) | TermKind::Var(..) | TermKind::Proj { .. } => true,
        TermKind::Prim { prim, .. } => scalar(*prim).is_some(),
        _ => false,
    };
    with_stack(|| for_each_child(term, &mut |child| plain &= binds_nothing(child)));
    plain
}

fn two_parameters(term: &Term) -> Option<(&Arc<Lambda>, &Arc<Lambda>)> {
    let TermKind::Lambda(outer) = &*term.kind else { return None };
    let TermKind::Lambda(inner) = &*outer.body.kind else { return None };
    Some((outer, inner))
}

/// The primitives that are the same in both languages.
fn scalar(prim: Prim) -> Option<&'static str> {
    Some(match prim {
        Prim::AddReal => "add",
        Prim::SubReal => "sub",
        Prim::MulReal => "mul",
        Prim::DivReal => "div",
        Prim::NegReal => "neg",
        Prim::PowRealInt => "powi",
        Prim::PowReal => "pow",
        Prim::Exp => "exp",
        Prim::Log => "log",
        Prim::Sqrt => "sqrt",
        Prim::Sin => "sin",
        Prim::Cos => "cos",
        Prim::Tan => "tan",
        Prim::Asin => "asin",
        Prim::Acos => "acos",
        Prim::Atan => "atan",
        Prim::Atan2 => "atan2",
        Prim::Sinh => "sinh",
        Prim::Cosh => "cosh",
        Prim::Tanh => "tanh",
        Prim::Log1p => "log1p",
        Prim::Expm1 => "expm1",
        Prim::Erf => "erf",
        Prim::Lgamma => "lgamma",
        Prim::Abs => "abs",
        Prim::Maximum => "max",
        Prim::Minimum => "min",
        Prim::RealOfInt => "real",
        Prim::Floor => "floor",
        Prim::Round => "round",
        Prim::Truncate => "truncate",
        Prim::AddInt => "iadd",
        Prim::SubInt => "isub",
        Prim::MulInt => "imul",
        Prim::DivInt => "idiv",
        Prim::ModInt => "imod",
        Prim::PowInt => "ipow",
        Prim::Get => "get",
        Prim::Length => "len",
        Prim::Set => "set",
        _ => return None,
    })
}

fn negate(condition: Wire) -> Wire {
    Wire::case(condition, bool(false), bool(true))
}

/// `a > b` or `a >= b`, with `a` evaluated first: for reals it is `-a < -b`, which is false for a NaN too; for integers the opposite is negated.
fn greater(name: &'static str, wires: Vec<Wire>) -> Wire {
    match name {
        "lt" | "le" => Wire::Op(name, wires.into_iter().map(|wire| Wire::op("neg", [wire])).collect()),
        _ => negate(Wire::Op(name, wires)),
    }
}
