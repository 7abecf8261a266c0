//! What became of a function: its loops, what its derivative saves and runs again, where the heap is used. For `gradus explain`, so that a user can
//! see why a program is slow. Read off the code that the backends get, so it is what happens and not what was planned.

use crate::adjoint::BACKWARD_INDEX;
use crate::cores::{Plan, LEAST_WORK};
use crate::flow::{Block, FunctionId, Module, Name, Op, Scalar, Stmt, Type, Var};
use crate::recursion;
use crate::simplify;
use gradus_core::traverse::with_stack;
use gradus_source::Span;

/// Something about a place of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Loop(Loop),
    /// A function that calls itself, not as its last act.
    Recursion {
        name: String,
    },
    /// A recursive function gives its value and its derivative in one run.
    AtOnce {
        name: String,
    },
    /// A recursive call, or a branch or iteration with one inside, leaves a trace with this for the way back: on the tape, or in a cell.
    Trace {
        tape: bool,
        kept: Vec<String>,
    },
    /// A cell of this type is made.
    Cell {
        name: String,
        tangent: bool,
    },
    /// A function that is only known when the program runs is made, or called.
    Closure,
    Unknown,
    /// Matrices are multiplied by a library.
    Product,
    /// The loops with state inside a loop take their steps for many of its iterations at once.
    SideBySide,
    /// What a long loop saves it saves of a segment of its steps at a time.
    Segments,
    /// The derivative of a call runs the function again.
    CallAgain {
        name: String,
    },
    /// A rule of the program takes the place of a derivative.
    Rule {
        name: String,
    },
}

/// A loop, in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub pass: Pass,
    /// The body decides when it ends: `iterate` and tail recursion.
    pub until: bool,
    /// What goes from one iteration to the next.
    pub carried: Vec<String>,
    /// Arrays with an element for each iteration.
    pub filled: Vec<String>,
    /// The same, for the way back.
    pub saved: Vec<String>,
    /// Whether it adds to sums or to elements of arrays.
    pub adds: bool,
    /// Whether it is cut into chunks, see [`crate::cores`].
    pub cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// On the way there.
    Forward,
    /// On the way back, to have its values again.
    Again,
    /// On the way back: it computes derivatives.
    Backward,
}

/// The facts about a function and those that it calls, in the order of their code.
pub fn facts(module: &Module, root: FunctionId) -> Vec<Fact> {
    let recursive = recursion::recursive(module);
    let plan = Plan::new(module, LEAST_WORK);
    let mut walk = Walk { module, plan: &plan, found: Vec::new(), next: vec![root] };
    let mut seen = vec![false; module.functions.len()];
    while let Some(id) = walk.next.pop() {
        match seen.get_mut(id.0) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        let function = module.function(id);
        if recursive.get(id.0).copied().unwrap_or(false) {
            let span = first_span(&function.body).unwrap_or_default();
            let name = function.name.to_string();
            match role(function.name) {
                Role::Own => walk.add(span, Kind::Recursion { name }),
                Role::AtOnce => walk.add(span, Kind::AtOnce { name: name.trim_end_matches("_at_once").to_string() }),
                Role::Adjoint | Role::Other => {}
            }
        }
        let pass = if role(function.name) == Role::Adjoint { Pass::Again } else { Pass::Forward };
        walk.block(&function.body, pass);
    }
    walk.found
}

/// What made a function, which its name tells.
#[derive(PartialEq)]
enum Role {
    Own,
    /// `f_adj`: runs `f` again and then backwards.
    Adjoint,
    /// `f_at_once`: a recursive function with its derivative.
    AtOnce,
    /// Halves of a recursive function, derivatives by forward mode, sums and the like of cells.
    Other,
}

fn role(name: Name) -> Role {
    let name = name.text();
    if name.ends_with("_adj") {
        Role::Adjoint
    } else if name.ends_with("_at_once") {
        Role::AtOnce
    } else if ["_fwd", "_back", "_tan", "_vjp"].iter().any(|end| name.ends_with(end)) || name.starts_with("boxes_") {
        Role::Other
    } else {
        Role::Own
    }
}

fn first_span(block: &Block) -> Option<Span> {
    with_stack(|| {
        block.stmts.iter().find_map(|stmt| match stmt.span == Span::default() {
            false => Some(stmt.span),
            true => stmt.op.blocks().find_map(first_span),
        })
    })
}

struct Walk<'a> {
    module: &'a Module,
    plan: &'a Plan,
    found: Vec<Fact>,
    next: Vec<FunctionId>,
}

impl Walk<'_> {
    fn add(&mut self, span: Span, kind: Kind) {
        let fact = Fact { span, kind };
        // A cell is made in many places of one expression; loops are counted.
        if matches!(fact.kind, Kind::Loop(_)) || !self.found.contains(&fact) {
            self.found.push(fact);
        }
    }

    fn block(&mut self, block: &Block, pass: Pass) {
        with_stack(|| {
            for stmt in &block.stmts {
                let mut inside = pass;
                if let Op::For(l) = &stmt.op {
                    if let Some(steps) = simplify::steps_inside(l) {
                        self.block(&steps, pass);
                        if simplify::is_over_segments(l) {
                            self.add(stmt.span, Kind::Segments);
                        }
                        continue;
                    }
                }
                for kind in self.kinds(stmt, pass) {
                    if let Kind::Loop(Loop { pass: Pass::Backward, .. }) = &kind {
                        inside = Pass::Again;
                    }
                    self.add(stmt.span, kind);
                }
                if let Op::Call { function, .. } = &stmt.op {
                    self.next.push(*function);
                }
                if let Some(loops) = simplify::one_by_one(stmt) {
                    self.block(loops, inside);
                    self.add(stmt.span, Kind::SideBySide);
                    continue;
                }
                stmt.op.blocks().for_each(|inner| self.block(inner, inside));
            }
        })
    }

    fn kinds(&self, stmt: &Stmt, pass: Pass) -> Vec<Kind> {
        match &stmt.op {
            Op::For(l) => {
                let backward = l.index.name == Name::new(BACKWARD_INDEX);
                let pass = if backward { Pass::Backward } else { pass };
                let carried: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
                let cut = self.plan.of(l).is_some();
                vec![Kind::Loop(Loop { cut, ..self.a_loop(stmt, &carried, &l.body, pass, false) })]
            }
            Op::While(l) => {
                let carried: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
                vec![Kind::Loop(self.a_loop(stmt, &carried, &l.body, pass, true))]
            }
            Op::Cell { shape, fields, .. } if !fields.is_empty() => {
                let shape = self.module.shape(*shape);
                let name = shape.name.text();
                match &*name {
                    _ if shape.trace => vec![self.trace(false, fields)],
                    "closure" => vec![Kind::Closure],
                    // An array that a loop saves: said where the loop is.
                    "state" => Vec::new(),
                    _ => {
                        let name = name.trim_end_matches("_linear").to_string();
                        vec![Kind::Cell { name, tangent: shape.linear_of.is_some() }]
                    }
                }
            }
            Op::Push { values } => vec![self.trace(true, values)],
            Op::Product(_) => vec![Kind::Product],
            Op::Call { function, .. } => {
                let callee = self.module.function(*function);
                let name = callee.name.text();
                if let Some(name) = name.strip_suffix("_adj") {
                    return vec![Kind::CallAgain { name: name.to_string() }];
                }
                if callee.rule.is_some() {
                    return vec![Kind::Rule { name: name.to_string() }];
                }
                match name.starts_with("apply") && self.takes_closure(*function) {
                    true => vec![Kind::Unknown],
                    false => Vec::new(),
                }
            }
            Op::Cell { .. }
            | Op::Scalar { .. }
            | Op::Copy { .. }
            | Op::Stop { .. }
            | Op::Select { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Extend { .. }
            | Op::Fill { .. }
            | Op::Literal { .. }
            | Op::Tag { .. }
            | Op::Unpack { .. }
            | Op::Hole { .. }
            | Op::Plug { .. }
            | Op::Pop { .. }
            | Op::Digits { .. }
            | Op::Check { .. }
            | Op::If { .. }
            | Op::Open { .. }
            | Op::Add { .. }
            | Op::Freeze { .. } => Vec::new(),
        }
    }

    fn takes_closure(&self, function: FunctionId) -> bool {
        let first = self.module.function(function).params.first().and_then(|v| v.ty.shape());
        first.is_some_and(|shape| self.module.shape(shape).name == Name::new("closure"))
    }

    fn a_loop(&self, stmt: &Stmt, carried: &[Var], body: &Block, pass: Pass, until: bool) -> Loop {
        let named = |v: &Var| format!("{}: {}", v.name, self.type_text(v.ty));
        // Each iteration gives an element.
        let element = |v: &Var| {
            let name = v.name.text();
            let mut ty = Type { rank: v.ty.rank.saturating_sub(1), ..v.ty };
            // Arrays that may change their lengths are saved in cells.
            if let Some(state) = ty.shape().map(|s| self.module.shape(s)).filter(|s| s.name == Name::new("state")) {
                ty = state.cells.first().and_then(|fields| fields.first()).copied().unwrap_or(ty);
            }
            format!("{}: {}", name.trim_end_matches("_saved"), self.type_text(ty))
        };
        let collected = stmt.binds.get(carried.len()..).unwrap_or_default();
        let is_saved = |v: &&Var| v.name.text().ends_with("_saved");
        let mut saved: Vec<String> = collected.iter().filter(is_saved).map(element).collect();
        // Sums that are kept, each in its place of an array for all loops around.
        for sum in added_to(body).iter().filter(is_saved) {
            saved.push(element(&Var { ty: Type { rank: 1, ..sum.ty }, ..*sum }));
        }
        Loop {
            pass,
            until,
            carried: carried.iter().map(named).collect(),
            filled: collected.iter().filter(|v| !is_saved(v)).map(element).collect(),
            saved,
            adds: adds(body),
            cut: false,
        }
    }

    fn trace(&self, tape: bool, fields: &[crate::flow::Atom]) -> Kind {
        Kind::Trace { tape, kept: fields.iter().filter_map(|a| self.field(a.var()?)).collect() }
    }

    /// What a trace keeps, without the traces inside.
    fn field(&self, var: Var) -> Option<String> {
        let inner = var.ty.shape().is_some_and(|s| self.module.shape(s).trace);
        // On the tape a trace is known by its tag.
        let tag = var.name == Name::new("trace");
        (!inner && !tag).then(|| format!("{}: {}", var.name, self.type_text(var.ty)))
    }

    fn type_text(&self, ty: Type) -> String {
        let scalar = match ty.scalar {
            Scalar::Real => "real".to_string(),
            Scalar::Int => "int".to_string(),
            Scalar::Bool => "bool".to_string(),
            Scalar::Box(shape) => self.module.shape(shape).name.to_string(),
        };
        scalar + &"[]".repeat(ty.rank as usize)
    }
}

/// What a block adds to, but for the loops in it.
fn added_to(block: &Block) -> Vec<Var> {
    let here = |stmt: &Stmt| match &stmt.op {
        Op::Add { acc, .. } => vec![*acc],
        Op::If { then, otherwise, .. } => [then, otherwise].into_iter().flat_map(|side| added_to(side)).collect(),
        _ => Vec::new(),
    };
    with_stack(|| block.stmts.iter().flat_map(here).collect())
}

fn adds(block: &Block) -> bool {
    with_stack(|| block.stmts.iter().any(|stmt| matches!(stmt.op, Op::Add { .. }) || stmt.op.blocks().any(adds)))
}

impl Kind {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Kind::Loop(l) => l.text(),
            Kind::Recursion { name } => {
                format!("`{name}` calls itself, not as its last act: a function of its own, on the machine's stack")
            }
            Kind::AtOnce { name } => {
                format!("`{name}` calls itself and gives its value and its derivative in one run: nothing is saved")
            }
            Kind::Trace { tape, kept } => {
                let place = if *tape { "tape" } else { "heap" };
                let with = if kept.is_empty() { String::new() } else { format!(", with {}", kept.join(", ")) };
                format!("leaves a trace on the {place} for the way back{with}")
            }
            Kind::Cell { name, tangent: false } => format!("makes cells of `{name}` on the heap"),
            Kind::Cell { name, tangent: true } => format!("makes cells for derivatives of `{name}` on the heap"),
            Kind::Closure => {
                "makes a function that is only known when the program runs: a cell on the heap".to_string()
            }
            Kind::Unknown => "calls a function that is only known when the program runs".to_string(),
            Kind::SideBySide => {
                format!("the loops inside take each step for up to {} iterations at once", simplify::WIDEST)
            }
            Kind::Segments => {
                "if it is long, it saves a segment of its steps at a time and runs the segments again".to_string()
            }
            Kind::Product => "a product of matrices, multiplied in tiles".to_string(),
            Kind::CallAgain { name } => format!("the derivative of the call runs `{name}` again"),
            Kind::Rule { name } => format!("`{name}` has a derivative of its own, by a rule"),
        }
    }
}

const ON_ALL_CORES: &str = "on all cores if there is enough to do";

impl Loop {
    fn text(&self) -> String {
        let what = match (self.until, self.carried.is_empty()) {
            (true, _) => "a loop that ends by a condition",
            (false, true) => "a loop of independent iterations",
            (false, false) => "a loop",
        };
        let mut does = Vec::new();
        if !self.carried.is_empty() {
            does.push(format!("carries {}", self.carried.join(", ")));
        }
        if !self.filled.is_empty() {
            does.push(format!("fills {}", many(self.filled.len(), "an array", "arrays")));
        }
        if self.adds {
            does.push("adds up".to_string());
        }
        if !self.saved.is_empty() {
            does.push(format!("saves {} of each iteration", self.saved.join(", ")));
        }
        if self.cut {
            does.push(ON_ALL_CORES.to_string());
        }
        match &does[..] {
            [] => what.to_string(),
            does => format!("{what}: {}", does.join("; ")),
        }
    }
}

fn many(count: usize, one: &str, more: &str) -> String {
    match count {
        1 => one.to_string(),
        n => format!("{n} {more}"),
    }
}

/// What the loops of a derivative at one place do, in words.
pub fn loops_text(loops: &[Loop]) -> String {
    let count = |pass: Pass| loops.iter().filter(|l| l.pass == pass).count();
    let (forward, again, backward) = (count(Pass::Forward), count(Pass::Again), count(Pass::Backward));
    let mut saved: Vec<&str> = loops.iter().flat_map(|l| l.saved.iter().map(String::as_str)).collect();
    saved.sort_unstable();
    saved.dedup();
    let mut parts = Vec::new();
    parts.push(match (forward, again, backward) {
        (0, 0, n) => format!("value and derivative in {}", many(n, "one loop", "loops")),
        (n, 0, 0) => format!("{} there, none back", many(n, "one loop", "loops")),
        (0, n, 0) => format!("{} again on the way back", many(n, "runs", "loops run")),
        (n, 0, m) => format!("{} there, {} back", many(n, "one loop", "loops"), many(m, "one", "loops")),
        (0, n, m) => format!(
            "on the way back: {} again, {} back",
            many(n, "one loop runs", "loops run"),
            many(m, "one", "loops")
        ),
        (n, m, 0) => format!(
            "{} there; on the way back {} again",
            many(n, "one loop", "loops"),
            many(m, "one loop runs", "loops run")
        ),
        (n, m, k) => format!(
            "{} there; on the way back {} again, {} back",
            many(n, "one loop", "loops"),
            many(m, "one loop runs", "loops run"),
            many(k, "one", "loops")
        ),
    });
    match loops.iter().filter(|l| l.cut).count() {
        0 => {}
        n if n == loops.len() => parts.push(ON_ALL_CORES.to_string()),
        n => parts.push(format!("{} {ON_ALL_CORES}", many(n, "one loop", "loops"))),
    }
    parts.push(match &saved[..] {
        [] => "nothing is saved".to_string(),
        saved => format!("saves of each iteration {}", saved.join(", ")),
    });
    parts.join("; ")
}
