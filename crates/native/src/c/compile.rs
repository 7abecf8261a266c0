//! Runs the machine's C compiler, keeps its results by content, and loads them.

use super::emit::{emit, Source};
use crate::cores::Plan;
use crate::flow::{FunctionId, Module};
use crate::run::Code;
use gradus_runtime::pool::{self, Runner};
use gradus_runtime::slot::{Entry, Release, SetLimits};
use gradus_source::Diagnostic;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to compile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The C compiler; `CC` from the environment, or `cc`.
    pub compiler: String,
    pub flags: Vec<String>,
    /// Where shared libraries are kept, by the hash of what they are made from.
    pub cache: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        let flags =
            "-O3 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off -fopenmp-simd -fPIC -shared -w";
        let home = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
            .unwrap_or_else(std::env::temp_dir);
        Options {
            compiler: std::env::var("CC").unwrap_or_else(|_| "cc".into()),
            flags: flags.split(' ').map(String::from).collect(),
            cache: home.join("gradus").join("c"),
        }
    }
}

#[derive(Debug)]
pub enum CompileError {
    /// No C compiler could be started.
    NoCompiler { compiler: String, reason: String },
    /// The compiler refused what we wrote.
    Refused { compiler: String, output: String },
    /// The cache could not be written.
    Cache { path: PathBuf, reason: String },
    /// The result could not be loaded.
    Load { reason: String },
}

impl CompileError {
    /// What a user is told.
    pub fn diagnostic(&self) -> Diagnostic {
        let alternative = "`--backend native` needs no C compiler";
        match self {
            CompileError::NoCompiler { compiler, reason } => {
                Diagnostic::error("E0802", format!("the C compiler `{compiler}` cannot be started: {reason}"))
                    .help(format!("install one, or name it in the environment variable CC; {alternative}"))
            }
            CompileError::Refused { compiler, output } => {
                Diagnostic::error("E0803", format!("the C compiler `{compiler}` refused the compiled program"))
                    .note(output.clone())
                    .help(alternative)
            }
            CompileError::Cache { path, reason } => {
                Diagnostic::error("E0804", format!("`{}` cannot be written: {reason}", path.display()))
                    .help("compiled programs are kept in XDG_CACHE_HOME, or in .cache of the home folder")
            }
            CompileError::Load { reason } => {
                Diagnostic::error("E0805", format!("the compiled program cannot be loaded: {reason}")).help(alternative)
            }
        }
    }
}

/// FNV-1a on 128 bits: not against attackers, who could write to the cache anyway.
fn hash(texts: &[&str]) -> String {
    let mut hash: u128 = 0x6c62272e07bb014262b821756295c58d;
    for byte in texts.iter().flat_map(|t| t.bytes().chain([0])) {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000000001000000000000000000013b);
    }
    let mut text = String::new();
    let _ = write!(text, "{hash:032x}");
    text
}

/// Compiles and loads a module, or loads it from the cache; `entries` are the functions to be called from outside.
pub fn compile(module: &Module, entries: &[FunctionId], plan: &Plan, options: &Options) -> Result<Code, CompileError> {
    let names: Vec<String> = (0..entries.len()).map(|i| format!("gradus_entry_{i}")).collect();
    let pairs: Vec<_> = entries.iter().copied().zip(names.iter().cloned()).collect();
    let source = emit(module, &pairs, plan);
    let flags = options.flags.join(" ");
    let key = hash(&[&source.code, &options.compiler, &flags, &cpu()]);
    let library = options.cache.join(format!("{key}.so"));
    if !library.exists() {
        build(&source, &key, &library, options)?;
    }
    load(source, &names, &library)
}

/// What `-march=native` depends on.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().find(|l| l.starts_with("flags")).unwrap_or_default().to_string()
}

fn build(source: &Source, key: &str, library: &PathBuf, options: &Options) -> Result<(), CompileError> {
    let cache_error =
        |path: &PathBuf, e: std::io::Error| CompileError::Cache { path: path.clone(), reason: e.to_string() };
    std::fs::create_dir_all(&options.cache).map_err(|e| cache_error(&options.cache, e))?;
    // Under names of our own first, so that two processes that build the same do not see each other's half-written files.
    let own = options.cache.join(format!("{key}.{}.{:?}", std::process::id(), std::thread::current().id()));
    let (c, so) = (own.with_extension("c"), own.with_extension("so"));
    std::fs::write(&c, &source.code).map_err(|e| cache_error(&c, e))?;
    let compiled = run_compiler(&c, &so, options);
    let keep = std::env::var_os("GRADUS_KEEP_C").is_some();
    if keep {
        let _ = std::fs::rename(&c, options.cache.join(format!("{key}.c")));
    } else {
        let _ = std::fs::remove_file(&c);
    }
    compiled?;
    std::fs::rename(&so, library).map_err(|e| cache_error(library, e))
}

/// Compiles C code to a shared library of the caller's choice.
pub fn library(code: &str, to: &Path, options: &Options) -> Result<(), CompileError> {
    let c = std::env::temp_dir().join(format!("gradus-{}.c", std::process::id()));
    std::fs::write(&c, code).map_err(|e| CompileError::Cache { path: c.clone(), reason: e.to_string() })?;
    let compiled = run_compiler(&c, to, options);
    let _ = std::fs::remove_file(&c);
    compiled
}

fn run_compiler(c: &Path, so: &Path, options: &Options) -> Result<(), CompileError> {
    let run = |libraries: &[&str]| {
        Command::new(&options.compiler).args(&options.flags).arg(c).arg("-o").arg(so).args(libraries).output()
    };
    let output = match run(&["-lmvec", "-lm"]) {
        // Not every system has vector mathematics.
        Ok(output) if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("mvec") => {
            run(&["-lm"])
        }
        other => other,
    };
    let output =
        output.map_err(|e| CompileError::NoCompiler { compiler: options.compiler.clone(), reason: e.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    Err(CompileError::Refused {
        compiler: options.compiler.clone(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn load(source: Source, entries: &[String], path: &PathBuf) -> Result<Code, CompileError> {
    let failed = |e: libloading::Error| CompileError::Load { reason: e.to_string() };
    // The library is one that we wrote: its initialisers do nothing, and its symbols have the types of the calling convention.
    unsafe {
        let library = libloading::Library::new(path).map_err(failed)?;
        let mut functions = Vec::new();
        for name in entries {
            functions.push(*library.get::<Entry>(name.as_bytes()).map_err(failed)?);
        }
        let release = *library.get::<Release>(b"gradus_release").map_err(failed)?;
        let set_limits = *library.get::<SetLimits>(b"gradus_set_limits").map_err(failed)?;
        let set_runner = *library.get::<unsafe extern "C" fn(Option<Runner>)>(b"gradus_set_runner").map_err(failed)?;
        set_runner(Some(pool::run));
        Ok(Code { entries: functions, release, set_limits, places: source.places.into(), _owner: Box::new(library) })
    }
}
