//! `gradus fmt [FILE]... [--check] [--stdin]`

use crate::output::{Done, Failure, Output};
use gradus::{FsLoader, Loader};
use std::io::Read;
use std::path::PathBuf;

pub fn fmt(files: &[PathBuf], check: bool, stdin: bool, output: &Output) -> Done {
    if stdin {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(|error| Failure::Input(format!("standard input: {error}")))?;
        let formatted = gradus::format("<stdin>", &bytes)?;
        if check && formatted.as_bytes() != bytes {
            output.complain("standard input is not formatted");
            return Err(Failure::Said);
        }
        return if check { Ok(()) } else { output.text(formatted) };
    }
    if files.is_empty() {
        return Err(Failure::Usage("name the files to format, or use --stdin".into()));
    }
    let mut failed = false;
    for file in files {
        let name = file.display().to_string();
        let bytes = match FsLoader.read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                output.complain(&format!("cannot read {name}: {error}"));
                failed = true;
                continue;
            }
        };
        match gradus::format(&name, &bytes) {
            Err(error) => {
                output.diagnostics(&error);
                failed = true;
            }
            Ok(formatted) if formatted.as_bytes() == bytes => {}
            Ok(_) if check => {
                output.line(format!("{name} is not formatted"))?;
                failed = true;
            }
            Ok(formatted) => {
                std::fs::write(file, formatted).map_err(|e| Failure::Input(format!("cannot write {name}: {e}")))?;
                output.line(format!("formatted {name}"))?;
            }
        }
    }
    if failed {
        Err(Failure::Said)
    } else {
        Ok(())
    }
}
