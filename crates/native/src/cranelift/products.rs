//! Matrix products as Cranelift code: a call of the runtime, which has a library for them.

use super::emit::{plain, Emitter};
use crate::flow;
use cranelift_codegen::ir::{types, InstBuilder, Value};
use gradus_runtime::products::Product;
use gradus_runtime::slot::Kind;
use gradus_source::Span;
use std::mem::offset_of;

impl Emitter<'_, '_, '_> {
    pub(super) fn product(&mut self, product: &flow::Product, span: Span) {
        let [c, a, b] = [product.acc, product.left.matrix, product.right.matrix].map(|matrix| self.array(matrix));
        let one = self.b.ins().iconst(types::I64, 1);
        let place = i64::from(Kind::Check.at(self.linker.places.number(None, span)));
        let place = self.b.ins().iconst(types::I64, place);
        let least = self.b.ins().f64const(self.linker.plan.least_work);
        // The distances of neighbours in a row and in a column.
        let steps = |row: Value, transposed: bool| if transposed { (one, row) } else { (row, one) };
        let (a_row, a_inner) = steps(a.dims[1], product.left.transposed);
        let (b_inner, b_column) = steps(b.dims[1], product.right.transposed);
        let parts = [
            (c.data, offset_of!(Product, c)),
            (a.data, offset_of!(Product, a)),
            (b.data, offset_of!(Product, b)),
            (c.dims[1], offset_of!(Product, c_row)),
            (a_row, offset_of!(Product, a_row)),
            (a_inner, offset_of!(Product, a_inner)),
            (b_inner, offset_of!(Product, b_inner)),
            (b_column, offset_of!(Product, b_column)),
            (self.number(product.rows), offset_of!(Product, rows)),
            (self.number(product.columns), offset_of!(Product, columns)),
            (self.number(product.inner), offset_of!(Product, inner)),
            (least, offset_of!(Product, least)),
            (place, offset_of!(Product, place)),
        ];
        let room = self.room(size_of::<Product>() as u32);
        for (part, offset) in parts {
            self.b.ins().store(plain(), part, room, offset as i32);
        }
        let code = self.runtime("gradus_add_product", &[self.thread, room]);
        self.hand_on(code);
    }
}
