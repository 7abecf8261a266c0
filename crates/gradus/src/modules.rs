//! From a file to all the modules that it needs: reading, parsing, following imports.
//!
//! `import Optim` means `optim.gr` beside the importing file, then the module `Optim` of the standard library. The prelude comes
//! before everything. The result is in order of dependence: a module stands after those that it imports.

use crate::error::{DriverError, Problems};
use crate::library;
use crate::loader::{LoadError, Loader};
use gradus_core::Symbol;
use gradus_source::{FileId, SourceFile, SourceMap, Span};
use gradus_syntax::ast;
use std::path::{Path, PathBuf};

/// A module as it was written.
#[derive(Clone, Debug)]
pub struct Source {
    /// `Optim`; empty for the file that is run.
    pub name: Symbol,
    pub file: FileId,
    /// The folder in which it looks for modules and data; none for the standard library and for text without a file.
    pub folder: Option<PathBuf>,
    pub tree: ast::Module,
}

/// The modules of a program, in order of dependence, the one that is run last.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    pub sources: SourceMap,
    pub list: Vec<Source>,
}

impl Modules {
    /// The module that is run.
    pub fn main(&self) -> Option<&Source> {
        self.list.last()
    }

    pub fn named(&self, name: &str) -> Option<&Source> {
        self.list.iter().find(|module| &*module.name == name)
    }
}

/// What is to be run, and what messages call it.
pub struct Main<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
    pub folder: Option<PathBuf>,
}

/// Reads and parses the main text and every module that it needs. All syntax errors of all modules are reported together.
pub fn load(main: Main, loader: &dyn Loader) -> (Modules, Problems) {
    let mut walk = Walk { loader, modules: Modules::default(), open: Vec::new(), problems: Problems::default() };
    if let Some(text) = library::text(library::PRELUDE) {
        walk.module(library::PRELUDE.into(), "library/prelude.gr", text.as_bytes(), None);
    }
    // An import of the file that is run closes a cycle too.
    walk.open.extend(module_name(main.name));
    walk.module("".into(), main.name, main.bytes, main.folder);
    (walk.modules, walk.problems)
}

struct Walk<'a> {
    loader: &'a dyn Loader,
    modules: Modules,
    /// The modules that are being loaded, outermost first: a module in here that is imported again closes a cycle.
    open: Vec<Symbol>,
    problems: Problems,
}

impl Walk<'_> {
    fn module(&mut self, name: Symbol, shown: &str, bytes: &[u8], folder: Option<PathBuf>) {
        let text = String::from_utf8_lossy(bytes);
        let file = self.modules.sources.add(SourceFile::new(shown, &*text));
        let tree = match std::str::from_utf8(bytes) {
            Ok(text) => {
                let parsed = gradus_syntax::parse_module(file, text);
                self.problems.extend(parsed.errors.iter().map(|error| error.diagnostic()));
                parsed.tree
            }
            Err(error) => {
                // Up to the bad byte, the text that is shown has the same bytes as the file.
                let at = error.valid_up_to().min(u32::MAX as usize - 3) as u32;
                self.problems.push(DriverError::NotUtf8 { span: Span::new(file, at, at + 3) }.diagnostic());
                ast::Module { items: Vec::new() }
            }
        };
        if !name.is_empty() {
            self.open.push(name.clone());
        }
        for item in &tree.items {
            if let ast::ItemKind::Import(import) = &item.kind {
                self.import(import, folder.as_deref());
            }
        }
        if !name.is_empty() {
            self.open.pop();
        }
        self.modules.list.push(Source { name, file, folder, tree });
    }

    fn import(&mut self, import: &ast::Ident, folder: Option<&Path>) {
        if let Some(start) = self.open.iter().position(|name| *name == import.name) {
            let cycle = self.open.iter().skip(start).chain([&import.name]).cloned().collect();
            self.problems.push(DriverError::ImportCycle { cycle, span: import.span }.diagnostic());
            return;
        }
        if self.modules.named(&import.name).is_some() {
            return;
        }
        let file_name = file_name(&import.name);
        if let Some(folder) = folder {
            let path = folder.join(&file_name);
            match self.loader.read(&path) {
                Ok(bytes) => {
                    let shown = path.display().to_string();
                    return self.module(import.name.clone(), &shown, &bytes, Some(folder.to_path_buf()));
                }
                Err(LoadError::NotFound) => {}
                Err(LoadError::Other(reason)) => {
                    let error = DriverError::UnreadableModule { name: import.name.clone(), reason, span: import.span };
                    return self.problems.push(error.diagnostic());
                }
            }
        }
        match library::text(&import.name) {
            Some(text) => self.module(import.name.clone(), &format!("library/{file_name}"), text.as_bytes(), None),
            None => {
                let looked_for = folder.map(|folder| folder.join(&file_name).display().to_string());
                let error = DriverError::NoSuchModule { name: import.name.clone(), looked_for, span: import.span };
                self.problems.push(error.diagnostic());
            }
        }
    }
}

/// `Optim` lives in `optim.gr`: the first letter small, as in OCaml.
fn file_name(module: &str) -> String {
    let mut letters = module.chars();
    let first = letters.next().map_or(String::new(), |c| c.to_lowercase().collect());
    format!("{first}{}.gr", letters.as_str())
}

/// The name by which others would import a file.
fn module_name(path: &str) -> Option<Symbol> {
    let stem = Path::new(path).file_name()?.to_str()?.strip_suffix(".gr")?;
    let mut letters = stem.chars();
    let first: String = letters.next()?.to_uppercase().collect();
    Some(format!("{first}{}", letters.as_str()).into())
}
