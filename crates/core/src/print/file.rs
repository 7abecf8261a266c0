//! Definitions, type declarations and programs as files of Gradus source.

use super::layout::Doc;
use super::names::Names;
use super::terms::{quoted, TermPrinter};
use super::types::TypePrinter;
use super::{Annotations, Options};
use crate::check::{Context, Unlinked};
use crate::traverse::{for_each_child, with_stack};
use crate::*;
use gradus_source::Diagnostic;
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// A program as inference leaves it, as one file: names of other modules are
/// flattened (`Optim.descend` is `descend`, or `optim_descend` where that would clash).
pub fn print_program(program: &Program, options: Options) -> String {
    let context = Unlinked(program);
    let mut file = File::new(&context, options, Names::of_file(false));
    // The file that is run keeps its names; others give way.
    for name in program.defs.keys().filter(|name| !name.contains('.')).chain(program.defs.keys()) {
        file.printer.names.global(&source(name));
    }
    let builtin = ["list", "option", "either"];
    let decls = program.types.values().filter(|decl| !builtin.contains(&&*decl.name.base));
    file.types(decls.map(|decl| Arc::new(decl.clone())).collect());
    let defs: Vec<&Def> = program.defs.values().collect();
    let bodies: Vec<Option<&Term>> = defs
        .iter()
        .map(|def| match &def.body {
            Body::Term(term) => Some(term),
            Body::Data { .. } => None,
        })
        .collect();
    let index = |global: &Global| match global {
        Global::Source { name, .. } => program.defs.get_index_of(name),
        Global::Derived { .. } | Global::Wrapper { .. } => None,
    };
    for group in groups(&bodies, &index) {
        let members: Vec<Member> = group
            .members
            .iter()
            .map(|&i| Member {
                global: source(&defs[i].name),
                scheme: defs[i].scheme.clone(),
                body: bodies[i].cloned(),
            })
            .collect();
        file.definitions(&members, group.recursive);
        for &i in &group.members {
            file.data_and_rules(defs[i]);
        }
    }
    for item in &program.items {
        file.item(item);
    }
    file.finish()
}

/// Definitions that came out of a linker, with the types that they mention, as one file.
pub fn print_definitions(
    context: &dyn Context,
    definitions: &[Arc<Definition>],
    options: Options,
) -> Result<String, Box<Diagnostic>> {
    let mut file = File::new(context, options, Names::of_file(true));
    // Where two want the same name, the one that was asked for first has it.
    for definition in definitions {
        file.printer.names.global(&definition.global);
    }
    file.types(mentioned_types(context, definitions)?);
    let bodies: Vec<Option<&Term>> = definitions.iter().map(|d| d.term.as_ref()).collect();
    let positions: FxHashMap<&Global, usize> = definitions.iter().enumerate().map(|(i, d)| (&d.global, i)).collect();
    for group in groups(&bodies, &|global| positions.get(global).copied()) {
        let members: Vec<Member> = group
            .members
            .iter()
            .map(|&i| Member {
                global: definitions[i].global.clone(),
                scheme: Scheme::mono(definitions[i].ty.clone()),
                body: bodies[i].cloned(),
            })
            .collect();
        file.definitions(&members, group.recursive);
    }
    Ok(file.finish())
}

fn source(name: &Symbol) -> Global {
    Global::Source { name: name.clone(), types: Arc::from([]) }
}

struct Member {
    global: Global,
    scheme: Scheme,
    /// `None` for data, which is declared elsewhere.
    body: Option<Term>,
}

struct File<'a> {
    printer: TermPrinter<'a>,
    parts: Vec<Doc>,
}

impl<'a> File<'a> {
    fn new(context: &'a dyn Context, options: Options, names: Names) -> Self {
        let annotations = match options.annotations {
            Annotations::None => Annotations::Functions,
            other => other,
        };
        let options = Options { annotations, ..options };
        File { printer: TermPrinter::new(Some(context), options, names), parts: Vec::new() }
    }

    fn add(&mut self, doc: Doc) {
        if !self.parts.is_empty() {
            let blank = [self.printer.layout.hard(), self.printer.layout.hard()];
            self.parts.extend(blank);
        }
        self.parts.push(doc);
    }

    fn finish(mut self) -> String {
        let width = self.printer.options.width;
        let end = self.printer.layout.hard();
        self.parts.push(end);
        let doc = self.printer.layout.many(std::mem::take(&mut self.parts));
        self.printer.layout.render(doc, width)
    }

    /// Type declarations, those that refer to each other together.
    fn types(&mut self, decls: Vec<Arc<TypeDecl>>) {
        let positions: IndexMap<TypeName, usize> = decls.iter().enumerate().map(|(i, d)| (d.name.clone(), i)).collect();
        let edges: Vec<Vec<usize>> = decls
            .iter()
            .map(|decl| {
                let mut names = IndexSet::new();
                parts(decl).iter().for_each(|ty| named_types(ty, &mut names));
                names.iter().filter_map(|name| positions.get(name).copied()).collect()
            })
            .collect();
        for group in components(&edges) {
            let mut docs = Vec::new();
            for (index, member) in group.members.iter().enumerate() {
                if index > 0 {
                    docs.push(self.printer.layout.hard());
                }
                let word = if index == 0 { "type" } else { "and" };
                docs.push(self.type_decl(word, &decls[*member]));
            }
            let doc = self.printer.layout.many(docs);
            self.add(doc);
        }
    }

    fn type_decl(&mut self, word: &str, decl: &TypeDecl) -> Doc {
        let name = self.printer.names.ty(&decl.name);
        let labels: Vec<String> = match &decl.body {
            TypeBody::Record(fields) => {
                fields.iter().enumerate().map(|(i, (f, _))| self.printer.names.field(decl, i, f)).collect()
            }
            TypeBody::Variant(all) => {
                all.iter().enumerate().map(|(i, (c, _))| self.printer.names.constructor(decl, i, c)).collect()
            }
        };
        let names = RefCell::new(std::mem::take(&mut self.printer.names));
        let mut types = TypePrinter::with_names(|name| names.borrow_mut().ty(name));
        let params: Vec<String> = decl.params.iter().map(|v| types.var(v)).collect();
        let head = match &params[..] {
            [] => format!("{word} {name} ="),
            [one] => format!("{word} {one} {name} ="),
            several => format!("{word} ({}) {name} =", several.join(", ")),
        };
        let items: Vec<String> = match &decl.body {
            TypeBody::Record(fields) => {
                fields.iter().zip(&labels).map(|((_, ty), label)| format!("{label} : {}", types.ty(ty))).collect()
            }
            TypeBody::Variant(all) => all
                .iter()
                .zip(&labels)
                .map(|((_, args), label)| match &args[..] {
                    [] => label.clone(),
                    args => {
                        let args: Vec<String> = args.iter().map(|ty| types.operand(ty)).collect();
                        format!("{label} of {}", args.join(" * "))
                    }
                })
                .collect(),
        };
        drop(types);
        self.printer.names = names.into_inner();
        let record = matches!(&decl.body, TypeBody::Record(_));
        let mut docs = vec![self.printer.text(head)];
        let mut inner = vec![self.printer.layout.line()];
        let last = items.len().saturating_sub(1);
        for (i, item) in items.into_iter().enumerate() {
            let text = match (record, i == 0, i == last) {
                (true, first, last) => {
                    format!("{}{item}{}", if first { "{ " } else { "  " }, if last { " }" } else { ";" })
                }
                (false, true, _) => item,
                (false, false, _) => format!("| {item}"),
            };
            // Inside a record on one line the indentation of later fields is not wanted.
            let text = if record && i > 0 { text.trim_start().to_string() } else { text };
            if i > 0 {
                inner.push(self.printer.layout.line());
            }
            inner.push(self.printer.text(text));
        }
        let inner = self.printer.layout.many(inner);
        docs.push(self.printer.layout.nest(inner));
        self.printer.layout.group(docs)
    }

    fn definitions(&mut self, members: &[Member], recursive: bool) {
        let mut docs = Vec::new();
        for member in members {
            let Some(body) = &member.body else { continue };
            self.printer.prepare(body);
            if !docs.is_empty() {
                docs.push(self.printer.layout.hard());
            }
            let word = match (docs.is_empty(), recursive) {
                (true, true) => "let rec",
                (true, false) => "let",
                (false, _) => "and",
            };
            docs.push(self.definition(word, member, body, recursive));
        }
        if !docs.is_empty() {
            let doc = self.printer.layout.many(docs);
            self.add(doc);
        }
    }

    /// `let f (x : real) : real = ...`; recursive polymorphic ones state their type, since they may use themselves at others.
    fn definition(&mut self, word: &str, member: &Member, body: &Term, recursive: bool) -> Doc {
        let name = self.printer.names.global(&member.global);
        let ty = &member.scheme.ty;
        let polymorphic = !member.scheme.vars.is_empty();
        let (head, doc) = match &*body.kind {
            TermKind::Lambda(lambda) if !(recursive && polymorphic) => {
                let (params, vars, rest) = self.printer.parameters(lambda, !polymorphic);
                let mut result = ty.clone();
                for _ in 0..params.len() {
                    if let Type::Fun(arrow) = &result {
                        result = arrow.1.clone();
                    }
                }
                let doc = self.printer.body(&rest);
                self.printer.end_scope(&vars);
                let annotation = if polymorphic { String::new() } else { format!(" : {}", self.printer.ty(&result)) };
                (format!("{word} {name} {}{annotation} =", params.join(" ")), doc)
            }
            _ => {
                let doc = self.printer.body(body);
                let quantified = if recursive && polymorphic {
                    let mut types = TypePrinter::default();
                    let mut vars = IndexSet::new();
                    type_vars(ty, &mut vars);
                    let vars: Vec<String> = vars.iter().map(|v| types.var(v)).collect();
                    format!("{}. ", vars.join(" "))
                } else {
                    String::new()
                };
                (format!("{word} {name} : {quantified}{} =", self.printer.ty(ty)), doc)
            }
        };
        self.printer.equation(&head, doc)
    }

    fn data_and_rules(&mut self, def: &Def) {
        let name = self.printer.names.global(&source(&def.name));
        if let Body::Data { file, .. } = &def.body {
            let ty = self.printer.ty(&def.scheme.ty);
            let doc = self.printer.text(format!("data {name} : {ty} from {}", quoted(file)));
            self.add(doc);
        }
        for (word, rule) in [("derivative", &def.rules.reverse), ("tangent", &def.rules.forward)] {
            let Some(rule) = rule else { continue };
            self.printer.prepare(rule);
            let TermKind::Lambda(lambda) = &*rule.kind else { continue };
            let (params, vars, rest) = self.printer.parameters(lambda, false);
            let doc = self.printer.body(&rest);
            self.printer.end_scope(&vars);
            let doc = self.printer.equation(&format!("{word} {name} {} =", params.join(" ")), doc);
            self.add(doc);
        }
    }

    fn item(&mut self, item: &Item) {
        let (word, end) = match &item.kind {
            ItemKind::Show => ("show", String::new()),
            ItemKind::Check { .. } => ("check", String::new()),
            ItemKind::Plot { file: None } => ("plot", String::new()),
            ItemKind::Plot { file: Some(file) } => ("plot", format!(" to {}", quoted(file))),
        };
        let term = self.printer.whole(&item.term);
        let head = self.printer.equation(word, term);
        let end = self.printer.text(end);
        let doc = self.printer.layout.many([head, end]);
        self.add(doc);
    }
}

/// The types of a declaration's fields or arguments.
fn parts(decl: &TypeDecl) -> Vec<Type> {
    match &decl.body {
        TypeBody::Record(fields) => fields.iter().map(|(_, ty)| ty.clone()).collect(),
        TypeBody::Variant(constructors) => constructors.iter().flat_map(|(_, args)| args.iter().cloned()).collect(),
    }
}

fn type_vars(ty: &Type, vars: &mut IndexSet<TypeVar>) {
    match ty {
        Type::Var(v) => {
            vars.insert(v.clone());
        }
        Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => {}
        Type::Tuple(parts) | Type::Named(_, parts) => parts.iter().for_each(|t| type_vars(t, vars)),
        Type::Fun(parts) => {
            type_vars(&parts.0, vars);
            type_vars(&parts.1, vars);
        }
        Type::Array(element) => type_vars(element, vars),
    }
}

fn named_types(ty: &Type, names: &mut IndexSet<TypeName>) {
    with_stack(|| match ty {
        Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => {}
        Type::Tuple(parts) => parts.iter().for_each(|t| named_types(t, names)),
        Type::Fun(parts) => {
            named_types(&parts.0, names);
            named_types(&parts.1, names);
        }
        Type::Array(element) => named_types(element, names),
        Type::Named(name, args) => {
            names.insert(name.clone());
            args.iter().for_each(|t| named_types(t, names));
        }
    })
}

/// The declarations of all types that definitions mention, and of those that these mention; builtin ones left out.
fn mentioned_types(
    context: &dyn Context,
    definitions: &[Arc<Definition>],
) -> Result<Vec<Arc<TypeDecl>>, Box<Diagnostic>> {
    fn walk(term: &Term, names: &mut IndexSet<TypeName>) {
        with_stack(|| {
            match &*term.kind {
                TermKind::Lambda(lambda) => named_types(&lambda.ty, names),
                TermKind::Let { scheme, .. } => named_types(&scheme.ty, names),
                TermKind::LetRec { bindings, .. } => bindings.iter().for_each(|(_, s, _)| named_types(&s.ty, names)),
                TermKind::Construct { name, types, .. } => {
                    names.insert(name.clone());
                    types.iter().for_each(|t| named_types(t, names));
                }
                TermKind::Case { arms, .. } => {
                    arms.iter().flat_map(|a| &a.vars).for_each(|(_, ty)| named_types(ty, names))
                }
                TermKind::ArrayLiteral { element, .. } => named_types(element, names),
                TermKind::Prim { types, .. } => types.iter().for_each(|t| named_types(t, names)),
                _ => {}
            }
            for_each_child(term, &mut |child| walk(child, names));
        })
    }
    let mut names = IndexSet::new();
    for definition in definitions {
        named_types(&definition.ty, &mut names);
        definition.term.iter().for_each(|term| walk(term, &mut names));
    }
    let mut decls = Vec::new();
    let mut next = 0;
    while let Some(name) = names.get_index(next).cloned() {
        next += 1;
        let decl = context.type_decl(&name)?;
        parts(&decl).iter().for_each(|ty| named_types(ty, &mut names));
        let builtin = name.modes.is_empty() && ["list", "option", "either"].contains(&&*name.base);
        if !builtin {
            decls.push(decl);
        }
    }
    Ok(decls)
}

/// Definitions that must stand together, in an order in which each group only needs those before it.
struct Group {
    members: Vec<usize>,
    recursive: bool,
}

fn groups(bodies: &[Option<&Term>], index: &dyn Fn(&Global) -> Option<usize>) -> Vec<Group> {
    fn walk(term: &Term, index: &dyn Fn(&Global) -> Option<usize>, found: &mut IndexSet<usize>) {
        with_stack(|| {
            if let TermKind::Global(global) = &*term.kind {
                found.extend(index(global));
            }
            for_each_child(term, &mut |child| walk(child, index, found));
        })
    }
    let edges: Vec<Vec<usize>> = bodies
        .iter()
        .map(|body| {
            let mut found = IndexSet::new();
            body.iter().for_each(|term| walk(term, index, &mut found));
            found.into_iter().collect()
        })
        .collect();
    components(&edges)
}

/// Tarjan's algorithm, with a stack of its own: strongly connected components, what they need first.
fn components(edges: &[Vec<usize>]) -> Vec<Group> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut open = vec![false; edges.len()];
    let (mut stack, mut groups, mut count) = (Vec::new(), Vec::new(), 0);
    for start in 0..edges.len() {
        if number[start] != NEW {
            continue;
        }
        // A node, and how many of its edges have been followed.
        let mut path = vec![(start, 0)];
        while let Some((node, followed)) = path.pop() {
            if followed == 0 {
                number[node] = count;
                low[node] = count;
                count += 1;
                stack.push(node);
                open[node] = true;
            } else {
                let child = edges[node][followed - 1];
                if open[child] {
                    low[node] = low[node].min(low[child]);
                }
            }
            if let Some(&child) = edges[node].get(followed) {
                path.push((node, followed + 1));
                if number[child] == NEW {
                    path.push((child, 0));
                }
                continue;
            }
            if low[node] == number[node] {
                let mut members = Vec::new();
                while let Some(member) = stack.pop() {
                    open[member] = false;
                    members.push(member);
                    if member == node {
                        break;
                    }
                }
                members.sort_unstable();
                let recursive = members.len() > 1 || edges[node].contains(&node);
                groups.push(Group { members, recursive });
            }
        }
    }
    groups
}
