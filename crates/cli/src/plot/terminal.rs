//! A chart drawn with braille characters: each holds two by four dots.

use super::{axis, bounds, Series};
use std::fmt::Write;

const COLUMNS: usize = 64;
const ROWS: usize = 16;
const DOTS_X: usize = COLUMNS * 2;
const DOTS_Y: usize = ROWS * 4;

/// Terminal colours for the series, in the order of the legend.
const COLOURS: [u8; 6] = [34, 31, 32, 35, 33, 36];

/// Dots set so far, with the series that set each character last.
struct Canvas {
    dots: Vec<u8>,
    owner: Vec<usize>,
}

impl Canvas {
    fn set(&mut self, x: usize, y: usize, series: usize) {
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let cell = (y / 4) * COLUMNS + x / 2;
        if let (Some(dots), Some(owner)) = (self.dots.get_mut(cell), self.owner.get_mut(cell)) {
            *dots |= BITS[x % 2][y % 4];
            *owner = series;
        }
    }

    /// A straight line, a dot in every column or row that it crosses.
    fn line(&mut self, from: (usize, usize), to: (usize, usize), series: usize) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            let between = |a: usize, b: usize| (a as f64 + part * (b as f64 - a as f64)).round() as usize;
            self.set(between(from.0, to.0), between(from.1, to.1), series);
        }
    }
}

pub fn draw(series: &[Series], colour: bool) -> String {
    let (xs, ys) = bounds(series);
    let place = |value: f64, (low, high): (f64, f64), dots: usize| {
        let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        (part * (dots - 1) as f64).round() as usize
    };
    let at = |point: &(f64, f64)| (place(point.0, xs, DOTS_X), DOTS_Y - 1 - place(point.1, ys, DOTS_Y).min(DOTS_Y - 1));
    let mut canvas = Canvas { dots: vec![0; COLUMNS * ROWS], owner: vec![0; COLUMNS * ROWS] };
    for (index, one) in series.iter().enumerate() {
        for stretch in one.stretches() {
            stretch.iter().map(at).for_each(|(x, y)| canvas.set(x, y, index));
            if one.is_line() {
                for pair in stretch.windows(2) {
                    if let [a, b] = pair {
                        canvas.line(at(a), at(b), index);
                    }
                }
            }
        }
    }
    frame(&canvas, series, xs, ys, colour)
}

fn frame(canvas: &Canvas, series: &[Series], xs: (f64, f64), ys: (f64, f64), colour: bool) -> String {
    let paint = |index: usize, text: String| {
        if colour {
            format!("\x1b[{}m{text}\x1b[0m", COLOURS[index % COLOURS.len()])
        } else {
            text
        }
    };
    let y_ticks = axis::ticks(ys, 4);
    let row_of = |tick: f64| ((1.0 - (tick - ys.0) / (ys.1 - ys.0)) * (ROWS - 1) as f64).round() as usize;
    let margin = y_ticks.iter().map(|t| axis::label(*t, &y_ticks).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let legend: Vec<String> = (series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()))
        .map(|(i, s)| paint(i, format!("⣿ {}", s.name.replace(char::is_control, " "))))
        .collect();
    if !legend.is_empty() {
        let _ = writeln!(out, "{:margin$}   {}", "", legend.join("   "));
    }
    for row in 0..ROWS {
        let tick = y_ticks.iter().find(|t| row_of(**t) == row);
        let label = tick.map_or(String::new(), |t| axis::label(*t, &y_ticks));
        let mut line = format!("{label:>margin$} {}", if tick.is_some() { '┤' } else { '│' });
        for column in 0..COLUMNS {
            let cell = row * COLUMNS + column;
            match canvas.dots.get(cell).copied().unwrap_or(0) {
                0 => line.push(' '),
                dots => {
                    let character = char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' ');
                    line.push_str(&paint(canvas.owner.get(cell).copied().unwrap_or(0), character.to_string()));
                }
            }
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    x_axis(xs, margin, &mut out);
    out
}

/// The axis with its numbers, each centred under its tick as far as there is room.
fn x_axis(xs: (f64, f64), margin: usize, out: &mut String) {
    let ticks = axis::ticks(xs, 6);
    let mut rule = vec!['─'; COLUMNS];
    let mut numbers = String::new();
    for tick in &ticks {
        let column = ((tick - xs.0) / (xs.1 - xs.0) * (COLUMNS - 1) as f64).round() as usize;
        let label = axis::label(*tick, &ticks);
        let start = column.saturating_sub(label.len() / 2);
        let used = numbers.chars().count();
        if let Some(mark) = rule.get_mut(column) {
            *mark = '┬';
            if start >= used + usize::from(used > 0) {
                let _ = write!(numbers, "{:1$}{label}", "", start - used);
            }
        }
    }
    let _ = writeln!(out, "{:margin$} └{}", "", rule.iter().collect::<String>());
    let _ = writeln!(out, "{:margin$}  {numbers}", "");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_line_runs_from_corner_to_corner() {
        let line = Series { name: String::new(), points: vec![(0.0, 0.0), (10.0, 10.0)] };
        let text = draw(&[line], false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), ROWS + 2, "{text}");
        assert!(
            lines[0].ends_with('⠉') || lines[0].ends_with('⠊') || lines[0].chars().last() > Some('\u{2800}'),
            "{text}"
        );
        assert!(lines[ROWS - 1].chars().nth(4).is_some_and(|c| c > '\u{2800}'), "{text}");
        assert!(lines[ROWS + 1].starts_with("    0") && lines[ROWS + 1].ends_with("10"), "{text}");
    }

    #[test]
    fn extreme_values_do_no_harm() {
        for points in
            [vec![], vec![(f64::NAN, 1.0)], vec![(f64::MIN, f64::MIN), (f64::MAX, f64::MAX)], vec![(1.0, 1.0)]]
        {
            draw(&[Series { name: "x\u{1b}[31m".into(), points }], true);
        }
    }
}
