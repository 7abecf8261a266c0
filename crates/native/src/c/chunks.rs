//! Loops that are cut into chunks, as C: a function for a range of iterations, and the call that runs it on all of them. See [`crate::cores`].

use super::emit::Emitter;
use super::loops::Collected;
use crate::cores::Chunked;
use crate::flow::*;
use crate::steady::Length;
use gradus_source::Span;

impl Emitter<'_> {
    fn length(&mut self, length: Length) -> String {
        match length {
            Length::Number(atom) => self.atom(atom),
            Length::Of(array, axis) => format!("{}.d[{axis}]", self.name(array)),
        }
    }

    /// Runs the loop in chunks if there is enough to do; otherwise as a whole, if its body is written once. If it is not, what is written ends within
    /// the branch that runs the chunks.
    pub(super) fn chunks(&mut self, l: &For, chunked: &Chunked, into: &Collected<'_>, count: &str, span: Span) {
        let number = self.chunk_bodies.len();
        // Its place, which those of the loops inside come after.
        self.chunk_bodies.push(String::new());
        self.chunk_bodies[number] = self.chunk_body(number, l, chunked, into, span);
        let (scalars, arrays): (Vec<Var>, Vec<Var>) = chunked.sums.iter().copied().partition(|v| !v.ty.is_array());
        let place = self.place(span);
        let mut width = scalars.len().to_string();
        let mut sizes = Vec::new();
        for array in &arrays {
            sizes.push(format!("gr_size({}.d, {}, 1)", self.name(*array), array.ty.rank));
        }
        sizes.iter().for_each(|size| width.push_str(&format!(" + {size}")));
        let mut work = Vec::new();
        for (cost, factors) in &chunked.work {
            let mut product = format!("{cost:?}");
            for factor in factors {
                product.push_str(&format!(" * (double){}", self.length(*factor)));
            }
            work.push(product);
        }
        let mut enough = String::new();
        for length in chunked.rows.iter().flatten() {
            enough.push_str(&format!("{} > 0 && ", self.length(*length)));
        }
        let least = self.plan.least_work;
        self.line(&format!("int64_t chunks_{number} = 1, width_{number} = {width};"));
        self.line(&format!("double work_{number} = (double){count} * ({});", work.join(" + ")));
        self.line(&format!("if ({enough}work_{number} >= {:?})", 2.0 * least));
        let arguments = format!("{count}, work_{number}, {least:?}, width_{number}");
        self.line(&format!("  chunks_{number} = gr_chunk_count({arguments});"));
        if chunked.once {
            self.line("{");
            self.depth += 1;
        } else {
            self.line(&format!("if (GR_RARE(chunks_{number} > 1)) {{"));
            self.depth += 1;
        }
        for (array, row) in into.arrays.iter().zip(&chunked.rows) {
            let (ty, name) = (self.ty(array.ty), self.name(*array));
            for (axis, length) in row.iter().enumerate() {
                let length = self.length(*length);
                self.line(&format!("{name}.d[{}] = {length};", axis + 1));
            }
            self.line(&format!("{ty}_new(&{name}, {place});"));
        }
        self.line("gr_block *owner = 0;");
        self.line("double *records = 0;");
        if !chunked.sums.is_empty() {
            let dims = format!("(int64_t[]){{chunks_{number}, width_{number}}}");
            let when = if chunked.once { format!("if (chunks_{number} > 1) ") } else { String::new() };
            self.line(&format!("{when}records = gr_allocate(gr_size({dims}, 2, 8), &owner, {place});"));
        }
        let names: String = chunked.outside.iter().chain(into.arrays).map(|v| format!(", {}", self.name(*v))).collect();
        self.line(&format!("struct gr_outside_{number} outside = {{chunks_{number} <= 1{names}}};"));
        if chunked.once {
            self.line(&format!("if (chunks_{number} <= 1) {{"));
            self.whole(number, &scalars, count);
            self.line("} else {");
        }
        let arguments = format!("{count}, chunks_{number}, records, width_{number}, {place}");
        self.line(&format!("gr_run_chunks(self, gr_body_{number}, &outside, {arguments});"));
        for (at, sum) in scalars.iter().enumerate() {
            let name = self.accumulator(*sum);
            self.line(&format!("double sum_{at} = {name};"));
            self.line(&format!("gr_merge(&sum_{at}, records + {at}, width_{number}, chunks_{number}, 1);"));
            self.line(&format!("{name} = sum_{at};"));
        }
        let mut from = format!("records + {}", scalars.len());
        for (array, size) in arrays.iter().zip(&sizes) {
            let name = self.name(*array);
            self.line(&format!("gr_merge({name}.p, {from}, width_{number}, chunks_{number}, {size});"));
            from.push_str(&format!(" + {size}"));
        }
        self.line("gr_drop(owner);");
        self.depth -= 1;
        if chunked.once {
            self.line("}}");
        }
    }

    /// Runs the body of a loop on all iterations, with sums that go on from where they are.
    fn whole(&mut self, number: usize, scalars: &[Var], count: &str) {
        let values: Vec<String> = scalars.iter().map(|sum| self.accumulator(*sum)).collect();
        let list = if values.is_empty() { "0".to_string() } else { values.join(", ") };
        self.line(&format!("  double own[] = {{{list}}};"));
        self.line(&format!("  gr_body_{number}(self, &outside, own, 0, {count});"));
        for (at, value) in values.iter().enumerate() {
            self.line(&format!("  {value} = own[{at}];"));
        }
    }

    /// The function that runs a range of iterations, with the structure that holds what it uses from outside.
    fn chunk_body(&mut self, number: usize, l: &For, chunked: &Chunked, into: &Collected<'_>, span: Span) -> String {
        let before = (std::mem::take(&mut self.text), std::mem::replace(&mut self.depth, 0));
        let pointers = self.pointers.clone();
        let outside: Vec<Var> = chunked.outside.iter().chain(into.arrays).copied().collect();
        self.line(&format!("\nstruct gr_outside_{number} {{"));
        self.line("  int whole;");
        for var in &outside {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("  {ty} {name};"));
        }
        self.line("};");
        self.line(&format!(
            "static void gr_body_{number}(gr_thread *self, const void *data, double *own, int64_t from, int64_t to) {{"
        ));
        self.depth += 1;
        self.line(&format!("const struct gr_outside_{number} *outside = data;"));
        for var in &outside {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("{ty} {name} = outside->{name};"));
            if var.ty.is_array() {
                // Borrowed: not counted, and never changed in place.
                self.line(&format!("{name}.b = 0;"));
            }
        }
        let (scalars, arrays): (Vec<Var>, Vec<Var>) = chunked.sums.iter().copied().partition(|v| !v.ty.is_array());
        for (at, sum) in scalars.iter().enumerate() {
            self.pointers.remove(sum);
            let name = self.name(*sum);
            self.line(&format!("double {name} = own[{at}];"));
        }
        if !arrays.is_empty() {
            self.line(&format!("double *sums = own + {};", scalars.len()));
            self.line("if (!outside->whole) {");
            for sum in &arrays {
                let name = self.name(*sum);
                self.line(&format!("  {name}.p = sums;"));
                self.line(&format!("  sums += gr_size({name}.d, {}, 1);", sum.ty.rank));
            }
            self.line("}");
        }
        self.iterations(l, &[], into, ["from", "to"], span);
        for (at, sum) in scalars.iter().enumerate() {
            let name = self.name(*sum);
            self.line(&format!("own[{at}] = {name};"));
        }
        self.depth -= 1;
        self.line("}");
        self.pointers = pointers;
        let body = std::mem::replace(&mut self.text, before.0);
        self.depth = before.1;
        body
    }
}
