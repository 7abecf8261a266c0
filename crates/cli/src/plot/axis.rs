//! The numbers along an axis.

/// Round numbers (1, 2 or 5 times a power of ten apart) that lie within the bounds, about `wanted` of them.
pub fn ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let rough = (high / 2.0 - low / 2.0) / wanted.max(1) as f64 * 2.0; // halved, so that it does not overflow
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low, high];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough).unwrap_or(power);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first + 1.0).clamp(0.0, 100.0) as usize;
    (0..count).map(|i| (first + i as f64) * step).collect()
}

/// The text of a tick: as few digits as the distance between ticks needs.
pub fn label(value: f64, ticks: &[f64]) -> String {
    let step = match ticks {
        [a, b, ..] => (b - a).abs(),
        _ => value.abs(),
    };
    let largest = ticks.iter().fold(0.0f64, |m, t| m.max(t.abs()));
    if value == 0.0 || value.abs() < step * 1e-9 {
        return "0".into();
    }
    if largest >= 1e6 || step < 1e-5 {
        let digits = (largest / step).log10().ceil().clamp(0.0, 17.0) as usize;
        let text = format!("{value:.digits$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        return format!("{mantissa}e{exponent}");
    }
    let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, 17.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        let ticks = ticks((low, high), 5);
        ticks.iter().map(|t| label(*t, &ticks)).collect()
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_bounds() {
        assert_eq!(labels(0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(-0.13, 0.41), ["0.0", "0.2", "0.4"].map(|t| if t == "0.0" { "0" } else { t }));
        assert_eq!(labels(0.0, 3e7), ["0", "1e7", "2e7", "3e7"]);
        assert_eq!(labels(1.0, 1.02), ["1.000", "1.005", "1.010", "1.015", "1.020"]);
        assert_eq!(labels(0.0, 3e-9), ["0", "1e-9", "2e-9", "3e-9"]);
    }

    #[test]
    fn extreme_bounds_do_no_harm() {
        assert!(!labels(f64::MIN, f64::MAX).is_empty());
        assert!(!labels(0.0, 5e-324).is_empty());
        assert!(labels(1e16, 1e16 + 2.0).len() < 101);
    }
}
