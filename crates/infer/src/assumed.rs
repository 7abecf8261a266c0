//! Parameters that are reals only because nothing says otherwise (`let square x = x * x`): a message about `square n` says so.

use crate::infer::Infer;
use crate::store::Node;
use crate::tree::{Exp, ExpKind, PatKind};
use gradus_core::Symbol;

/// A parameter of a top-level function that was taken to be a `real`.
#[derive(Clone, Debug)]
pub struct AssumedParam {
    /// Counted from 0.
    index: usize,
    name: Symbol,
    /// Whether the result has its type.
    is_result: bool,
}

/// What a message says of such a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    pub function: Symbol,
    pub param: Symbol,
}

impl Infer {
    /// The parameters of a definition that are still undecided numbers. To be called before it is generalised, which decides them.
    pub fn undecided_params(&mut self, definition: Exp) -> Vec<AssumedParam> {
        let node = self.tree.node(definition).clone();
        let ExpKind::Function(params, _) = node.kind else { return Vec::new() };
        let mut result = node.ty;
        while let Node::Fun(_, to) = self.store.shape(result) {
            result = to;
        }
        let mut found = Vec::new();
        for (index, param) in params.iter().enumerate() {
            let undecided = self.store.kind(param.ty).is_some_and(|kind| kind.number);
            if let (true, PatKind::Bind(local, None)) = (undecided, &self.tree.pattern(param.pattern).kind) {
                let name = self.tree.local_of(*local).name.clone();
                let is_result = self.store.root(param.ty) == self.store.root(result);
                found.push(AssumedParam { index, name, is_result });
            }
        }
        found
    }

    /// A parameter of a function, counted from 0.
    pub fn assumed_param(&self, function: Exp, at: usize) -> Option<Assumed> {
        self.assumed(function, |param| param.index == at)
    }

    /// Any parameter of a function that is itself an argument.
    pub fn assumed_in(&self, argument: Exp) -> Option<Assumed> {
        match self.store.node(self.store.root(self.ty(argument))) {
            Node::Fun(..) => self.assumed(self.head(argument), |_| true),
            _ => None,
        }
    }

    /// The parameter whose type the result of a call has.
    pub fn assumed_result(&self, call: Exp) -> Option<Assumed> {
        self.assumed(self.head(call), |param| param.is_result)
    }

    /// The function of a call with several arguments.
    fn head(&self, mut call: Exp) -> Exp {
        while let ExpKind::App(function, _) = self.tree.node(call).kind {
            call = function;
        }
        call
    }

    fn assumed(&self, function: Exp, which: impl Fn(&AssumedParam) -> bool) -> Option<Assumed> {
        let ExpKind::Global(id, _) = &self.tree.node(function).kind else { return None };
        let global = &self.tables.globals[id.0 as usize];
        let param = global.assumed.iter().find(|param| which(param))?;
        Some(Assumed { function: global.shown.clone(), param: param.name.clone() })
    }
}
