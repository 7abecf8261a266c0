//! Written programs: every `(* grad: FUNCTION POINT = .. *)` in the programs of a folder, and every such `value`, `diff`, `jacobian` and `hessian`,
//! is a function to compare, at a point.

use crate::compare::{Place, Subject};
use gradus_core::build::At;
use gradus_core::check::{type_of, Unlinked};
use gradus_core::proved::contents;
use gradus_core::traverse::with_stack;
use gradus_core::{Body, Def, Definitions, Global, Program, Rules, Scheme, Term, TermKind, Type, Var};
use gradus_derive::{Linker, Settings};
use gradus_generate::Data;
use gradus_infer::{imports, infer_expr, infer_program, Inferred, ModuleSource};
use gradus_reference::{Machine, Options, Value};
use gradus_source::Span;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What may be claimed of a function at a point.
const FORMS: [&str; 5] = ["grad", "value", "diff", "jacobian", "hessian"];
/// What the function is called besides its own name.
const FUNCTION: &str = "the function";
/// Enough for the recursion in these programs.
const FUEL: usize = 2000;
/// What computing a point may take.
const MAX_STEPS: u64 = 10_000;
const MAX_MEMORY: u64 = 1 << 24;

#[derive(Default)]
pub struct Written {
    /// With the file and the text of the claim.
    pub subjects: Vec<(String, Subject)>,
    /// Why others are not compared, and how many.
    pub left_out: BTreeMap<String, usize>,
}

/// The claims of all programs in a folder and the folders inside, in order of their names. `library`: the folder of the modules that they import.
pub fn written(folder: &Path, library: &Path) -> std::io::Result<Written> {
    let mut written = Written::default();
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let claims = claims(&text);
        if claims.is_empty() {
            continue;
        }
        let mut modules = Vec::new();
        let complete = add("Prelude", library, &mut modules) && add_text("", &text, library, &mut modules);
        let inferred = infer_program(&modules).ok().filter(|_| complete);
        for claim in claims {
            let made = match &inferred {
                Some(inferred) => subject(inferred, &claim),
                None => Err("modules of its own".to_string()),
            };
            match made {
                Ok(subject) => written.subjects.push((format!("{name}: {claim}"), subject)),
                Err(why) => *written.left_out.entry(why).or_default() += 1,
            }
        }
    }
    Ok(written)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "gr") {
            files.push(path);
        }
    }
    Ok(())
}

/// The applications about which something is claimed, each once.
fn claims(text: &str) -> Vec<String> {
    let comments = gradus_syntax::parse_module(Default::default(), text).comments;
    let mut claims: Vec<String> = Vec::new();
    for comment in &comments {
        let raw = text.get(comment.span.start as usize..comment.span.end as usize).unwrap_or("");
        let inside = raw.strip_prefix("(*").and_then(|raw| raw.strip_suffix("*)")).unwrap_or("");
        let Some((form, claim)) = inside.trim().split_once(": ") else { continue };
        let Some(claim) = equality(claim).and_then(|at| claim.get(..at)) else { continue };
        if FORMS.contains(&form) && claims.iter().all(|known| known != claim.trim()) {
            claims.push(claim.trim().to_string());
        }
    }
    claims
}

/// Where the first `=` between blanks and outside brackets stands.
fn equality(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        (depth == 0 && text.get(at..)?.starts_with(" = ")).then_some(at)
    })
}

/// Adds a module of the library and what it imports, unless it is there; whether all were found.
fn add(name: &str, library: &Path, modules: &mut Vec<ModuleSource>) -> bool {
    if modules.iter().any(|module| &*module.name == name) {
        return true;
    }
    match std::fs::read_to_string(library.join(format!("{}.gr", name.to_lowercase()))) {
        Ok(text) => add_text(name, &text, library, modules),
        Err(_) => false,
    }
}

fn add_text(name: &str, text: &str, library: &Path, modules: &mut Vec<ModuleSource>) -> bool {
    let tree = gradus_syntax::parse_module(Default::default(), text).tree;
    let found = imports(&tree).iter().all(|import| add(&import.name, library, modules));
    modules.push(ModuleSource { name: name.into(), tree });
    found
}

/// The function of a claim, and its point.
fn subject(inferred: &Inferred, claim: &str) -> Result<Subject, String> {
    let parsed = gradus_syntax::parse_expr(Default::default(), claim);
    let made = infer_expr(inferred, &parsed.tree, None).map_err(|_| "a claim that is no expression")?;
    let TermKind::App(function, argument) = &*made.term.kind else {
        return Err("a claim that is no application".into());
    };
    let input = type_of(&Unlinked(&inferred.program), argument, &Default::default());
    let input = input.map_err(|_| "a point without a type")?;
    let (program, global) = with_function(&inferred.program, function, &input, &made.ty);
    let program = Arc::new(program);
    let linker = Linker::new(program.clone(), Settings::default());
    let found = contents(&linker, &global).map_err(|refused| refused.message.clone())?;
    if let Some(outside) = found.outside.first() {
        return Err(outside.what.clone());
    }
    let custom = |global: &Global| match global {
        Global::Source { name, .. } => program.defs.get(name).is_some_and(|def| def.rules.arity > 0),
        Global::Derived { .. } | Global::Wrapper { .. } => false,
    };
    if found.reached.iter().any(custom) {
        return Err("a custom derivative".into());
    }
    let term = linker.expand(argument, &input).map_err(|refused| refused.message.clone())?;
    let options = Options { max_steps: Some(MAX_STEPS), max_memory: MAX_MEMORY, ..Options::default() };
    let value = Machine::new(&linker, options).eval(&term);
    let value = value.map_err(|error| error.diagnostic().message)?;
    let data = data(&linker, &input, &value).ok_or("a point that is no data")?;
    Ok(Subject { program, function: global, input, output: made.ty, points: vec![Place { data, term }], fuel: FUEL })
}

/// The program with one more definition: `fun x -> function x`.
fn with_function(program: &Program, function: &Term, input: &Type, output: &Type) -> (Program, Global) {
    let (at, x) = (At::default(), Var::fresh("x"));
    let body = at.lambda(&x, input.clone(), at.app(function.clone(), at.var(&x)));
    let def = Def {
        name: FUNCTION.into(),
        module: "Main".into(),
        scheme: Scheme::mono(Type::fun(input.clone(), output.clone())),
        body: Body::Term(body),
        rules: Rules::default(),
        span: Span::default(),
    };
    let mut program = program.clone();
    program.defs.insert(FUNCTION.into(), def);
    (program, Global::Source { name: FUNCTION.into(), types: [].into() })
}

/// A value of our evaluator as data; `None` if there is a function or a string inside.
fn data(definitions: &dyn Definitions, ty: &Type, value: &Value) -> Option<Data> {
    let all = |types: &[Type], values: &[Value]| -> Option<Vec<Data>> {
        types.iter().zip(values).map(|(ty, value)| data(definitions, ty, value)).collect()
    };
    with_stack(|| {
        Some(match (ty, value) {
            (Type::Real, Value::Real(x)) => Data::Real(*x),
            (Type::Int, Value::Int(z)) => Data::Int(*z),
            (Type::Bool, Value::Bool(b)) => Data::Bool(*b),
            (Type::Tuple(types), Value::Node(0, items)) => Data::Tuple(all(types, items)?),
            (Type::Array(_), Value::Reals(xs)) => Data::Array(xs.iter().copied().map(Data::Real).collect()),
            (Type::Array(_), Value::Ints(xs)) => Data::Array(xs.iter().copied().map(Data::Int).collect()),
            (Type::Array(element), Value::Array(items)) => {
                let items: Option<Vec<Data>> = items.iter().map(|item| data(definitions, element, item)).collect();
                Data::Array(items?)
            }
            (Type::Named(name, types), Value::Node(tag, args)) => {
                let tag = *tag as usize;
                let constructors = definitions.type_decl(name).ok()?.constructors(types);
                Data::Construct { tag, args: all(&constructors.get(tag)?.1, args)? }
            }
            _ => return None,
        })
    })
}
