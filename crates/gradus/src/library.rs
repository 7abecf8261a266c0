//! The standard library, carried inside the binary.

/// Modules by name, in alphabetical order; the text of each is `library/<name>.gr` with a small first letter.
const MODULES: [(&str, &str); 8] = [
    ("Array", include_str!("../../../library/array.gr")),
    ("Linalg", include_str!("../../../library/linalg.gr")),
    ("List", include_str!("../../../library/list.gr")),
    ("Math", include_str!("../../../library/math.gr")),
    ("Optim", include_str!("../../../library/optim.gr")),
    ("Option", include_str!("../../../library/option.gr")),
    ("Prelude", include_str!("../../../library/prelude.gr")),
    ("Random", include_str!("../../../library/random.gr")),
];

/// The module that every other module opens first.
pub const PRELUDE: &str = "Prelude";

pub fn text(module: &str) -> Option<&'static str> {
    MODULES.iter().find(|(name, _)| *name == module).map(|(_, text)| *text)
}

/// Whether a file is a module of the library.
pub fn is_module(file: &gradus_source::SourceFile) -> bool {
    MODULES.iter().any(|(_, text)| *text == &*file.text)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_of_the_library_is_here() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../library");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .expect("the library folder")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_suffix(".gr").map(String::from))
            .collect();
        files.sort();
        let names: Vec<String> = super::names().map(str::to_lowercase).collect();
        assert_eq!(names, files);
    }
}
