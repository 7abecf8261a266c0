//! A whole random program: a `tree` type, some top-level functions, and `f`, the function to differentiate.

use crate::points::{self, Point};
use crate::terms::Generator;
use crate::{Feature, Features, Rng};
use gradus_core::build::At;
use gradus_core::traverse::Copy;
use gradus_core::{
    Body, Def, DeriveOp, Program, Rules, Scheme, Symbol, Term, TermKind, Type, TypeBody, TypeDecl, TypeName, TypeVar,
    Var,
};
use gradus_source::Span;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Roughly the number of nodes of the main function.
    pub size: usize,
    /// What may occur at all; each program takes a random half of it.
    pub features: Features,
    /// Every scalar primitive anywhere, at the edge of its domain and outside, and decisions at equality: for comparing evaluators, not derivatives.
    pub rough: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { size: 60, features: Features::all(), rough: false }
    }
}

/// A random program with `f : input -> output` and points at which to try it.
#[derive(Clone, Debug)]
pub struct Generated {
    pub seed: u64,
    pub features: Features,
    pub program: Program,
    pub input: Type,
    pub output: Type,
    pub points: Vec<Point>,
}

impl Generated {
    /// The name of the function under test.
    pub const FUNCTION: &'static str = "f";

    /// The same program with another body for `f`: what the shrinker tries.
    pub fn with_body(&self, body: Term) -> Generated {
        let mut changed = self.clone();
        if let Some(def) = changed.program.defs.get_mut(Self::FUNCTION) {
            def.body = Body::Term(body);
        }
        changed
    }

    pub fn body(&self) -> &Term {
        match self.program.defs.get(Self::FUNCTION).map(|def| &def.body) {
            Some(Body::Term(term)) => term,
            Some(Body::Data { .. }) | None => gradus_source::bug!("a random program has no function under test"),
        }
    }
}

/// The program of a seed.
pub fn generate(seed: u64, options: Options) -> Generated {
    let mut rng = Rng::new(seed);
    let features = options.features.random_half(&mut rng);
    let mut program = Program::default();
    for decl in TypeDecl::builtin().into_iter().chain([tree_decl()]) {
        program.types.insert(decl.name.base.clone(), decl);
    }
    let mut helpers = Vec::new();
    for number in 0..rng.below(3) {
        let mut generator = Generator::new(rng.split(), features, options.rough, &helpers);
        let (from, to) = (generator.data_type(1), generator.data_type(1));
        let body = function(&mut generator, &from, &to, options.size / 3);
        let name: Symbol = format!("helper{number}").into();
        helpers.push((name.clone(), Type::fun(from.clone(), to.clone())));
        let mut def = definition(name.clone(), Type::fun(from.clone(), to.clone()), body);
        if features.has(Feature::Rules) && rng.chance(2, 3) {
            def.rules = rules(&mut rng, &from, &to, &def.body);
        }
        program.defs.insert(name, def);
    }
    let mut generator = Generator::new(rng.split(), features, options.rough, &helpers);
    let input = generator.input_type();
    let output = if rng.chance(3, 4) { Type::Real } else { generator.input_type() };
    let body = function(&mut generator, &input, &output, options.size);
    let name: Symbol = Generated::FUNCTION.into();
    program.defs.insert(name.clone(), definition(name, Type::fun(input.clone(), output.clone()), body));
    let points =
        (0..2).map(|_| Point { ty: input.clone(), data: points::random(&mut rng, &input, 3, options.rough) }).collect();
    Generated { seed, features, program, input, output, points }
}

fn function(generator: &mut Generator, from: &Type, to: &Type, size: usize) -> Term {
    let param = Var::fresh("x");
    generator.bring_into_scope(&param, from.clone());
    let body = generator.term(to, size);
    At::default().lambda(&param, from.clone(), body)
}

fn definition(name: Symbol, ty: Type, body: Term) -> Def {
    Def {
        name,
        module: "Main".into(),
        scheme: Scheme::mono(ty),
        body: Body::Term(body),
        rules: Rules::default(),
        span: Span::default(),
    }
}

/// Right rules for a function: the derivatives of a copy of its text.
fn rules(rng: &mut Rng, from: &Type, to: &Type, body: &Body) -> Rules {
    let Body::Term(text) = body else { gradus_source::bug!("a random function without text") };
    let rule = |op, seed: &Type| {
        let (at, x, d) = (At::default(), Var::fresh("x"), Var::fresh("d"));
        let copy = Copy::default().term(text);
        let args = vec![copy, at.var(&x), at.var(&d)];
        let derivative = at.term(TermKind::Derive { op, types: [from.clone(), to.clone()].into(), args });
        at.lambdas(&[(x, from.clone()), (d, seed.clone())], derivative)
    };
    let which = rng.below(3);
    Rules {
        arity: 1,
        reverse: (which != 0).then(|| rule(DeriveOp::Vjp, to)),
        forward: (which != 1).then(|| rule(DeriveOp::Jvp, from)),
    }
}

/// `type 'a tree = Leaf of 'a | Node of 'a tree * 'a tree`
fn tree_decl() -> TypeDecl {
    let a = TypeVar::fresh("a");
    let (leaf, tree) = (Type::Var(a.clone()), Type::named("tree", [Type::Var(a.clone())]));
    TypeDecl {
        name: TypeName::new("tree"),
        params: vec![a],
        body: TypeBody::Variant(vec![("Leaf".into(), vec![leaf]), ("Node".into(), vec![tree.clone(), tree])]),
        span: Span::default(),
    }
}

impl Generator<'_> {
    /// The type of an input or output: a data type that contains reals.
    fn input_type(&mut self) -> Type {
        let mut choices = vec![Type::Real];
        if self.has(Feature::Products) {
            choices.push(Type::tuple([Type::Real, Type::Real]));
            choices.push(Type::tuple([Type::Real, Type::Int, Type::Real]));
        }
        if self.has(Feature::Arrays) {
            choices.push(Type::array(Type::Real));
        }
        if self.has(Feature::RecursiveTypes) {
            choices.push(Type::list(Type::Real));
            choices.push(Type::named("tree", [Type::Real]));
        }
        if self.has(Feature::Variants) {
            choices.push(Type::either(Type::Real, Type::tuple([Type::Real, Type::Real])));
        }
        self.rng.pick(&choices).clone()
    }
}
