//! The pieces of long blocks as functions. See [`crate::pieces`].

use super::emit::Emitter;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::pieces::{is_sum, Pieces, Sizes};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// What a C compiler sees at once becomes faster, so that a piece is as long as it has time for: a second or two. Loops take it longest.
pub(super) const SIZES: Sizes = Sizes { long: 3000, piece: 1000, of_loop: 20 };

/// The frame of a block: a structure with what waits.
struct Frame {
    number: usize,
    waiting: FxHashSet<Var>,
}

impl Emitter<'_> {
    /// Whether a block is written in pieces. Those that run in lanes are not: the C compiler has to see all of them.
    pub(super) fn is_cut(&self, block: &Block) -> bool {
        !self.in_lanes && self.insides.is_long(block)
    }

    /// Writes the statements of a block as calls of pieces, if they are many, so that its results are there; whether they are.
    pub(super) fn in_pieces(&mut self, block: &Block, ownership: &mut Ownership) -> bool {
        if self.in_lanes {
            return false;
        }
        let Some(pieces) = self.insides.cut(block, self.plan, |_| true) else { return false };
        let Pieces { ranges, waiting, captured, results } = pieces;
        let number = self.frames;
        self.frames += 1;
        let before = self.elsewhere();
        self.line(&format!("\nstruct gr_frame_{number} {{"));
        for var in &waiting {
            let declared = self.waiting(*var);
            self.line(&format!("  {declared};"));
        }
        self.line("};");
        let structure = self.back(before);
        self.apart.push(structure);
        let frame = Frame { number, waiting: waiting.into_iter().collect() };
        self.line(&format!("struct gr_frame_{number} frame_{number};"));
        for var in &captured {
            let name = self.name(*var);
            self.line(&format!("frame_{number}.{name} = {name};"));
        }
        for (piece, range) in ranges.into_iter().enumerate() {
            let name = format!("gr_piece_{number}_{piece}");
            self.piece(&name, &block.stmts, range, &frame, ownership);
            self.line(&format!("{name}(self, &frame_{number});"));
        }
        for var in captured {
            if self.goes_on(var) {
                let name = self.name(var);
                self.line(&format!("{name} = frame_{number}.{name};"));
            }
        }
        for var in results {
            let (declared, name) = (self.waiting(var), self.name(var));
            self.line(&format!("{declared} = frame_{number}.{name};"));
        }
        true
    }

    /// Whether a variable changes after it was made: a sum, unless it is a pointer to one.
    fn goes_on(&self, var: Var) -> bool {
        is_sum(var) && !self.pointers.contains(&var)
    }

    /// The declaration of a variable that waits.
    fn waiting(&mut self, var: Var) -> String {
        let pointer = if self.pointers.contains(&var) { "*" } else { "" };
        format!("{} {pointer}{}", self.ty(var.ty), self.name(var))
    }

    /// Writes the function of a piece.
    fn piece(&mut self, name: &str, stmts: &[Stmt], range: Range<usize>, frame: &Frame, ownership: &mut Ownership) {
        let before = self.elsewhere();
        self.line(&format!(
            "\nstatic __attribute__((noinline)) void {name}(gr_thread *self, struct gr_frame_{} *frame) {{",
            frame.number
        ));
        self.depth += 1;
        let here = &stmts[range.clone()];
        if let (true, Some(first)) = (self.in_recursion, here.first()) {
            let place = self.place(first.span);
            self.line(&format!("GR_CHECK_STACK({place});"));
        }
        let mut there: FxHashSet<Var> = FxHashSet::default();
        let mut leaving = Vec::new();
        for (at, stmt) in range.zip(here) {
            for var in self.insides.operands(stmt, self.plan) {
                if frame.waiting.contains(&var) && there.insert(var) {
                    let (declared, name) = (self.waiting(var), self.name(var));
                    self.line(&format!("{declared} = frame->{name};"));
                    leaving.extend(Some(var).filter(|v| self.goes_on(*v)));
                }
            }
            self.stmt_at(at, stmt, ownership);
            there.extend(&stmt.binds);
            leaving.extend(stmt.binds.iter().filter(|v| frame.waiting.contains(v)));
        }
        for var in leaving {
            let name = self.name(var);
            self.line(&format!("frame->{name} = {name};"));
        }
        self.depth -= 1;
        self.line("}");
        let function = self.back(before);
        self.apart.push(function);
    }
}
