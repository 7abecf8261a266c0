//! flow that is written as text, as a function to call.

use gradus_native::flow::{check, read, FunctionId};
use gradus_native::{Backend, Executable};

/// Its first function.
pub fn compile(text: &str, backend: Backend) -> Executable {
    let module = read::module(text).expect("reads");
    check::module(&module).expect("is well formed");
    Executable::new(&module, &[FunctionId(0)], &backend.into()).expect("compiles")
}
