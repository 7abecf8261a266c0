//! A random program as Gradus source, for whoever is to find out what is wrong with it.

use gradus_core::check::Unlinked;
use gradus_core::print::{print_program, print_term, Options};
use gradus_generate::Generated;

/// The program, and `show f x` for each of its points: what `gradus run` takes.
pub fn source(generated: &Generated) -> String {
    let context = Unlinked(&generated.program);
    let mut text = print_program(&generated.program, Options::default());
    for point in &generated.points {
        let point = print_term(Some(&context), &point.term(), Options::default());
        text.push_str(&format!("\nshow {} ({point})\n", Generated::FUNCTION));
    }
    text
}
