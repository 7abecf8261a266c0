//! Random programs contain what they are meant to contain, each often enough to matter.

use gradus_core::traverse::{for_each_child, free_vars, with_stack};
use gradus_core::{Body, DeriveOp, Prim, Program, Term, TermKind, Type, Var};
use gradus_generate::{generate, Options};
use std::collections::{BTreeMap, HashMap};

const PROGRAMS: u64 = 2_000;

/// What a program contains.
#[derive(Default)]
struct Found {
    names: std::collections::BTreeSet<&'static str>,
    types: HashMap<Var, Type>,
}

impl Found {
    fn note(&mut self, name: &'static str) {
        self.names.insert(name);
    }

    fn term(&mut self, term: &Term, inside_derivative: usize) {
        let mut depth = inside_derivative;
        match &*term.kind {
            TermKind::Lambda(l) => {
                self.types.insert(l.param.clone(), l.ty.clone());
                if matches!(l.ty, Type::Fun(_)) {
                    self.note("a function of functions");
                }
                let captured = free_vars(term);
                if captured.iter().any(|var| self.types.get(var) == Some(&Type::Real)) {
                    self.note("a closure over a real");
                }
            }
            TermKind::Let { var, scheme, .. } => {
                self.types.insert(var.clone(), scheme.ty.clone());
                if matches!(&scheme.ty, Type::Tuple(parts) if parts.iter().any(|t| matches!(t, Type::Fun(_)))) {
                    self.note("a function inside data");
                }
            }
            TermKind::LetRec { bindings, .. } => {
                let on_data = bindings
                    .iter()
                    .any(|(_, s, _)| matches!(&s.ty, Type::Fun(ends) if matches!(ends.0, Type::Named(..))));
                self.note(if on_data { "recursion on data" } else { "recursion on a number" });
            }
            TermKind::Case { arms, .. } => {
                self.note("match");
                arms.iter().for_each(|arm| self.types.extend(arm.vars.iter().cloned()));
            }
            TermKind::If { .. } => self.note("if"),
            TermKind::Construct { name, .. } if matches!(&*name.base, "list" | "tree") => self.note("a recursive type"),
            TermKind::Construct { .. } => self.note("a variant"),
            TermKind::Derive { op, .. } => {
                depth += 1;
                self.note(match op {
                    DeriveOp::Diff | DeriveOp::Jvp => "forward derivative inside",
                    _ => "reverse derivative inside",
                });
                if depth > 1 {
                    self.note("derivative inside a derivative");
                }
            }
            TermKind::Prim { prim: Prim::Iterate, .. } => self.note("iterate"),
            TermKind::Prim { prim: Prim::Build | Prim::Set | Prim::Get, .. } => self.note("an array"),
            TermKind::Prim { prim: Prim::Ifold, .. } => self.note("ifold"),
            TermKind::Prim { prim: Prim::VectorAdd | Prim::VectorSub, .. } => self.note("a vector space operation"),
            TermKind::Prim { prim: Prim::Checkpoint, .. } => self.note("checkpoint"),
            _ => {}
        }
        with_stack(|| for_each_child(term, &mut |child| self.term(child, depth)));
    }

    fn program(&mut self, program: &Program) {
        for def in program.defs.values() {
            if let Body::Term(term) = &def.body {
                self.term(term, 0);
            }
            if def.rules.reverse.is_some() || def.rules.forward.is_some() {
                self.note("a custom rule");
            }
        }
    }
}

#[test]
fn everything_occurs() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..PROGRAMS {
        let mut found = Found::default();
        found.program(&generate(seed, Options::default()).program);
        found.names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    }
    println!("of {PROGRAMS} programs: {counts:#?}");
    let expected = [
        "a function of functions",
        "a closure over a real",
        "a function inside data",
        "recursion on data",
        "recursion on a number",
        "match",
        "if",
        "a recursive type",
        "a variant",
        "forward derivative inside",
        "reverse derivative inside",
        "derivative inside a derivative",
        "iterate",
        "an array",
        "ifold",
        "a vector space operation",
        "checkpoint",
        "a custom rule",
    ];
    for name in expected {
        let count = counts.get(name).copied().unwrap_or(0);
        assert!(count * 25 > PROGRAMS, "{name}: only in {count} of {PROGRAMS} programs");
    }
}
