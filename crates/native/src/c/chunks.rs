//! Loops that are cut into chunks, as C: a function for a range of iterations, and the call that runs it on all of them. See [`crate::cores`].

use super::emit::Emitter;
use super::loops::Collected;
use crate::cores::Chunked;
use crate::flow::*;
use crate::steady::Length;
use gradus_source::Span;

/// Where a number is in a word.
fn word(ty: Type) -> &'static str {
    if ty.is_real() {
        "r"
    } else {
        "i"
    }
}

impl Emitter<'_> {
    fn length(&mut self, length: Length) -> String {
        match length {
            Length::Number(atom) => self.atom(atom),
            Length::Of(array, axis) => format!("{}.d[{axis}]", self.name(array)),
        }
    }

    /// Runs the loop by a function that is written for it, in chunks if there is enough to do. If its body is also written where it stands, this
    /// is only for loops that have enough to do, and what is written ends within that branch.
    pub(super) fn chunks(
        &mut self,
        l: &For,
        chunked: &Chunked,
        state: &[String],
        into: &Collected<'_>,
        count: &str,
        span: Span,
    ) {
        let number = self.chunked;
        self.chunked += 1;
        let body = self.chunk_body(number, l, chunked, into, span);
        self.apart.push(body);
        let (scalars, arrays) = chunked.parted_sums();
        let place = self.place(span);
        let mut work = Vec::new();
        for (cost, factors) in &chunked.work {
            let mut product = format!("{cost:?}");
            for factor in factors {
                product.push_str(&format!(" * (double){}", self.length(*factor)));
            }
            work.push(product);
        }
        let least = self.plan.least_work;
        let work = format!("(double){count} * ({})", work.join(" + "));
        if !chunked.once {
            let mut enough = String::new();
            for length in chunked.rows.iter().flatten() {
                enough.push_str(&format!("{} > 0 && ", self.length(*length)));
            }
            self.line(&format!("if (GR_RARE({enough}{work} >= {:?}))", gradus_runtime::chunks::WORTH_CUTTING * least));
        }
        self.line("{");
        self.depth += 1;
        for (array, row) in into.arrays.iter().zip(&chunked.rows) {
            let name = self.name(*array);
            for (axis, length) in row.iter().enumerate() {
                let length = self.length(*length);
                self.line(&format!("{name}.d[{}] = {count} > 0 ? {length} : 0;", axis + 1));
            }
            self.make(*array, span);
        }
        let header = format!(
            "{{0, {count}, {work}, {least:?}, {}, {}, {}, {}, {place}}}",
            scalars.len(),
            arrays.len(),
            state.len(),
            chunked.join_codes()
        );
        let names: String = chunked.outside.iter().chain(into.arrays).map(|v| format!(", {}", self.name(*v))).collect();
        self.line(&format!("struct gr_outside_{number} outside = {{{header}{names}}};"));
        let mut values: Vec<(String, &str)> = scalars.iter().map(|sum| (self.accumulator(*sum), "r")).collect();
        values.extend(state.iter().cloned().zip(l.carried.iter().map(|(v, _)| word(v.ty))));
        let list: Vec<String> = values.iter().map(|(value, field)| format!("{{.{field} = {value}}}")).collect();
        self.line(&format!("gr_word own[] = {{{}}};", if list.is_empty() { "{0}".into() } else { list.join(", ") }));
        let mut sums = Vec::new();
        for array in &arrays {
            let name = self.name(*array);
            sums.push(format!("{{{name}.p, gr_size({name}.d, {}, 1)}}", array.ty.rank));
        }
        self.line(&format!("gr_sums sums[] = {{{}}};", if sums.is_empty() { "{0}".into() } else { sums.join(", ") }));
        self.line(&format!("gr_run_loop(self, gr_body_{number}, &outside.loop, own, sums);"));
        for (at, (value, field)) in values.iter().enumerate() {
            self.line(&format!("{value} = own[{at}].{field};"));
        }
        self.depth -= 1;
        if chunked.once {
            self.line("}");
        }
    }

    /// The function that runs a range of iterations, with the structure that holds what it uses from outside.
    fn chunk_body(&mut self, number: usize, l: &For, chunked: &Chunked, into: &Collected<'_>, span: Span) -> String {
        let before = self.elsewhere();
        let pointers = self.pointers.clone();
        let outside: Vec<Var> = chunked.outside.iter().chain(into.arrays).copied().collect();
        self.line(&format!("\nstruct gr_outside_{number} {{"));
        self.line("  gr_loop loop;");
        for var in &outside {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("  {ty} {name};"));
        }
        self.line("};");
        self.line(&format!(
            "static void gr_body_{number}(gr_thread *self, const void *data, gr_word *own, int64_t from, int64_t to) {{"
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
        let (scalars, arrays) = chunked.parted_sums();
        for (at, sum) in scalars.iter().enumerate() {
            self.pointers.remove(sum);
            let name = self.name(*sum);
            self.line(&format!("double {name} = own[{at}].r;"));
        }
        let mut state = Vec::new();
        for (at, ((var, _), join)) in l.carried.iter().zip(&chunked.joins).enumerate() {
            let (ty, name, neutral) =
                (self.ty(var.ty), format!("{}_joined", self.name(*var)), self.atom(join.neutral()));
            let value = format!("own[{}].{}", scalars.len() + at, word(var.ty));
            self.line(&format!("{ty} {name} = outside->loop.cut ? {neutral} : {value};"));
            state.push((name, value));
        }
        if !arrays.is_empty() {
            self.line(&format!("double *sums = &own[{}].r;", scalars.len() + state.len()));
            self.line("if (outside->loop.cut) {");
            for sum in &arrays {
                let name = self.name(*sum);
                self.line(&format!("  {name}.p = sums;"));
                self.line(&format!("  sums += gr_size({name}.d, {}, 1);", sum.ty.rank));
            }
            self.line("}");
        }
        let names: Vec<String> = state.iter().map(|(name, _)| name.clone()).collect();
        self.iterations(l, &names, into, ["from", "to"], span);
        for (name, value) in &state {
            self.line(&format!("{value} = {name};"));
        }
        for (at, sum) in scalars.iter().enumerate() {
            let name = self.name(*sum);
            self.line(&format!("own[{at}].r = {name};"));
        }
        self.depth -= 1;
        self.line("}");
        self.pointers = pointers;
        self.back(before)
    }
}
