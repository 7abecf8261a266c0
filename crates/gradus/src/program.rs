//! A loaded program: typed, and ready to be asked for functions, values and derivatives.

use crate::data::{self, DataError, Format};
use crate::error::DriverError;
use crate::function::Function;
use crate::loader::{FsLoader, LoadError, Loader};
use crate::modules::{Main, Modules};
use crate::options::Options;
use crate::pipeline;
use crate::place::Misfit;
use crate::schema::Schema;
use crate::sizes;
use crate::{Error, Value};
use gradus_core::{Body, Def, Scheme, Symbol, Type};
use gradus_infer::{Inferred, Signature, Sized};
use gradus_source::{Diagnostic, SourceMap, Span};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A program that has been read, parsed and typed. Cheap to clone, and free to be shared between threads.
///
/// ```
/// # fn main() -> Result<(), gradus::Error> {
/// let program = gradus::Program::from_source("square.gr", "let square_of x = x ^ 2 + 0.0")?;
/// let square_of = program.function("square_of")?;
/// assert_eq!(square_of.type_text(), "real -> real");
/// assert_eq!(square_of.call(&[3.0.into()])?, gradus::Value::Real(9.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
    options: Options,
}

#[derive(Clone)]
struct Inner {
    modules: Arc<Modules>,
    inferred: Arc<Inferred>,
    /// All texts, those of expressions that were added later included.
    sources: SourceMap,
    /// What was inferred, with the definitions that were added later.
    core: Arc<gradus_core::Program>,
    warnings: Vec<Diagnostic>,
    loader: Arc<dyn Loader + Send + Sync>,
    data: Arc<OnceLock<Result<DataValues, Error>>>,
}

/// The `data` of a program: name, type, value.
pub type DataValues = Arc<Vec<(Symbol, Type, Value)>>;

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name =
            self.inner.modules.main().and_then(|main| self.inner.sources.file(main.file)).map(|file| &*file.name);
        f.debug_struct("Program").field("name", &name).field("options", &self.options).finish_non_exhaustive()
    }
}

/// A program with one more definition.
pub struct Added {
    pub program: Program,
    /// The name of the definition.
    pub name: Symbol,
    pub ty: Type,
    /// The type as a user writes it, with sizes and with what is open.
    pub shown: String,
}

impl Added {
    /// Whether the type leaves something open.
    pub fn is_open(&self) -> bool {
        self.shown.contains('\'')
    }

    /// The new definition as a function, called `shown` in messages.
    pub fn function(&self, shown: &str) -> Function {
        Function::new(self.program.clone(), shown.into(), self.name.clone(), &self.ty)
    }
}

impl Program {
    /// A program from its text. `name` is what messages call it. It may import the standard library; files are looked for beside
    /// the name.
    pub fn from_source(name: &str, text: &str) -> Result<Program, Error> {
        Program::load(name, text.as_bytes(), FsLoader)
    }

    /// A program from a file, with the modules and data beside it.
    ///
    /// ```no_run
    /// let program = gradus::Program::from_file("examples/descent.gr")?;
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Program, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match FsLoader.read(path) {
            Ok(bytes) => Program::load(&name, &bytes, FsLoader),
            Err(error) => {
                let reason = error.to_string();
                let problem = DriverError::UnreadableProgram { path: name, reason };
                Err(Error::new(vec![problem.diagnostic()], &SourceMap::default()))
            }
        }
    }

    /// A program from bytes, with modules and data from a loader.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// use gradus::{MemoryLoader, Program};
    /// let files = MemoryLoader::new().with("units.gr", "let feet m = m / 0.3048");
    /// let program = Program::load("main.gr", b"import Units  let f x = Units.feet x", files)?;
    /// assert_eq!(program.function("f")?.type_text(), "real -> real");
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(name: &str, bytes: &[u8], loader: impl Loader + Send + Sync + 'static) -> Result<Program, Error> {
        let folder = Path::new(name).parent().map(Path::to_path_buf);
        let typed = pipeline::front(Main { name, bytes, folder }, &loader)?;
        let inner = Inner {
            sources: typed.modules.sources.clone(),
            core: Arc::new(typed.inferred.program.clone()),
            modules: Arc::new(typed.modules),
            inferred: Arc::new(typed.inferred),
            warnings: typed.warnings,
            loader: Arc::new(loader),
            data: Arc::default(),
        };
        Ok(Program { inner: Arc::new(inner), options: Options::default() })
    }

    /// The same program with other settings.
    pub fn with_options(mut self, options: Options) -> Program {
        self.options = options;
        self
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What the compiler had to say about a program that is right nevertheless; empty diagnostics if nothing.
    pub fn warnings(&self) -> Error {
        self.errors(self.inner.warnings.clone())
    }

    pub fn core(&self) -> &Arc<gradus_core::Program> {
        &self.inner.core
    }

    pub fn sources(&self) -> &SourceMap {
        &self.inner.sources
    }

    /// The folder of the file that is run.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.inner.modules.main().and_then(|main| main.folder.clone())
    }

    pub(crate) fn definition_span(&self, name: &Symbol) -> Span {
        self.inner.core.defs.get(name).map_or(Span::default(), |def| def.span)
    }

    /// The declared types, for conversions.
    pub fn schema(&self) -> Schema<'_> {
        Schema::new(&self.inner.core.types)
    }

    /// The definitions of the file itself with their types, in order.
    pub fn definitions(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.inner.inferred.own_definitions().map(|name| {
            let shown = self.inner.inferred.signature(&name).map_or_else(String::new, |signature| signature.shown);
            (name.to_string(), shown)
        })
    }

    /// A function of the program, by name.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        match self.inner.inferred.signature(name).filter(|signature| signature.scheme.vars.is_empty()) {
            Some(Signature { name: definition, scheme, .. }) => {
                Ok(Function::new(self.clone(), name.into(), definition, &scheme.ty))
            }
            None => self.expression("<function>", name),
        }
    }

    /// An expression in the scope of the whole program, as a function (without parameters, if it is none). `shown` is what
    /// messages call the place of its text.
    pub fn expression(&self, shown: &str, text: &str) -> Result<Function, Error> {
        let added = self.with_expression(shown, text, None)?;
        if added.is_open() && matches!(added.ty, Type::Fun(_)) {
            return Err(self.error(DriverError::Polymorphic { name: text.into(), ty: added.shown }));
        }
        Ok(added.function(text))
    }

    /// The type of a definition, primitive or derivative form by name, as a user writes it, with sizes.
    pub fn signature(&self, name: &str) -> Option<String> {
        let defined = self.inner.inferred.signature(name).map(|signature| signature.shown);
        defined.or_else(|| self.inner.inferred.builtin(name))
    }

    /// The type of an expression, which may have variables.
    pub fn type_of(&self, shown: &str, text: &str) -> Result<String, Error> {
        Ok(self.with_expression(shown, text, None)?.shown)
    }

    /// The program with one more definition: of an expression in the scope of the whole file, perhaps at a type that is wanted.
    pub fn with_expression(&self, shown: &str, text: &str, expected: Option<Type>) -> Result<Added, Error> {
        let mut inner = (*self.inner).clone();
        let made = pipeline::expression(&self.inner.inferred, &mut inner.sources, shown, text, expected)?;
        // No program can write a name with `#`.
        let name: Symbol = format!("it#{}", inner.sources.files().count()).into();
        let program = Program { inner: Arc::new(inner), options: self.options.clone() };
        let program = program.with_definition(name.clone(), made.ty.clone(), made.term);
        Ok(Added { program, name, ty: made.ty, shown: made.shown })
    }

    /// The program with one more definition in core form.
    pub(crate) fn with_definition(&self, name: Symbol, ty: Type, term: gradus_core::Term) -> Program {
        let mut core = (*self.inner.core).clone();
        let span = term.span;
        let def = Def {
            name: name.clone(),
            module: "".into(),
            scheme: Scheme::mono(ty),
            body: Body::Term(term),
            rules: Default::default(),
            span,
        };
        core.defs.insert(name, def);
        let inner = Inner { core: Arc::new(core), ..(*self.inner).clone() };
        Program { inner: Arc::new(inner), options: self.options.clone() }
    }

    /// The values of the program's `data`, read when they are needed first.
    pub(crate) fn data(&self) -> Result<DataValues, Error> {
        self.inner.data.get_or_init(|| self.load_data()).clone()
    }

    fn load_data(&self) -> Result<DataValues, Error> {
        let schema = self.schema();
        let mut values = Vec::new();
        let mut problems = Vec::new();
        for def in self.inner.core.defs.values() {
            let Body::Data { file, span } = &def.body else { continue };
            match self.load_file(def, file, &schema) {
                Ok(value) => values.push((def.name.clone(), def.scheme.ty.clone(), value)),
                Err(error) => {
                    problems.push(DriverError::Data { file: file.to_string(), error, span: *span }.diagnostic())
                }
            }
        }
        if problems.is_empty() {
            Ok(Arc::new(values))
        } else {
            Err(self.errors(problems))
        }
    }

    fn load_file(&self, def: &Def, file: &str, schema: &Schema) -> Result<Value, DataError> {
        let format = Format::of(file).ok_or(DataError::UnknownFormat)?;
        let module = self.inner.modules.named(&def.module);
        let folder = module.and_then(|module| module.folder.clone()).unwrap_or_default();
        let bytes = self.inner.loader.read(&folder.join(file));
        let bytes = bytes.map_err(|error: LoadError| DataError::Unreadable(error.to_string()))?;
        let value = data::read(format, &bytes, &def.scheme.ty, schema)?;
        sizes::check_data(&value, &def.name, &self.inner.inferred).map_err(DataError::Misfit)?;
        Ok(value)
    }

    /// The type of a definition with the lengths that it promises.
    pub(crate) fn sized(&self, definition: &str) -> Sized {
        self.inner.inferred.sized(definition).unwrap_or(Sized::Plain)
    }

    /// Whether the arrays of a value from outside are as long as the type of its parameter says.
    pub(crate) fn check_lengths(&self, value: &Value, param: &Sized) -> Result<(), Misfit> {
        sizes::check_argument(value, param, &self.inner.inferred)
    }

    pub(crate) fn error(&self, error: DriverError) -> Error {
        self.errors(vec![error.diagnostic()])
    }

    pub(crate) fn errors(&self, diagnostics: Vec<Diagnostic>) -> Error {
        Error::new(diagnostics, self.sources())
    }
}
