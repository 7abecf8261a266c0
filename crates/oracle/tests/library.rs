//! The bulk operations of the standard library are programs; `proofs/Bulk.v` is about their text, which it quotes.

#[test]
fn the_proofs_quote_the_library() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let library = words(include_str!("../../../library/prelude.gr"));
    let quotations = include_str!("../../../proofs/Bulk.v").lines().filter_map(|line| {
        let (_, quoted) = line.split_once("library: ")?;
        Some(words(quoted.trim_end_matches("*)")))
    });
    let quotations: Vec<String> = quotations.collect();
    assert_eq!(quotations.len(), 11);
    for quoted in quotations {
        assert!(library.contains(&quoted), "not in library/prelude.gr: {quoted}");
    }
}
