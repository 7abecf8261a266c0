//! The sets of operations that a block runs and that can fail, each perhaps under conditions, without what is said twice.

use super::{Graphs, Id, Node};

impl Graphs {
    /// A set of operations that are run. What is run on both sides of a choice is run, and needs no mention under a condition.
    pub(super) fn tidy(&self, mut set: Vec<Id>) -> Vec<Id> {
        loop {
            set.sort_unstable();
            set.dedup();
            let holds = |node: Node| self.numbers.get(&node).is_some_and(|id| set.binary_search(id).is_ok());
            if let Some(position) = set.iter().position(|id| self.with_fewer_conditions(*id, &set)) {
                set.remove(position);
                continue;
            }
            let both = set.iter().find_map(|id| match &self.nodes[*id as usize] {
                Node::Left(c, x) if holds(Node::Right(*c, *x)) => Some(*x),
                _ => None,
            });
            match both {
                Some(x) => set.push(x),
                None => return set,
            }
        }
    }

    /// Whether the set has the same operation under some of the conditions of this one, or under none.
    fn with_fewer_conditions(&self, id: Id, set: &[Id]) -> bool {
        let mut conditions = Vec::new();
        let mut operation = id;
        while let Node::Left(c, x) | Node::Right(c, x) = &self.nodes[operation as usize] {
            conditions.push((matches!(self.nodes[operation as usize], Node::Left(..)), *c));
            operation = *x;
        }
        // Each choice of conditions but all of them. Those nest as deep as branches do.
        let count = conditions.len().min(10);
        (0..(1_u32 << count) - 1).any(|choice| {
            let mut chosen = conditions.iter().enumerate().filter(|(n, _)| *n >= count || choice & (1 << n) != 0).rev();
            let fewer = chosen.try_fold(operation, |inner, (_, (left, c))| {
                let node = if *left { Node::Left(*c, inner) } else { Node::Right(*c, inner) };
                self.numbers.get(&node).copied()
            });
            fewer.is_some_and(|fewer| set.binary_search(&fewer).is_ok())
        })
    }
}
