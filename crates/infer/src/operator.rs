//! Operators. Arithmetic is overloaded on `int` and `real`: its operands share a number variable, which unification or, at the
//! end, the default decides.

use crate::apply::Arg;
use crate::declared::Declared;
use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::names::Value;
use crate::store::{Kind, Ty};
use crate::tree::{Arith, Exp, ExpKind, Param, PatKind};
use gradus_core::{Literal, Prim};
use gradus_source::Span;
use gradus_syntax::ast::{BinaryOp, Expr, ExprKind};

impl Infer {
    pub fn binary(&mut self, op: BinaryOp, at: Span, left: &Expr, right: &Expr, hint: Option<Ty>, span: Span) -> Exp {
        if op == BinaryOp::Pipe {
            return self.pipe(left, right, hint, span);
        }
        let left = self.synth(left);
        // A record or a constructor on the right is probably what is on the left.
        let right_hint = match op {
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::VectorAdd | BinaryOp::VectorSub | BinaryOp::Inner => {
                Some(self.ty(left))
            }
            BinaryOp::Cons => hint,
            _ => None,
        };
        let right = self.synth_with(right, right_hint);
        self.operate(op, at, left, right, span)
    }

    /// `x |> f a` is `f a x`; `x` is typed first, so that `f`'s functions know what they work on.
    fn pipe(&mut self, left: &Expr, right: &Expr, hint: Option<Ty>, span: Span) -> Exp {
        let value = self.synth(left);
        match &right.kind {
            ExprKind::App(head, args) => {
                let args = args.iter().map(Arg::Written).chain([Arg::Done(value)]).collect();
                self.application(head, args, hint, span)
            }
            _ => self.application(right, vec![Arg::Done(value)], hint, span),
        }
    }

    pub fn operate(&mut self, op: BinaryOp, at: Span, left: Exp, right: Exp, span: Span) -> Exp {
        let name = symbol(op);
        let one = Why::Operand { op: name, at };
        let other = Why::OtherOperand { op: name, first: self.tree.node(left).span };
        let arith = |this: &mut Self, arith: Arith| {
            let ty = this.store.number();
            let left = this.flow(left, ty, &one);
            // One wrong operand is told once.
            let ty = if this.ty(left) == Ty::ERROR { Ty::ERROR } else { ty };
            let right = this.flow(right, ty, &other);
            this.tree.exp(ExpKind::Arith(arith, ty, vec![left, right]), ty, span)
        };
        match op {
            BinaryOp::Add => arith(self, Arith::Add),
            BinaryOp::Sub => arith(self, Arith::Sub),
            BinaryOp::Mul => arith(self, Arith::Mul),
            BinaryOp::Div => arith(self, Arith::Div),
            BinaryOp::Pow => {
                let ty = self.store.number();
                let left = self.flow(left, ty, &one);
                let wrong = self.ty(left) == Ty::ERROR;
                let (ty, exponent) = if wrong { (Ty::ERROR, Ty::ERROR) } else { (ty, Ty::INT) };
                let right = self.flow(right, exponent, &one);
                self.tree.exp(ExpKind::Arith(Arith::Pow, ty, vec![left, right]), ty, span)
            }
            BinaryOp::RealPow => self.fixed(Prim::PowReal, [Ty::REAL, Ty::REAL], Ty::REAL, [left, right], &one, span),
            BinaryOp::Mod => self.fixed(Prim::ModInt, [Ty::INT, Ty::INT], Ty::INT, [left, right], &one, span),
            BinaryOp::Eq => self.on_data(Prim::Equal, left, right, &one, &other, span),
            BinaryOp::Ne => self.on_data(Prim::NotEqual, left, right, &one, &other, span),
            BinaryOp::Lt => self.on_data(Prim::Less, left, right, &one, &other, span),
            BinaryOp::Le => self.on_data(Prim::LessEqual, left, right, &one, &other, span),
            BinaryOp::Gt => self.on_data(Prim::Greater, left, right, &one, &other, span),
            BinaryOp::Ge => self.on_data(Prim::GreaterEqual, left, right, &one, &other, span),
            BinaryOp::VectorAdd => self.on_data(Prim::VectorAdd, left, right, &one, &other, span),
            BinaryOp::VectorSub => self.on_data(Prim::VectorSub, left, right, &one, &other, span),
            BinaryOp::Inner => self.on_data(Prim::Inner, left, right, &one, &other, span),
            BinaryOp::Scale => {
                let left = self.flow(left, Ty::REAL, &one);
                let ty = self.store.fresh_of(Kind { data: true, single: true, ..Kind::default() });
                let right = self.flow(right, ty, &one);
                self.tree.exp(ExpKind::Prim(Prim::Scale, [ty].into(), vec![left, right]), ty, span)
            }
            BinaryOp::And | BinaryOp::Or => {
                let left = self.flow(left, Ty::BOOL, &one);
                let right = self.flow(right, Ty::BOOL, &one);
                let decided = self.literal(Literal::Bool(op == BinaryOp::Or), Ty::BOOL, span);
                let (then, otherwise) = if op == BinaryOp::And { (right, decided) } else { (decided, right) };
                self.tree.exp(ExpKind::If(left, then, otherwise), Ty::BOOL, span)
            }
            BinaryOp::Cons => {
                let element = self.store.fresh();
                let ty = self.named(Declared::LIST, vec![element]);
                let left = self.flow(left, element, &one);
                let right = self.flow(right, ty, &Why::Operand { op: name, at });
                self.tree.exp(ExpKind::Construct(Declared::LIST, 1, vec![left, right]), ty, span)
            }
            BinaryOp::Append => {
                let Some(value) = self.append() else {
                    return self.wrong(TypeError::NoAppend { span: at }, span);
                };
                let function = self.use_value(value, at).0;
                let (element, place) = (self.store.fresh(), span);
                let list = self.named(Declared::LIST, vec![element]);
                let left = self.flow(left, list, &one);
                let list = if self.ty(left) == Ty::ERROR { Ty::ERROR } else { list };
                let right = self.flow(right, list, &one);
                let full = self.store.funs(&[list, list], list);
                let function = self.flow(function, full, &one);
                let part = self.store.fun(list, list);
                let half = self.tree.exp(ExpKind::App(function, left), part, place);
                self.tree.exp(ExpKind::App(half, right), list, place)
            }
            // Only as a section, `( |> )`.
            BinaryOp::Pipe => {
                let (from, to) = (self.ty(left), self.store.fresh());
                let function = self.store.fun(from, to);
                let right = self.flow(right, function, &one);
                self.tree.exp(ExpKind::App(right, left), to, span)
            }
        }
    }

    /// `@` is the prelude's `append`, whatever `append` means here.
    fn append(&self) -> Option<Value> {
        let own = (&*self.module == "Prelude").then_some(&self.exports);
        own.or(self.tables.modules.get("Prelude")).and_then(|names| names.values.get("append").copied())
    }

    fn fixed(&mut self, prim: Prim, params: [Ty; 2], result: Ty, args: [Exp; 2], why: &Why, span: Span) -> Exp {
        let args = args.into_iter().zip(params).map(|(arg, ty)| self.flow(arg, ty, why)).collect();
        self.tree.exp(ExpKind::Prim(prim, [].into(), args), result, span)
    }

    /// Operators at every data type: two operands of one type.
    fn on_data(&mut self, prim: Prim, left: Exp, right: Exp, one: &Why, other: &Why, span: Span) -> Exp {
        let ty = self.store.fresh_of(Kind { data: true, ..Kind::default() });
        let left = self.flow(left, ty, one);
        let ty = if self.ty(left) == Ty::ERROR { Ty::ERROR } else { ty };
        let right = self.flow(right, ty, other);
        let result = match prim {
            Prim::VectorAdd | Prim::VectorSub => ty,
            Prim::Inner => Ty::REAL,
            _ => Ty::BOOL,
        };
        self.tree.exp(ExpKind::Prim(prim, [ty].into(), vec![left, right]), result, span)
    }

    pub fn negation(&mut self, operand: &Expr, span: Span) -> Exp {
        let operand = self.synth(operand);
        let ty = self.store.number();
        let operand = self.flow(operand, ty, &Why::Operand { op: "-", at: span });
        self.tree.exp(ExpKind::Arith(Arith::Neg, ty, vec![operand]), ty, span)
    }

    /// `( + )` is `fun x y -> x + y`.
    pub fn section(&mut self, op: BinaryOp, hint: Option<Ty>, span: Span) -> Exp {
        let mut rest = hint;
        let locals = ["x", "y"].map(|name| {
            let (ty, result) = self.split_function(rest);
            rest = Some(result);
            self.tree.local(name.into(), ty, span)
        });
        let args = locals.map(|local| {
            let ty = self.tree.local_of(local).ty;
            self.tree.exp(ExpKind::Local(local, [].into()), ty, span)
        });
        let body = self.operate(op, span, args[0], args[1], span);
        let params: Vec<Param> = locals
            .iter()
            .map(|local| {
                let ty = self.tree.local_of(*local).ty;
                let pattern = self.tree.pat(PatKind::Bind(*local, None), ty, span);
                Param { pattern, ty, checks: Vec::new(), binds: Vec::new(), span }
            })
            .collect();
        let types: Vec<Ty> = params.iter().map(|param| param.ty).collect();
        let result = self.ty(body);
        let ty = self.store.funs(&types, result);
        self.tree.exp(ExpKind::Function(params, body), ty, span)
    }
}

/// The operator as it is written.
pub fn symbol(op: BinaryOp) -> &'static str {
    let row = gradus_syntax::operators::OPERATORS.iter().find(|row| row.op == op);
    row.map_or("?", |row| row.text)
}
