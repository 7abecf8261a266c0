//! Matrix products as C: a call of `products.c`.

use super::emit::Emitter;
use crate::flow::*;
use gradus_source::Span;

impl Emitter<'_> {
    pub(super) fn product(&mut self, product: &Product, span: Span) {
        let Product { acc, left, right, rows, columns, inner } = product;
        let place = self.place(span);
        let c = self.accumulator(*acc);
        let (a, b) = (self.name(left.matrix), self.name(right.matrix));
        let counts = [rows, columns, inner].map(|n| self.atom(*n)).join(", ");
        // The distances of neighbours in a row and in a column.
        let steps = |name: &str, factor: &Factor| match factor.transposed {
            false => format!("{name}.d[1], 1"),
            true => format!("1, {name}.d[1]"),
        };
        let steps = format!("{c}.d[1], {}, {}", steps(&a, left), steps(&b, right));
        let least = self.plan.least_work;
        let least = if least.is_finite() { format!("{least:?}") } else { "INFINITY".into() };
        self.uses_products = true;
        self.line(&format!(
            "gr_add_product(self, (gr_product){{{c}.p, {a}.p, {b}.p, {steps}, {counts}}}, {least}, {place});"
        ));
    }
}
