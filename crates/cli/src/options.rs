//! The command line: commands, options and their help.

use crate::interrupt;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gradus::{Backend, Domain, Kinks, Mode, Options};
use std::path::PathBuf;

/// A differentiable ML: derivatives are ordinary functions.
#[derive(Debug, Parser)]
#[command(
    name = "gradus",
    version,
    term_width = 100,
    after_help = "Try:\n  gradus eval 'grad (fun x -> x ^ 3) 2.0'\n  gradus run examples/descent.gr\n  \
                  gradus grad examples/descent.gr loss --at '{\"slope\": 1, \"offset\": 0}' --verify\n\n\
                  Exit status: 0 fine, 1 the program is wrong or a check failed, 2 the command line is wrong."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub global: Global,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program: every `show`, `check` and `plot`, in order
    Run {
        /// The program
        file: PathBuf,
    },
    /// Evaluate one expression
    #[command(after_help = "Example: gradus eval 'grad loss { slope = 1.0; offset = 0.0 }' --in examples/descent.gr")]
    Eval {
        /// A Gradus expression
        expression: String,
        /// The program whose definitions it may use
        #[arg(long = "in", value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Check a program without running it
    Check {
        /// Programs
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Also test each custom derivative rule against finite differences, at random points
        #[arg(long)]
        rules: bool,
        /// Print the type of every definition
        #[arg(long)]
        types: bool,
        /// Where the random points of --rules begin
        #[arg(long, default_value_t = 0, value_name = "N")]
        seed: u64,
    },
    /// Apply a function and print the result as JSON
    #[command(
        after_help = "Example: gradus call examples/descent.gr predict --arg '{\"slope\": 2, \"offset\": 1}' --arg 3"
    )]
    Call {
        /// The program
        file: PathBuf,
        /// A function of the program, or an expression in parentheses
        function: String,
        /// An argument, once for each parameter: JSON, @FILE (JSON or NPY), or =EXPR
        #[arg(long = "arg", value_name = "VALUE", allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Value and gradient of a function at a point, as JSON
    #[command(
        after_help = "Example: gradus grad examples/descent.gr loss --at '{\"slope\": 1, \"offset\": 0}' --verify"
    )]
    Grad {
        #[command(flatten)]
        point: Point,
        /// Compare with finite differences; fail if they differ
        #[arg(long)]
        verify: bool,
        /// Say whether a theorem covers the gradient at this point; fail if none does
        #[arg(long)]
        certify: bool,
        /// The largest relative difference that --verify lets pass
        #[arg(long, default_value_t = 1e-5, value_name = "X")]
        tolerance: f64,
    },
    /// The Jacobian matrix of a function at a point: a row for each real of the output
    Jacobian {
        #[command(flatten)]
        point: Point,
    },
    /// The Hessian matrix of a function at a point
    Hessian {
        #[command(flatten)]
        point: Point,
    },
    /// Print the differentiated program as Gradus source
    #[command(after_help = "Example: gradus transform examples/descent.gr loss --ad monadic -O")]
    Transform {
        /// The program
        file: PathBuf,
        /// The function to differentiate
        function: String,
        /// Optimise the result, by all rules of docs/optimiser.md. Values can differ in rounding, in NaN and in the sign of zero, and a function of
        /// one to four reals is differentiated in forward mode unless --ad says otherwise
        #[arg(short = 'O', long = "optimise")]
        optimise: bool,
        /// With -O: only rules that change no bit of any result, as when programs are run
        #[arg(long, requires = "optimise")]
        exact: bool,
        /// With -O: also show how each definition came out, rule by rule
        #[arg(long, requires = "optimise")]
        explain: bool,
        /// With --ad combinator: each step of the way, from the function over its combinators and their reverse to the code
        #[arg(long)]
        steps: bool,
        /// The function itself, with the derivatives that it takes carried out, instead of its derivative
        #[arg(long, conflicts_with = "steps")]
        itself: bool,
    },
    /// The Delta program of one execution: what reverse mode writes down before it runs backwards
    #[command(
        after_help = "With --ad trace: the trace term of the execution, one operation on reals for each line, and its symbolic derivative.\n\
                            Besides text and json, --format takes dot and svg here."
    )]
    Trace {
        #[command(flatten)]
        point: Point,
    },
    /// Format source files in place
    Fmt {
        /// Source files
        files: Vec<PathBuf>,
        /// Change nothing; fail if a file is not formatted
        #[arg(long)]
        check: bool,
        /// Read from standard input and write to standard output
        #[arg(long, conflicts_with = "files")]
        stdin: bool,
    },
    /// Run the `check`s of programs and say which failed
    Test {
        /// Files, or folders to look for `.gr` files in (the present folder by default)
        files: Vec<PathBuf>,
    },
    /// Say what the compiler makes of a function and its gradient, place by place, to see why it is slow
    #[command(after_help = "Example: gradus explain examples/descent.gr loss\n\n\
                            For the gradient: which loops run there, again and back, what is saved of each iteration, what is left on the\n\
                            heap, which functions are only known when the program runs. docs/native.md says what the lines mean.")]
    Explain {
        /// The program
        file: PathBuf,
        /// A function of the program, or an expression in parentheses
        function: String,
        /// The parameter to differentiate by, counted from 0
        #[arg(long, default_value_t = 0, value_name = "I")]
        wrt: usize,
        /// Show the program after a pass of the compiler instead
        #[arg(long, value_name = "PASS")]
        dump: Option<Pass>,
    },
    /// Write functions of a program as C, or compile them to a shared library
    #[command(after_help = "Example: gradus build examples/descent.gr predict --grad -o model.so\n\n\
                            The header model.h beside it declares `model_predict` and says what goes into which slot.")]
    Build {
        /// The program
        file: PathBuf,
        /// Functions of the program
        #[arg(required = true)]
        functions: Vec<String>,
        /// Also value and gradient by the first parameter, as NAME_grad
        #[arg(long)]
        grad: bool,
        /// The C file (.c) or shared library (.so); the header gets the same name with .h
        #[arg(short = 'o', long = "output", value_name = "PATH", required = true)]
        to: PathBuf,
    },
    /// Measure a function and its gradient at a point
    #[command(
        after_help = "Times are those of the fastest run, in nanoseconds. `first_result_ms` goes from the source text to the first gradient, \
                            `peak_bytes` is the memory that a gradient needs beyond what was in use before, `backend` is what ran."
    )]
    Bench {
        #[command(flatten)]
        point: Point,
        /// How long to measure the function, and its gradient
        #[arg(long, default_value_t = 0.5, value_name = "S")]
        seconds: f64,
    },
    /// Serve the GradBench protocol on standard input and output, for a folder of modules
    #[command(
        after_help = "Each message is one line of JSON, and so is each answer. A `define` of module M loads M.gr from the \
                            folder; an `evaluate` of function F calls its definition F with the input, a record."
    )]
    Gradbench {
        /// The folder of the modules
        #[arg(long, default_value = "examples/gradbench", value_name = "DIR")]
        dir: PathBuf,
    },
    /// Read, evaluate and print, line by line
    Repl {
        /// A program whose definitions to start with
        file: Option<PathBuf>,
    },
}

/// A function and where to look at it.
#[derive(Debug, Args)]
pub struct Point {
    /// The program
    pub file: PathBuf,
    /// A function of the program, or an expression in parentheses
    pub function: String,
    /// The point, once for each parameter: JSON, @FILE (JSON or NPY), or =EXPR
    #[arg(long, value_name = "VALUE", required = true, allow_hyphen_values = true)]
    pub at: Vec<String>,
    /// The parameter to differentiate by, counted from 0
    #[arg(long, default_value_t = 0, value_name = "I")]
    pub wrt: usize,
}

/// A pass of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pass {
    /// Names and types resolved
    Core,
    /// First-order code as it comes out of core
    Lowered,
    /// The same, simplified
    Flow,
    /// Value and gradient, as they come out of differentiation
    Derivative,
    /// The same, simplified
    DerivativeFlow,
    /// Value and gradient in the language of Cranelift
    Cranelift,
    /// Value and gradient in C
    C,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    /// Drawings of `trace` only.
    #[value(hide = true)]
    Dot,
    #[value(hide = true)]
    Svg,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options for every command")]
pub struct Global {
    /// What runs the program: compiled code, and the evaluator where that does not do (auto), or one of native, c, reference alone
    #[arg(long, global = true, value_parser = ["auto", "native", "c", "reference"], hide_possible_values = true, default_value = "auto", value_name = "NAME")]
    pub backend: String,
    /// The differentiation mode: forward, vector, continuation, delta, monadic, combinator, trace, tower
    #[arg(long, global = true, value_parser = mode, value_name = "MODE")]
    pub ad: Option<Mode>,
    /// When a derivative is taken where there is none: ignore it, warn at the end, or stop
    #[arg(long, global = true, value_parser = ["ignore", "warn", "error"], default_value = "ignore", value_name = "WHAT")]
    pub kinks: String,
    /// Outside its domain an operation gives NaN or infinity, or stops the program
    #[arg(long, global = true, value_parser = ["ieee", "error"], default_value = "ieee", value_name = "WHAT")]
    pub domain: String,
    /// Stop a program that needs more memory: 500M, 2G
    #[arg(long, global = true, value_parser = size, default_value = "8G", value_name = "SIZE")]
    pub max_memory: u64,
    /// Stop a program after so many steps
    #[arg(long, global = true, value_parser = count, value_name = "N")]
    pub max_steps: Option<u64>,
    /// On how many threads compiled loops run [default: all cores; 1 for bench and gradbench]
    #[arg(long, global = true, value_parser = threads, value_name = "N")]
    pub threads: Option<usize>,
    /// How results and errors are written
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
}

impl Global {
    pub fn options(&self) -> Options {
        Options {
            backend: match self.backend.as_str() {
                "native" => Backend::Native,
                "c" => Backend::C,
                "reference" => Backend::Reference,
                _ => Backend::Auto,
            },
            mode: self.ad,
            kinks: match self.kinks.as_str() {
                "warn" => Kinks::Warn,
                "error" => Kinks::Error,
                _ => Kinks::Ignore,
            },
            domain: if self.domain == "error" { Domain::Error } else { Domain::Ieee },
            max_memory: Some(self.max_memory),
            max_steps: self.max_steps,
            threads: self.threads,
            optimise: false,
            reassociate: false,
            interrupt: Some(interrupt::flag()),
        }
    }
}

fn mode(key: &str) -> Result<Mode, String> {
    Mode::from_key(key).ok_or_else(|| {
        let keys = Mode::ALL.map(Mode::key).join(", ");
        format!("the modes are {keys}")
    })
}

/// `500M`, `2G`, `1000000`
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1u64 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        Some((at, 't' | 'T')) => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    let number: f64 = digits.parse().map_err(|_| "write a size as 500M or 2G".to_string())?;
    if number.is_finite() && number > 0.0 {
        Ok((number * unit as f64) as u64)
    } else {
        Err("a size must be more than nothing".into())
    }
}

fn threads(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "write a number of threads as 1 or 8".into())
}

/// `1000000`, `1e6`, `1_000_000`
fn count(text: &str) -> Result<u64, String> {
    let text = text.replace('_', "");
    let exact = text.parse().ok();
    let rounded = || text.parse::<f64>().ok().filter(|n| *n >= 1.0 && *n < 1e18 && n.fract() == 0.0).map(|n| n as u64);
    exact.or_else(rounded).ok_or_else(|| "write a number of steps as 1000000 or 1e6".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size("2G"), Ok(2 << 30));
        assert_eq!(size("1.5KiB"), Ok(1536));
        assert_eq!(size("77"), Ok(77));
        assert!(size("G").is_err() && size("-1M").is_err() && size("lots").is_err());
        assert_eq!(count("1e6"), Ok(1_000_000));
        assert_eq!(count("2_000"), Ok(2000));
        assert!(count("0.5").is_err() && count("-3").is_err());
    }
}
