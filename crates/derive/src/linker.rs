//! The linker: makes definitions behind keys, once and on demand, and keeps them.

use crate::custom::CustomRule;
use crate::expand::Expander;
use crate::forms::{DELTA_PROGRAM, TRACE_PROGRAM};
use crate::known::{share, shared, Kept};
use crate::mode::{rules, ModeRules};
use crate::scope::{for_each_lambda, Scope};
use crate::{Made, Refusal};
use gradus_core::build::At;
use gradus_core::print::print_type;
use gradus_core::traverse::{add_binder_types, free_vars};
use gradus_core::{
    check, instance, Body, Def, Definition, Definitions, Global, Lambda, Mode, Program, Scheme, Symbol, Term, TermKind,
    Type, TypeDecl, TypeName, Var,
};
use gradus_source::{Diagnostic, Span};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the user chose.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The mode of `grad`, `value_and_grad`, `vjp`, `pullback` and what is built on them: `--ad`.
    pub reverse: Mode,
    /// Whether every definition is checked by `core::check` when it is made.
    pub check: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { reverse: Mode::Monadic, check: cfg!(debug_assertions) }
    }
}

/// See the crate's documentation. Cheap to ask again: every answer is kept.
pub struct Linker {
    program: Arc<Program>,
    settings: Settings,
    made: Mutex<Kept>,
}

/// How many times a definition may need another one of the same name before it is done itself.
const MOST_BEFOREHAND: usize = 4;

/// The name in the text of the program: `loss` for `loss#1` and for the images of either.
fn source_name(global: &Global) -> Symbol {
    match global {
        Global::Source { name, .. } => name.split('#').find(|part| !part.is_empty()).unwrap_or_default().into(),
        Global::Derived { of, .. } => source_name(of),
        Global::Wrapper { name, .. } => (*name).into(),
    }
}

fn address(lambda: &Arc<Lambda>) -> usize {
    Arc::as_ptr(lambda) as usize
}

impl Linker {
    pub fn new(program: Arc<Program>, settings: Settings) -> Self {
        let mut kept = Kept::default();
        let own =
            [Mode::Monadic, Mode::Trace, Mode::Combinator].into_iter().filter_map(|m| rules(m, Span::default()).ok());
        for decl in own.flat_map(|mode| mode.declarations()) {
            kept.declarations.insert(decl.name.clone(), Arc::new(decl));
        }
        for decl in TypeDecl::builtin().into_iter().chain(program.types.values().cloned()) {
            kept.declarations.insert(decl.name.clone(), Arc::new(decl));
        }
        Linker { program, settings, made: Mutex::new(kept) }
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        // A poisoned lock means a panic elsewhere; what is kept is still whole, since entries are added in one step.
        self.made.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn hidden(&self, global: &Global) -> Option<Arc<Definition>> {
        self.kept().hidden.get(global).cloned()
    }

    /// Adds a definition that the program does not have, under a name that no program can write.
    pub(crate) fn hide(&self, name: Symbol, types: Arc<[Type]>, ty: Type, term: Term) -> Made<Global> {
        let global = Global::Source { name, types };
        let definition = Definition { global: global.clone(), ty, term: Some(term) };
        self.finish(&definition)?;
        self.kept().hidden.insert(global.clone(), Arc::new(definition));
        Ok(global)
    }

    /// The same for definitions that speak of each other. Their names get a number.
    pub(crate) fn hide_together(
        &self,
        names: &[Symbol],
        types: &[Type],
        texts: impl FnOnce(&[Global]) -> Vec<Term>,
    ) -> Made<Vec<Global>> {
        let mut globals = Vec::new();
        let number = self.kept().hidden.len();
        for (name, index) in names.iter().zip(number..) {
            globals.push(Global::Source { name: format!("{name}#{index}").into(), types: [].into() });
        }
        let mut definitions = Vec::new();
        for ((global, ty), term) in globals.iter().zip(types).zip(texts(&globals)) {
            let definition = Arc::new(Definition { global: global.clone(), ty: ty.clone(), term: Some(term) });
            self.kept().hidden.insert(global.clone(), definition.clone());
            definitions.push(definition);
        }
        definitions.iter().try_for_each(|definition| self.finish(definition))?;
        Ok(globals)
    }

    /// A term of the program that is no definition (`show e`), ready to be run: monomorphic, derivative forms expanded.
    pub fn expand(&self, term: &Term, ty: &Type) -> Result<Term, Box<Diagnostic>> {
        let number = {
            let mut kept = self.kept();
            kept.expanded_terms += 1;
            kept.expanded_terms
        };
        let term =
            self.expand_instance(format!("item{number}").into(), Arc::from([]), &Scheme::mono(ty.clone()), term)?;
        self.note_scopes(&term, &FxHashMap::default());
        if self.settings.check {
            if let Err(problem) = check::type_of(self, &term, &Default::default()) {
                return Err(ill_typed(format!("item {number}"), &problem).into());
            }
        }
        Ok(term)
    }

    /// The Delta program of one run (K Fig. 12): for `f : a -> b` and `x : a`, a term of type `D(b) * DeltaState` under `monadic`. The reals of
    /// the input have the identifiers from 0 on; then come the bindings, the latest first in the list. See `delta_type.rs`.
    pub fn delta_program(&self, f: &Global, x: Term, from: &Type, to: &Type) -> Term {
        let at = At(x.span);
        let wrapper = crate::wrappers::global(at, DELTA_PROGRAM, &[Mode::Monadic], [from.clone(), to.clone()]);
        let derived = Global::Derived { mode: Mode::Monadic, of: Arc::new(f.clone()) };
        at.apps(wrapper, [at.global(derived), x])
    }

    /// The trace term of one run and its symbolic derivative at the cotangent `dy` (A Fig. 4 to 6): for `f : a -> b`, a term of type
    /// `D(b) * TraceState * (TraceMap * TraceState)` under `trace`. See `forms.rs` and `trace/term.rs`.
    pub fn trace_program(&self, f: &Global, x: Term, dy: Term, from: &Type, to: &Type) -> Term {
        let at = At(x.span);
        let wrapper = crate::wrappers::global(at, TRACE_PROGRAM, &[Mode::Trace], [from.clone(), to.clone()]);
        let derived = Global::Derived { mode: Mode::Trace, of: Arc::new(f.clone()) };
        at.apps(wrapper, [at.global(derived), x, dy])
    }

    fn expand_instance(&self, name: Symbol, types: Arc<[Type]>, scheme: &Scheme, term: &Term) -> Made<Term> {
        let term = instance::instance(scheme, term, &types);
        Expander::new(self, name, types, &term).term(&term)
    }

    /// Tells the linker the types around the functions of a term, so that it can differentiate them when they are met as values.
    /// Whoever rewrites a definition that came from here does the same with the result. `free`: the types of the free variables.
    pub fn note_scopes(&self, term: &Term, free: &FxHashMap<Var, Type>) {
        let mut types = free.clone();
        add_binder_types(term, &mut types);
        let scope: Scope = Arc::new(types);
        let mut kept = self.kept();
        for_each_lambda(term, &mut |l| {
            kept.scopes.insert(address(l), (l.clone(), scope.clone()));
        });
    }

    fn note_definition(&self, definition: &Definition) {
        if let Some(term) = &definition.term {
            self.note_scopes(term, &FxHashMap::default());
        }
    }

    /// What is done with every definition that is made.
    fn finish(&self, definition: &Definition) -> Made<()> {
        self.note_definition(definition);
        // Type preservation: the definition has the type that its key promises.
        match self.settings.check.then(|| check::check_definition(self, definition)) {
            Some(Err(problem)) => Err(ill_typed(format!("{:?}", definition.global), &problem)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// The same for a function with free variables.
    fn check_image(
        &self,
        lambda: &Arc<Lambda>,
        image: &Term,
        free: &FxHashMap<Var, Type>,
        mode: &dyn ModeRules,
    ) -> Made<()> {
        let what = || format!("the image of a function under `{}`", mode.mode());
        let original = Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span);
        let expected = self.image(mode, &self.type_of(&self.scope(lambda), &original)?);
        let environment = free.iter().map(|(v, t)| (v.clone(), Scheme::mono(t.clone()))).collect();
        match check::type_of(self, image, &environment) {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => {
                let problem = format!("it has type {}, not {}", print_type(&found), print_type(&expected));
                Err(Box::new(Refusal::IllTyped { what: what(), problem }))
            }
            Err(problem) => Err(ill_typed(what(), &problem)),
        }
    }

    /// The definition of what a mode must look into while it translates a caller. A function that is defined through its own derivative, or at
    /// ever larger types, has no last such definition, and is refused.
    pub(crate) fn make_beforehand(&self, global: &Global, mode: Mode, span: Span) -> Made<Arc<Definition>> {
        let name = source_name(global);
        let again = self.kept().beforehand.iter().filter(|before| **before == name).count();
        if again >= MOST_BEFOREHAND {
            let construct = "a function that needs itself at ever higher orders or ever larger types";
            return Err(Box::new(Refusal::Construct { mode, construct, span }));
        }
        self.kept().beforehand.push(name);
        let made = self.make(global);
        self.kept().beforehand.pop();
        made
    }

    pub(crate) fn make(&self, global: &Global) -> Made<Arc<Definition>> {
        if let Some(known) = self.kept().definitions.get(global) {
            return Ok(known.clone());
        }
        if let Some(hidden) = self.hidden(global) {
            return Ok(hidden);
        }
        if let Some(shared) = shared(global) {
            self.note_definition(&shared);
            self.kept().definitions.insert(global.clone(), shared.clone());
            return Ok(shared);
        }
        let definition = match global {
            Global::Source { name, types } => self.make_source(global, name, types)?,
            Global::Derived { mode, of } => self.make_derived(global, *mode, of)?,
            Global::Wrapper { name, modes, types } => {
                let (ty, term) = crate::wrappers::make(self, name, modes, types)?;
                Definition { global: global.clone(), ty, term: Some(term) }
            }
        };
        self.finish(&definition)?;
        let definition = Arc::new(definition);
        if self.settings.check {
            share(&definition);
        }
        self.kept().definitions.insert(global.clone(), definition.clone());
        Ok(definition)
    }

    fn make_source(&self, global: &Global, name: &Symbol, types: &Arc<[Type]>) -> Made<Definition> {
        let def = match self.program.defs.get(name) {
            Some(def) if def.scheme.vars.len() == types.len() => def,
            _ => return Err(Box::new(Refusal::UnknownGlobal { global: Box::new(global.clone()) })),
        };
        let ty = def.scheme.instantiate(types);
        let term = match &def.body {
            Body::Data { .. } => None,
            Body::Term(term) => {
                let term = self.expand_instance(name.clone(), types.clone(), &def.scheme, term)?;
                Some(if has_rules(def) { self.guard_rules(def, types, &ty, term)? } else { term })
            }
        };
        Ok(Definition { global: global.clone(), ty, term })
    }

    /// A function with a custom rule: its text moves to a hidden definition, which alone has the rule, and is always called
    /// with all the arguments that the rule speaks of. So the rule is used however the function is passed around or partially applied.
    fn guard_rules(&self, def: &Def, types: &Arc<[Type]>, ty: &Type, term: Term) -> Made<Term> {
        let at = At(def.span);
        let primal = self.hide(primal_name(&def.name), types.clone(), ty.clone(), term)?;
        let mut params = Vec::new();
        let mut rest = ty.clone();
        for _ in 0..def.rules.arity {
            params.push((Var::fresh("x"), crate::typing::parameter_type(&rest)));
            rest = crate::typing::result_type(&rest);
        }
        let args: Vec<Term> = params.iter().map(|(v, _)| at.var(v)).collect();
        Ok(at.lambdas(&params, at.apps(at.global(primal), args)))
    }

    /// The rule of a hidden definition that stands for a function with custom rules.
    fn custom_rule(&self, of: &Global) -> Made<Option<CustomRule>> {
        let Global::Source { name, types } = of else { return Ok(None) };
        let Some(source) = name.strip_suffix(PRIMAL_SUFFIX) else { return Ok(None) };
        let Some(def) = self.program.defs.get(source) else { return Ok(None) };
        let hide = |rule: &Option<Term>, suffix: &str| -> Made<Option<Global>> {
            let Some(term) = rule else { return Ok(None) };
            let name: Symbol = format!("{source}{suffix}").into();
            let global = Global::Source { name: name.clone(), types: types.clone() };
            if self.hidden(&global).is_some() {
                return Ok(Some(global));
            }
            let term = self.expand_instance(name.clone(), types.clone(), &def.scheme, term)?;
            let mut vars = FxHashMap::default();
            add_binder_types(&term, &mut vars);
            let ty = self.type_of(&vars, &term)?;
            self.hide(name, types.clone(), ty, term).map(Some)
        };
        let reverse = hide(&def.rules.reverse, "#derivative")?;
        let forward = hide(&def.rules.forward, "#tangent")?;
        CustomRule::new(self, of.clone(), def, types, reverse, forward).map(Some)
    }

    fn make_derived(&self, global: &Global, mode: Mode, of: &Arc<Global>) -> Made<Definition> {
        let source = self.make(of)?;
        let span = source.term.as_ref().map_or(Span::default(), |t| t.span);
        let at = At(span);
        let rules = rules(mode, span)?;
        let ty = self.image(rules, &source.ty);
        if let Some(rule) = self.custom_rule(of)? {
            return Ok(Definition { global: global.clone(), ty, term: Some(rules.custom(self, &rule)?) });
        }
        let original = || at.global((**of).clone());
        let term = match source.term.as_ref().map(|t| &*t.kind) {
            // K section 7.5: the derivative of a library function, from its text alone.
            Some(TermKind::Lambda(lambda)) => {
                let scope = self.scope(lambda);
                at.term(TermKind::Lambda(rules.lambda(self, &scope, lambda)?))
            }
            // No input reaches a definition that is no function, so its derivative is zero.
            _ if self.contents(&source.ty).is_data() => crate::wrappers::lift(self, at, mode, &source.ty, original())?,
            // A function that is computed when the program starts: its value is differentiated.
            _ => at.term(TermKind::Lift { under: vec![], mode, ty: source.ty.clone(), term: original() }),
        };
        Ok(Definition { global: global.clone(), ty, term: Some(term) })
    }

    /// The types of the variables around a function.
    pub(crate) fn scope(&self, lambda: &Arc<Lambda>) -> Scope {
        match self.kept().scopes.get(&address(lambda)) {
            Some((_, scope)) => scope.clone(),
            None => gradus_source::bug!("a function that the linker has not seen: `note_scopes` was not called"),
        }
    }

    fn differentiate_lambda(&self, lambda: &Arc<Lambda>, mode: Mode) -> Made<Arc<Lambda>> {
        let key = (address(lambda), mode);
        if let Some(known) = self.kept().images.get(&key) {
            return Ok(known.clone());
        }
        let scope = self.scope(lambda);
        let rules = rules(mode, lambda.body.span)?;
        let image = rules.lambda(self, &scope, lambda)?;
        let term = Term::new(TermKind::Lambda(image.clone()), lambda.body.span);
        let free =
            free_vars(&term).into_iter().filter_map(|v| scope.get(&v).map(|ty| (v, self.image(rules, ty)))).collect();
        if self.settings.check {
            self.check_image(lambda, &term, &free, rules)?;
        }
        self.note_scopes(&term, &free);
        self.kept().images.insert(key, image.clone());
        Ok(image)
    }
}

fn ill_typed(what: String, problem: &check::CheckError) -> Box<Refusal> {
    Box::new(Refusal::IllTyped { what, problem: problem.diagnostic().message })
}

const PRIMAL_SUFFIX: &str = "#primal";

fn primal_name(name: &Symbol) -> Symbol {
    format!("{name}{PRIMAL_SUFFIX}").into()
}

fn has_rules(def: &Def) -> bool {
    def.rules.reverse.is_some() || def.rules.forward.is_some()
}

impl Definitions for Linker {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        Ok(self.make(global)?)
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        Ok(self.declaration(name)?)
    }

    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        Ok(self.differentiate_lambda(lambda, mode)?)
    }

    fn variable_types(&self, lambda: &Arc<Lambda>) -> Option<Scope> {
        self.kept().scopes.get(&address(lambda)).map(|(_, scope)| scope.clone())
    }
}

impl check::Context for Linker {
    fn global_type(&self, global: &Global) -> Result<Type, Box<Diagnostic>> {
        Ok(Linker::global_type(self, global)?)
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        Ok(self.declaration(name)?)
    }

    fn translate(&self, ty: &Type, mode: Mode) -> Option<Type> {
        rules(mode, Span::default()).ok().map(|mode| self.image(mode, ty))
    }
}
