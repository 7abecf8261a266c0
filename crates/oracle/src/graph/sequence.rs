//! Loops that append to an array, recognised as maps with state.

use super::*;

impl Graphs {
    /// `mapM` of `proofs/Monadic.v` over the indices of an array that is built: a fold over `build n (fun i -> i)` that appends to an array and hands on
    /// a state.
    pub(super) fn sequence<'a>(
        &mut self,
        body: &'a Wire,
        start: &Sym<'a>,
        array: Id,
        env: &Env<'a>,
    ) -> Result<Option<Sym<'a>>> {
        let Sym::Pair(start) = start else { return Ok(None) };
        let nil = self.reify(&start.0)?;
        let index = self.node(Node::Var(0, Ty::Int));
        let size = match &self.nodes[array as usize] {
            Node::Build(n, block) if block.result == index && block.partial.is_empty() => *n,
            _ => return Ok(None),
        };
        if !matches!(self.nodes[nil as usize], Node::Nil(_)) {
            return Ok(None);
        }
        let so_far = self.op("so far", vec![]);
        let unchanged = self.op("unchanged", vec![]);
        // Once with a state of which nothing is known.
        let element = self.open(Ty::Int);
        let (pure, partial) = self.block(|g| {
            let element = Sym::Node(element);
            let acc = Sym::Pair(Rc::new((Sym::Node(so_far), Sym::Node(unchanged))));
            let result = g.eval(body, &env.with(acc).with(element))?;
            g.appended(result, so_far)
        })?;
        let Some((made, state)) = pure else { return Ok(None) };
        let state = self.reify(&state)?;
        let result = self.reify(&made)?;
        let mentioned = partial.iter().chain([&result]).any(|id| self.mentions(*id, unchanged));
        if state == unchanged && !mentioned {
            let block = self.close(&[element], result, partial);
            let array = self.iteration(|block| Node::Build(size, block), block)?;
            return Ok(Some(Sym::Pair(Rc::new((array, start.1.clone())))));
        }
        let (element, state) = (self.open(Ty::Int), self.open(self.state.clone()));
        let (result, partial) = self.block(|g| {
            let acc = Sym::Pair(Rc::new((Sym::Node(so_far), Sym::Node(state))));
            let result = g.eval(body, &env.with(acc).with(Sym::Node(element)))?;
            match g.appended(result, so_far)? {
                Some((x, s)) => {
                    let parts = vec![g.reify(&x)?, g.reify(&s)?];
                    Ok(g.op("pair", parts))
                }
                None => Err(TooLarge),
            }
        })?;
        let first = self.reify(&start.1)?;
        let block = self.close(&[element, state], result, partial);
        Ok(Some(self.iteration(|block| Node::Sequence(size, block, first), block)?))
    }

    /// The element and the state of `(so_far with the element at its end, state)`.
    pub(super) fn appended<'a>(&mut self, result: Sym<'a>, so_far: Id) -> Result<Option<(Sym<'a>, Sym<'a>)>> {
        let Sym::Pair(parts) = &result else { return Ok(None) };
        let array = self.reify(&parts.0)?;
        Ok(match &self.nodes[array as usize] {
            Node::Op("snoc", args) if args[0] == so_far => Some((Sym::Node(args[1]), parts.1.clone())),
            _ => None,
        })
    }
}
