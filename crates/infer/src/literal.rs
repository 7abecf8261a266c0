//! Numerals: from their text to numbers.

/// A real numeral. The parser has seen that it is one.
pub fn real(text: &str) -> f64 {
    text.replace('_', "").parse().unwrap_or(f64::NAN)
}

/// An integer numeral, perhaps with a minus sign; `None` if it does not fit into 64 bits.
pub fn int(text: &str, negative: bool) -> Option<i64> {
    let digits = text.replace('_', "");
    let signed = if negative { format!("-{digits}") } else { digits };
    signed.parse().ok()
}
