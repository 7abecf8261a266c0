//! A chart as an SVG file: axes with ticks, light grid lines, series in colours, a legend.

use super::{axis, bounds, Series};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 46.0;
/// Points are marked as long as the marks do not run into each other.
const MOST_MARKS: usize = 60;

/// Colours that people with any colour vision can tell apart (Okabe and Ito), the darker ones first.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];

/// Where a value lies on the paper.
struct Scale {
    values: (f64, f64),
    paper: (f64, f64),
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        // Halved, so that the widest bounds do not overflow.
        let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        self.paper.0 + part * (self.paper.1 - self.paper.0)
    }
}

pub fn draw(series: &[Series]) -> String {
    let legend: Vec<&Series> = series.iter().filter(|s| !s.name.is_empty()).collect();
    let legend_height = if legend.is_empty() { 0.0 } else { 22.0 };
    let (xs, ys) = bounds(series);
    let room = |(low, high): (f64, f64)| {
        let margin = (high / 2.0 - low / 2.0) * 0.06;
        ((low - margin).max(f64::MIN), (high + margin).min(f64::MAX))
    };
    let x = Scale { values: room(xs), paper: (LEFT, WIDTH - RIGHT) };
    let y = Scale { values: room(ys), paper: (HEIGHT - BOTTOM, TOP + legend_height) };
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    axes(&x, &y, &mut svg);
    for (index, one) in series.iter().enumerate() {
        draw_series(one, colour(index), &x, &y, &mut svg);
    }
    draw_legend(series, &mut svg);
    svg.push_str("</svg>\n");
    svg
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn axes(x: &Scale, y: &Scale, svg: &mut String) {
    let (left, right) = x.paper;
    let (bottom, top) = y.paper;
    svg.push_str("<g stroke=\"#e4e4e4\" fill=\"none\">\n");
    let x_ticks = axis::ticks(x.values, 8);
    let y_ticks = axis::ticks(y.values, 6);
    for tick in x_ticks.iter().map(|t| x.at(*t)) {
        let _ = writeln!(svg, "<path d=\"M{tick:.1} {top:.1}V{bottom:.1}\"/>");
    }
    for tick in y_ticks.iter().map(|t| y.at(*t)) {
        let _ = writeln!(svg, "<path d=\"M{left:.1} {tick:.1}H{right:.1}\"/>");
    }
    let _ =
        writeln!(svg, "</g>\n<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" stroke=\"#555\" fill=\"none\"/>");
    svg.push_str("<g fill=\"#333\">\n");
    for tick in &x_ticks {
        let text = axis::label(*tick, &x_ticks).replace('-', "\u{2212}");
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            x.at(*tick),
            bottom + 20.0
        );
    }
    for tick in &y_ticks {
        let text = axis::label(*tick, &y_ticks).replace('-', "\u{2212}");
        let (x, y) = (left - 8.0, y.at(*tick) + 4.5);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>");
    }
    svg.push_str("</g>\n");
}

fn draw_series(series: &Series, colour: &str, x: &Scale, y: &Scale, svg: &mut String) {
    let is_line = series.is_line();
    for stretch in series.stretches() {
        if is_line && stretch.len() > 1 {
            let _ = write!(
                svg,
                "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\""
            );
            for (i, point) in stretch.iter().enumerate() {
                let letter = if i == 0 { 'M' } else { 'L' };
                let _ = write!(svg, "{letter}{:.2} {:.2}", x.at(point.0), y.at(point.1));
            }
            svg.push_str("\"/>\n");
        }
        if !is_line || series.points.len() <= MOST_MARKS || stretch.len() == 1 {
            for point in stretch {
                let (cx, cy) = (x.at(point.0), y.at(point.1));
                let _ = writeln!(svg, "<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"3\" fill=\"{colour}\"/>");
            }
        }
    }
}

fn draw_legend(series: &[Series], svg: &mut String) {
    let mut x = LEFT;
    for (index, one) in series.iter().enumerate().filter(|(_, s)| !s.name.is_empty()) {
        let (colour, name) = (colour(index), escaped(&one.name));
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"15\" width=\"14\" height=\"10\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"24.5\" fill=\"#333\">{name}</text>",
            x + 19.0
        );
        x += 19.0 + 7.5 * one.name.chars().count() as f64 + 18.0;
    }
}

fn escaped(text: &str) -> String {
    let visible = text.chars().filter(|c| !c.is_control());
    visible.collect::<String>().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.into(), points: points.to_vec() }
    }

    #[test]
    fn a_line_with_marks_and_a_cloud_without_line() {
        let line = draw(&[one("", &[(0.0, 0.0), (1.0, 1.0), (2.0, 4.0)])]);
        assert_eq!(line.matches("<circle").count(), 3);
        assert_eq!(line.matches("stroke-width=\"2\"").count(), 1);
        let cloud = draw(&[one("", &[(1.0, 0.0), (0.0, 1.0)])]);
        assert_eq!(cloud.matches("<circle").count(), 2);
        assert_eq!(cloud.matches("stroke-width=\"2\"").count(), 0);
    }

    #[test]
    fn names_are_escaped() {
        assert!(draw(&[one("a<b>&\"c\"", &[(0.0, 0.0)])]).contains("a&lt;b&gt;&amp;&quot;c&quot;"));
    }

    #[test]
    fn nothing_that_is_not_a_number_reaches_the_file() {
        let extreme = [one("", &[(f64::MIN, f64::MAX), (f64::MAX, f64::MIN), (0.0, f64::NAN)]), one("e", &[])];
        let svg = draw(&extreme);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
