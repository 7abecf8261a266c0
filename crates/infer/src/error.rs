//! What inference has to say: facts with places. The words are in `wording`.

use crate::assumed::Assumed;
use crate::inside::FunctionInside;
use gradus_core::Symbol;
use gradus_source::Span;

/// Why a type was expected.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The argument of a function, counted from 1.
    Argument {
        function: Option<Symbol>,
        index: usize,
        head: Span,
        /// A parameter, of the function or of one that is an argument, that was taken to be a `real`.
        assumed: Option<Assumed>,
    },
    /// The result of a function that is an argument.
    Result {
        function: Option<Symbol>,
        index: usize,
        head: Span,
    },
    Operand {
        op: &'static str,
        at: Span,
    },
    /// The second operand must have the type of the first.
    OtherOperand {
        op: &'static str,
        first: Span,
    },
    Condition,
    Guard,
    /// The other branch of an `if`.
    Branch {
        first: Span,
    },
    /// Another arm of a `match`.
    Arm {
        first: Span,
    },
    /// An earlier element of a list or an array.
    Element {
        first: Span,
    },
    Annotation {
        at: Span,
    },
    Index,
    /// The number of elements in a comprehension.
    Bound,
    Field {
        name: Symbol,
        record: Symbol,
    },
    /// The base of `{ r with ... }` or `r.x`.
    Record {
        field: Symbol,
    },
    ConstructorArgument {
        name: Symbol,
    },
    /// A pattern against the value that it takes apart.
    Pattern {
        value: Option<Span>,
    },
    /// The body of a recursive function against its uses.
    Recursion {
        name: Symbol,
    },
    Check,
    /// The body of a derivative rule; the type of the whole rule.
    Rule {
        function: Symbol,
        rule: String,
    },
    /// A caller from outside wants this type.
    Wanted,
}

/// A type mismatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    pub span: Span,
    pub actual: String,
    pub expected: String,
    /// The parts that differ, if they are not the whole.
    pub parts: Option<(String, String)>,
    /// Where each type was decided, if that is another place.
    pub actual_from: Option<Span>,
    pub expected_from: Option<Span>,
    pub why: Why,
    pub what: Expression,
    /// How many arguments are missing for the actual type to become the expected one.
    pub missing_arguments: usize,
    /// The type of the function, if its arguments stand in another order.
    pub order: Option<String>,
}

/// What kind of expression a message speaks of.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Variable(Symbol),
    RealLiteral(String),
    /// A call whose result is a `real` because a parameter was taken to be one.
    Call(Assumed),
    Pattern,
    Other,
}

/// What a name was looked up as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    Value,
    Constructor,
    Field,
    Type,
    TypeVariable,
}

/// Where a name that is not known here is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamePlace {
    Nowhere,
    /// It is being defined, without `rec`.
    OwnDefinition,
    /// It is defined further down.
    Below,
    /// It was looked for in a module, and is there without one.
    Outside,
}

/// What stands twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    Type,
    Constructor,
    Field,
    TypeParameter,
    PatternVariable,
    Definition,
    Rule,
}

/// Where a pattern that does not cover everything stands.
pub use crate::tree::MatchForm;

#[derive(Clone, Debug, PartialEq)]
pub enum TypeError {
    Unknown {
        namespace: Namespace,
        name: Symbol,
        module: Option<Symbol>,
        near: Option<String>,
        place: NamePlace,
        span: Span,
    },
    /// A module that was not imported.
    UnknownModule {
        name: Symbol,
        near: Option<String>,
        span: Span,
    },
    /// `A.B.x`: there are no modules in modules.
    NestedModule {
        span: Span,
    },
    /// The file of an imported module is not there (told by the driver).
    ModuleNotFound {
        name: Symbol,
        looked: Vec<String>,
        near: Option<String>,
        span: Span,
    },
    /// Modules that import each other (told by the driver): the names in order, the first again at the end.
    ImportCycle {
        modules: Vec<Symbol>,
        span: Span,
    },
    Twice {
        what: Twice,
        name: Symbol,
        first: Span,
        second: Span,
    },
    CyclicAlias {
        name: Symbol,
        span: Span,
    },
    TypeArity {
        name: Symbol,
        expected: usize,
        given: usize,
        span: Span,
    },
    Mismatch(Box<Mismatch>),
    Infinite {
        var: String,
        ty: String,
        span: Span,
    },
    TooManyArguments {
        function: Option<Symbol>,
        ty: String,
        takes: usize,
        given: usize,
        span: Span,
        extra: Span,
    },
    NotData {
        /// The whole type, and the function inside it.
        ty: String,
        function: String,
        /// If that is a declared type: where in it.
        inside: Option<FunctionInside>,
        why: Why,
        span: Span,
    },
    NotNumber {
        ty: String,
        why: Why,
        span: Span,
        from: Option<Span>,
    },
    RecursiveValue {
        name: Symbol,
        span: Span,
    },
    RecursivePattern {
        span: Span,
    },
    LocalPolymorphicRecursion {
        name: Symbol,
        span: Span,
    },
    MissingFields {
        record: Symbol,
        fields: Vec<Symbol>,
        span: Span,
    },
    NoSuchField {
        record: String,
        field: Symbol,
        fields: Vec<Symbol>,
        near: Option<String>,
        span: Span,
    },
    NotARecord {
        ty: String,
        field: Symbol,
        span: Span,
    },
    EmptyRecord {
        span: Span,
    },
    ConstructorArity {
        name: Symbol,
        expected: usize,
        given: usize,
        span: Span,
    },
    TypeTooLarge {
        span: Span,
    },
    OpenData {
        name: Symbol,
        ty: String,
        span: Span,
    },
    NumeralTooLarge {
        text: String,
        span: Span,
    },
    NotExhaustive {
        missing: Vec<String>,
        form: MatchForm,
        /// The body of the last case, if it is a match itself.
        inner: Option<Span>,
        span: Span,
    },
    Unreachable {
        span: Span,
    },
    OrPattern {
        name: Symbol,
        span: Span,
        without: Span,
    },
    TooComplicated {
        span: Span,
    },
    SizesDiffer {
        actual: String,
        expected: String,
        actual_type: String,
        expected_type: String,
        why: Why,
        span: Span,
        variable: bool,
    },
    UnknownRuleTarget {
        name: Symbol,
        near: Option<String>,
        span: Span,
    },
    RuleArity {
        name: Symbol,
        ty: String,
        given: usize,
        reverse: bool,
        takes: usize,
        span: Span,
    },
    NoAppend {
        span: Span,
    },
}

impl TypeError {
    /// Warnings are told, but stop nobody.
    pub fn is_warning(&self) -> bool {
        matches!(self, TypeError::Unreachable { .. })
    }
}
