//! `gradus`: the command line. The only place that knows the terminal.

mod arguments;
mod commands;
mod gradbench;
mod graph;
mod interrupt;
mod options;
mod output;
mod plot;

use clap::Parser;
use gradus::Options;
use options::{Cli, Command, Format};
use output::{Done, Failure, Output};
use std::process::ExitCode;

/// A compiler makes and drops many small values: a fifth of the time to a first gradient goes to memory with the system's allocator.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Passes over deep programs grow their stacks as they go, but code of other crates does not.
const STACK: usize = 512 << 20;

/// Our own mistake, as opposed to the user's.
const INTERNAL_ERROR: u8 = 101;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    // The message is printed below, once and without a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || command(cli));
    let result = worker.map(|handle| handle.join());
    match result {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            eprintln!("error: internal error, please report it together with the program: {text}");
            ExitCode::from(INTERNAL_ERROR)
        }
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            ExitCode::from(1)
        }
    }
}

fn command(cli: Cli) -> ExitCode {
    let output = Output::new(cli.global.format);
    interrupt::listen(cli.global.format);
    let done = dispatch(&cli, &output).and_then(|()| output.flush());
    match done {
        Ok(()) | Err(Failure::Pipe) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = output.flush();
            match failure {
                Failure::Program(error) => output.diagnostics(&error),
                Failure::Input(message) => output.complain(&message),
                Failure::Usage(message) => {
                    output.complain(&message);
                    return ExitCode::from(2);
                }
                Failure::Said | Failure::Pipe => {}
            }
            ExitCode::from(if interrupt::happened() { interrupt::STATUS } else { 1 })
        }
    }
}

fn dispatch(cli: &Cli, output: &Output) -> Done {
    let drawing = matches!(output.format, Format::Dot | Format::Svg);
    if drawing && !matches!(cli.command, Command::Trace { .. }) {
        return Err(Failure::Usage("--format dot and --format svg are for `gradus trace`".into()));
    }
    let options = cli.global.options();
    match &cli.command {
        Command::Run { file } => commands::run::run(file, options, output),
        Command::Eval { expression, file } => commands::eval::eval(expression, file.as_deref(), options, output),
        Command::Check { files, rules, types, seed } => {
            commands::check::check(files, *types, rules.then_some(*seed), options, output)
        }
        Command::Call { file, function, args } => commands::call::call(file, function, args, options, output),
        Command::Grad { point, verify, certify, tolerance } => {
            commands::grad::grad(point, verify.then_some(*tolerance), *certify, options, output)
        }
        Command::Jacobian { point } => commands::grad::jacobian(point, options, output),
        Command::Hessian { point } => commands::grad::hessian(point, options, output),
        Command::Transform { file, function, optimise, exact, explain, steps, itself } => {
            let wanted = commands::transform::Wanted {
                optimise: *optimise,
                exact: *exact,
                explain: *explain,
                steps: *steps,
                itself: *itself,
            };
            commands::transform::transform(file, function, wanted, options, output)
        }
        Command::Trace { point } => commands::trace::trace(point, options, output),
        Command::Fmt { files, check, stdin } => commands::fmt::fmt(files, *check, *stdin, output),
        Command::Test { files } => commands::test::test(files, options, output),
        Command::Explain { file, function, wrt, dump } => {
            commands::explain::explain(file, function, *wrt, *dump, options, output)
        }
        Command::Build { file, functions, grad, to } => {
            commands::build::build(file, functions, *grad, to, options, output)
        }
        Command::Bench { point, seconds } => commands::bench::bench(point, *seconds, on_one_thread(options), output),
        Command::Gradbench { dir } => commands::gradbench::serve(dir, on_one_thread(options)),
        Command::Repl { file } => commands::repl::repl(file.as_deref(), options, output),
    }
}

/// What is measured is what one thread takes, unless more are asked for.
fn on_one_thread(options: Options) -> Options {
    Options { threads: options.threads.or(Some(1)), ..options }
}
