//! Writes flow as text. Variables are numbered by order of appearance where their names clash, so output is stable.

use super::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

pub fn module(module: &Module) -> String {
    let mut text = String::new();
    for (i, shape) in module.shapes.iter().enumerate() {
        let fields = |types: &Vec<Type>| types.iter().map(|t| ty(*t)).collect::<Vec<_>>().join(", ");
        let cells: Vec<String> = shape.cells.iter().map(|types| format!("({})", fields(types))).collect();
        let _ = write!(text, "shape {i} {}", shape.name);
        if shape.trace {
            text.push_str(" traced");
        }
        if let Some(of) = shape.linear_of {
            let _ = write!(text, " linear {of}");
        }
        if let Some(merge) = shape.merge {
            let _ = write!(text, " merge {}", module.function(merge).name);
        }
        let _ = writeln!(text, " = {}", cells.join(" | "));
    }
    for function in &module.functions {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&self::function(function, module));
    }
    text
}

pub fn function(function: &Function, module: &Module) -> String {
    let mut printer = Printer {
        module,
        names: FxHashMap::default(),
        taken: FxHashSet::default(),
        numbers: FxHashMap::default(),
        text: String::new(),
    };
    printer.function(function);
    printer.text
}

pub fn ty(ty: Type) -> String {
    let scalar = match ty.scalar {
        Scalar::Real => "real".to_string(),
        Scalar::Int => "int".to_string(),
        Scalar::Bool => "bool".to_string(),
        Scalar::Box(shape) => format!("box{shape}"),
    };
    let array = if ty.rank == 0 { scalar } else { format!("{scalar}[{}]", ty.rank) };
    if ty.accumulator {
        format!("{array}!")
    } else {
        array
    }
}

struct Printer<'a> {
    module: &'a Module,
    names: FxHashMap<Var, String>,
    taken: FxHashSet<String>,
    /// How many variables of each name there were.
    numbers: FxHashMap<Name, usize>,
    text: String,
}

impl Printer<'_> {
    fn name(&mut self, var: Var) -> String {
        if let Some(name) = self.names.get(&var) {
            return name.clone();
        }
        let base = var.name.text();
        let mut name = base.to_string();
        let number = self.numbers.entry(var.name).or_insert(0);
        loop {
            *number += 1;
            if *number > 1 {
                name = format!("{base}.{number}");
            }
            if self.taken.insert(name.clone()) {
                break;
            }
        }
        self.names.insert(var, name.clone());
        name
    }

    fn atom(&mut self, atom: Atom) -> String {
        match atom {
            Atom::Var(v) => self.name(v),
            Atom::Real(r) => format!("{r:?}"),
            Atom::Int(i) => i.to_string(),
            Atom::Bool(b) => b.to_string(),
            Atom::Nil(shape) => format!("nil{shape}"),
        }
    }

    fn atoms(&mut self, atoms: &[Atom]) -> String {
        atoms.iter().map(|a| self.atom(*a)).collect::<Vec<_>>().join(" ")
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:width$}{text}", "", width = 2 * depth);
    }

    fn function(&mut self, function: &Function) {
        let params: Vec<String> = function.params.iter().map(|v| format!("{}: {}", self.name(*v), ty(v.ty))).collect();
        let results: Vec<String> = function.results.iter().map(|t| ty(*t)).collect();
        self.line(0, &format!("fun {}({}) -> ({}) {{", function.name, params.join(", "), results.join(", ")));
        self.block(&function.body, 1, None);
        self.line(0, "}");
    }

    /// `carried`: in a loop, how many of the results are the next state (a `while` has its condition before them).
    fn block(&mut self, block: &Block, depth: usize, state: Option<usize>) {
        with_stack(|| {
            for stmt in &block.stmts {
                self.stmt(stmt, depth);
            }
            match state {
                None => {
                    let word = if depth == 1 { "return" } else { "yield" };
                    let results = self.atoms(&block.results);
                    if !block.results.is_empty() {
                        self.line(depth, &format!("{word} {results}"));
                    }
                }
                Some(state) => {
                    let (next, collected) = block.results.split_at(state.min(block.results.len()));
                    let (next, collected) = (self.atoms(next), self.atoms(collected));
                    if !next.is_empty() {
                        self.line(depth, &format!("yield {next}"));
                    }
                    if !collected.is_empty() {
                        self.line(depth, &format!("collect {collected}"));
                    }
                }
            }
        })
    }

    fn carried(&mut self, carried: &[(Var, Atom)]) -> String {
        let list: Vec<String> =
            carried.iter().map(|(v, init)| format!("{}: {} = {}", self.name(*v), ty(v.ty), self.atom(*init))).collect();
        if list.is_empty() {
            String::new()
        } else {
            format!(" with {}", list.join(", "))
        }
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) {
        let op = match &stmt.op {
            Op::Scalar { prim, args } => format!("{} {}", scalar::word(*prim), self.atoms(args)),
            Op::Copy { value } => format!("copy {}", self.atom(*value)),
            Op::Stop { value } => format!("stop {}", self.atom(*value)),
            Op::Select { cond, then, otherwise } => format!("select {}", self.atoms(&[*cond, *then, *otherwise])),
            Op::Dim { array, axis } => format!("dim {} {axis}", self.name(*array)),
            Op::Get { array, index } => format!("get {} {}", self.name(*array), self.atoms(index)),
            Op::Set { array, index, value } => {
                format!("set {} {} := {}", self.name(*array), self.atoms(index), self.atom(*value))
            }
            Op::Extend { array, by } => format!("extend {}", self.atoms(&[(*array).into(), (*by).into()])),
            Op::Fill { dims, value } => format!("fill {} := {}", self.atoms(dims), self.atom(*value)),
            Op::Literal { items, ty: t } => format!("array {} of {}", ty(*t), self.atoms(items)),
            Op::Cell { shape, tag, fields } => format!("cell box{shape} {tag} {}", self.atoms(fields)),
            Op::Tag { cell } => format!("tag {}", self.atom(*cell)),
            Op::Unpack { cell, tag } => format!("unpack {} {tag}", self.atom(*cell)),
            Op::Hole { cell, tag, field } => format!("hole {} {tag} {field}", self.name(*cell)),
            Op::Plug { hole, value } => format!("plug {}", self.atoms(&[*hole, *value])),
            Op::Push { values } => format!("push {}", self.atoms(values)),
            Op::Pop { types } => format!("pop {}", types.iter().map(|t| ty(*t)).collect::<Vec<_>>().join(" ")),
            Op::Digits { value } => format!("digits {}", self.atom(*value)),
            Op::Check { cond, failure } => format!("check {} {}", self.atom(*cond), failure.key()),
            Op::If { cond, replayed, .. } => {
                format!("if {}{} {{", self.atom(*cond), if *replayed { " replayed" } else { "" })
            }
            Op::For(l) => {
                let count = self.atom(l.count);
                let carried = self.carried(&l.carried);
                let replayed = if l.replayed { " replayed" } else { "" };
                format!("for {} < {count}{carried}{replayed} {{", self.name(l.index))
            }
            Op::While(l) => format!("while{} {{", self.carried(&l.carried)),
            Op::Call { function, args } => {
                format!("call {} {}", self.module.function(*function).name, self.atoms(args))
            }
            Op::Open { init } => format!("open {}", self.atom(*init)),
            Op::Add { acc, index, value } => {
                let place = [vec![(*acc).into()], index.clone()].concat();
                format!("accumulate {} += {}", self.atoms(&place), self.atom(*value))
            }
            Op::Product(p) => {
                let place = [p.acc.into(), p.rows, p.columns, p.inner];
                let [left, right] = [p.left, p.right].map(|factor| {
                    let transposed = if factor.transposed { "transposed " } else { "" };
                    format!("{transposed}{}", self.name(factor.matrix))
                });
                format!("product {} += {left} {right}", self.atoms(&place))
            }
            Op::Freeze { acc } => format!("freeze {}", self.name(*acc)),
        };
        let binds: Vec<String> = stmt.binds.iter().map(|v| self.name(*v)).collect();
        let start = if binds.is_empty() { String::new() } else { format!("{} = ", binds.join(", ")) };
        self.line(depth, &format!("{start}{}", op.trim_end()));
        match &stmt.op {
            Op::If { then, otherwise, .. } => {
                self.block(then, depth + 1, None);
                if !otherwise.stmts.is_empty() || !otherwise.results.is_empty() {
                    self.line(depth, "} else {");
                    self.block(otherwise, depth + 1, None);
                }
                self.line(depth, "}");
            }
            Op::For(l) => {
                self.block(&l.body, depth + 1, Some(l.carried.len()));
                self.line(depth, "}");
            }
            Op::While(l) => {
                self.block(&l.body, depth + 1, Some(l.carried.len() + 1));
                self.line(depth, "}");
            }
            _ => {}
        }
    }
}
