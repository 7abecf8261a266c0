//! `gradus build FILE FUNC... -o model.c|model.so`

use crate::output::{Done, Failure, Output};
use gradus::Options;
use std::path::Path;

pub fn build(file: &Path, functions: &[String], gradients: bool, to: &Path, options: Options, output: &Output) -> Done {
    let stem = to.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let kind = to.extension().map(|kind| kind.to_string_lossy().into_owned()).unwrap_or_default();
    if kind != "c" && kind != "so" {
        return Err(Failure::Usage("-o must end in .c (a C file) or .so (a shared library)".into()));
    }
    let program = super::load(file, options, output)?;
    let library = program.c_library(&stem, functions, gradients)?;
    let header = to.with_extension("h");
    write(&header, &library.header, output)?;
    if kind == "c" {
        write(to, &library.code, output)
    } else {
        program.compile_c(&library, to)?;
        output.remark(&format!("wrote {}", to.display()));
        Ok(())
    }
}

fn write(path: &Path, text: &str, output: &Output) -> Done {
    std::fs::write(path, text).map_err(|error| Failure::Input(format!("cannot write {}: {error}", path.display())))?;
    output.remark(&format!("wrote {}", path.display()));
    Ok(())
}
