//! flow that is written as text, as a function to call.

#![allow(dead_code)] // Those who use it use parts of it.

use gradus_native::flow::{check, print, read, FunctionId};
use gradus_native::{Backend, Executable};

/// Its first function.
pub fn compile(text: &str, backend: Backend) -> Executable {
    let module = read::module(text).expect("reads");
    check::module(&module).expect("is well formed");
    Executable::new(&module, &[FunctionId(0)], &backend.into()).expect("compiles")
}

/// Simplified, and still well formed.
pub fn simplified(text: &str) -> String {
    let mut module = read::module(text).expect("reads");
    gradus_native::simplify::module(&mut module);
    check::module(&module).expect("is well formed");
    print::module(&module)
}
