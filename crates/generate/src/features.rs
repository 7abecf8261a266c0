//! What a random program may contain, switched on and off as a whole.

use crate::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// `let` and shared intermediate results
    Sharing,
    /// functions passed to functions, returned from them and kept in variables
    HigherOrder,
    /// tuples
    Products,
    /// `option`, `either` and `match`
    Variants,
    /// lists and trees
    RecursiveTypes,
    /// `let rec` with a decreasing argument
    Recursion,
    /// `iterate`
    Iteration,
    /// `build`, indexing, `ifold`, `set`
    Arrays,
    /// branches on integers, booleans and reals
    Conditionals,
    /// `grad`, `vjp`, `jvp`, `diff` inside the program
    NestedDerivatives,
    /// `<+>`, `*>`, `<.>` on data
    VectorSpace,
    /// `checkpoint`
    Checkpoints,
    /// top-level functions with custom derivative rules
    Rules,
}

impl Feature {
    pub const ALL: [Feature; 13] = [
        Feature::Sharing,
        Feature::HigherOrder,
        Feature::Products,
        Feature::Variants,
        Feature::RecursiveTypes,
        Feature::Recursion,
        Feature::Iteration,
        Feature::Arrays,
        Feature::Conditionals,
        Feature::NestedDerivatives,
        Feature::VectorSpace,
        Feature::Checkpoints,
        Feature::Rules,
    ];
}

/// A set of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u16);

impl Features {
    pub fn all() -> Self {
        Features(u16::MAX)
    }

    pub fn none() -> Self {
        Features(0)
    }

    pub fn with(self, feature: Feature) -> Self {
        Features(self.0 | 1 << feature as u16)
    }

    pub fn without(self, feature: Feature) -> Self {
        Features(self.0 & !(1 << feature as u16))
    }

    pub fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u16 != 0
    }

    /// Each of the features of `self` with even chance.
    pub fn random_half(self, rng: &mut Rng) -> Self {
        Features(self.0 & rng.bits() as u16)
    }
}
