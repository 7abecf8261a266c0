//! The one place where type errors are put into words.

mod mismatch;

use crate::error::{NamePlace, Namespace, Twice, TypeError, Why};
use crate::inside::{FunctionInside, Part};
use crate::tree::MatchForm;
use gradus_source::{Diagnostic, Span};
use mismatch::{because, mismatch_words};

const JOIN_STRINGS: &str = "strings are joined by `string_append a b`";

impl TypeError {
    /// The main place.
    pub fn span(&self) -> Span {
        self.diagnostic().labels.first().map_or(Span::default(), |label| label.span)
    }

    pub fn code(&self) -> &'static str {
        self.diagnostic().code
    }

    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            TypeError::Unknown { namespace, name, module, near, place, span } => {
                let (code, what) = match namespace {
                    Namespace::Value => ("E0101", "variable"),
                    Namespace::Constructor => ("E0102", "constructor"),
                    Namespace::Field => ("E0103", "record field"),
                    Namespace::Type => ("E0104", "type"),
                    Namespace::TypeVariable => ("E0105", "type variable"),
                };
                let tick = if *namespace == Namespace::TypeVariable && !name.starts_with('\'') { "'" } else { "" };
                let message = match module {
                    Some(module) => format!("module `{module}` has no {what} `{name}`"),
                    None => format!("unknown {what} `{tick}{name}`"),
                };
                let mut said = Diagnostic::error(code, message).label(*span, "not found here");
                let foreign = foreign(*namespace, module.as_deref(), name);
                if *place == NamePlace::OwnDefinition {
                    said = said.help(format!("a function that uses itself is defined by `let rec {name}`"));
                } else if *place == NamePlace::Below {
                    said = said.help(format!("`{name}` is defined further down; a definition stands before its uses"));
                } else if let Some(foreign) = foreign {
                    said = said.help(foreign);
                } else if *place == NamePlace::Outside {
                    said = said.help(format!("`{name}` is there without a module"));
                } else if let Some(near) = near {
                    said = said.help(format!("did you mean `{near}`?"));
                } else if *namespace == Namespace::TypeVariable {
                    said = said.help(format!("add `{tick}{name}` to the parameters of the declared type"));
                } else if *namespace == Namespace::Field && module.is_none() {
                    said = said
                        .help(format!("a record is declared before it is used: `type t = {{ {name} : real; ... }}`"));
                } else if *namespace == Namespace::Constructor && module.is_none() {
                    said = said.help("a capital letter begins a constructor; a variable begins with a small letter");
                }
                said
            }
            TypeError::UnknownModule { name, near, span } => {
                let said =
                    Diagnostic::error("E0106", format!("unknown module `{name}`")).label(*span, "not imported here");
                match near {
                    Some(near) => said.help(format!("did you mean `{near}`?")),
                    None => said.help(format!("write `import {name}` at the top of the file")),
                }
            }
            TypeError::NestedModule { span } => Diagnostic::error("E0107", "there are no modules inside modules")
                .label(*span, "this cannot be a part of a module"),
            TypeError::ModuleNotFound { name, looked, near, span } => {
                let mut said =
                    Diagnostic::error("E0108", format!("module `{name}` was not found")).label(*span, "imported here");
                for place in looked {
                    said = said.note(format!("looked for {place}"));
                }
                match near {
                    Some(near) => said.help(format!("did you mean `{near}`?")),
                    None => said,
                }
            }
            TypeError::ImportCycle { modules, span } => {
                let chain = modules.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(" imports ");
                Diagnostic::error("E0109", "modules import each other in a circle")
                    .label(*span, "this import closes the circle")
                    .note(chain)
                    .help("move what both need into a third module")
            }
            TypeError::Twice { what, name, first, second } => {
                let what = match what {
                    Twice::Type => "the type",
                    Twice::Constructor => "the constructor",
                    Twice::Field => "the field",
                    Twice::TypeParameter => "the type parameter",
                    Twice::PatternVariable => "the variable",
                    Twice::Definition => "the definition",
                    Twice::Rule => "the derivative rule of",
                };
                Diagnostic::error("E0110", format!("{what} `{name}` stands here twice"))
                    .label(*second, "the second time")
                    .label(*first, "the first time")
            }
            TypeError::CyclicAlias { name, span } => {
                Diagnostic::error("E0111", format!("the type `{name}` is an abbreviation of itself"))
                    .label(*span, "this leads back to where it started")
                    .help("a recursive type needs a constructor or a record, as in `type t = T of t list`")
            }
            TypeError::TypeArity { name, expected, given, span } => {
                let message =
                    format!("the type `{name}` takes {}, but is given {given}", count(*expected, "type argument"));
                let said =
                    Diagnostic::error("E0112", message).label(*span, format!("{} here", count(*given, "argument")));
                match (*expected, &**name) {
                    (0, "real" | "int" | "bool") => {
                        said.help(format!("an array is written `{name}[]`, a list `{name} list`"))
                    }
                    _ => said,
                }
            }
            TypeError::Mismatch(mismatch) => mismatch_words(mismatch),
            TypeError::Infinite { var, ty, span } => Diagnostic::error(
                "E0202",
                format!("a type would contain itself: `{var}` would have to be `{ty}`"),
            )
            .label(*span, "this cannot have a finite type")
            .help(if ty.contains(" * ") {
                "a recursive function that is used at several types needs its type: `let rec f : 'a. t -> u = ...`"
            } else {
                "is a function applied to itself, or an argument missing or doubled?"
            }),
            TypeError::TooManyArguments { function, ty, takes, given, span, extra } => {
                if *takes == 0 {
                    let what = function.as_ref().map_or("this".to_string(), |name| format!("`{name}`"));
                    return Diagnostic::error(
                        "E0203",
                        format!("{what} is not a function, but is applied to {}", count(*given, "argument")),
                    )
                    .label(*span, format!("this has type `{ty}`"))
                    .help(if ty.ends_with(']') {
                        "an element of an array is written `a.(i)`"
                    } else {
                        "is an operator, a comma or a semicolon missing before the argument?"
                    });
                }
                let what = function.as_ref().map_or("this function".to_string(), |name| format!("`{name}`"));
                Diagnostic::error("E0203", format!("{what} takes {}, but is given {given}", count(*takes, "argument")))
                    .label(*extra, "one too many")
                    .label(*span, format!("this has type `{ty}`"))
            }
            TypeError::NotData { ty, function, inside, why, span } => {
                let what = match why {
                    Why::Operand { op, .. } | Why::OtherOperand { op, .. } => format!("`{op}`"),
                    Why::Argument { function: Some(name), .. } => format!("`{name}`"),
                    _ => "this operation".to_string(),
                };
                let label = match inside {
                    Some(FunctionInside { owner, part: Part::Field(name), function }) => {
                        format!(
                            "this has type `{ty}`, and the field `{name}` of `{owner}` has the function `{function}`"
                        )
                    }
                    Some(FunctionInside { part: Part::Constructor(name), function, .. }) => {
                        format!("this has type `{ty}`, and the constructor `{name}` has the function `{function}`")
                    }
                    None if ty == function => format!("this is a function, `{ty}`"),
                    None => format!("this has type `{ty}`, with the function `{function}` inside"),
                };
                Diagnostic::error("E0205", format!("{what} works on data only, and a function is not data"))
                    .label(*span, label)
                    .note("data types have no function inside: numbers, booleans, strings, and tuples, records, variants, lists and arrays of data")
            }
            TypeError::NotNumber { ty, why, span, from } => {
                let op = match why {
                    Why::Operand { op, .. } | Why::OtherOperand { op, .. } => *op,
                    _ => "arithmetic",
                };
                let mut said =
                    Diagnostic::error("E0206", format!("`{op}` works on numbers, `int` or `real`, not on `{ty}`"))
                        .label(*span, format!("this has type `{ty}`"));
                if let Some(from) = from.filter(|from| from != span) {
                    said = said.label(from, format!("it has type `{ty}` because of this"));
                }
                if matches!(op, "+" | "^") && ty == "string" {
                    said = said.help(JOIN_STRINGS);
                } else if ty.ends_with(']') || ty.contains(" * ") {
                    match op {
                        "+" => said = said.help("arrays, tuples and other data are added by `<+>`"),
                        "-" => said = said.help("arrays, tuples and other data are subtracted by `<->`"),
                        "*" => {
                            said =
                                said.help("data is multiplied by a number by `k *> a`; the inner product is `a <.> b`")
                        }
                        _ => {}
                    }
                }
                said
            }
            TypeError::RecursiveValue { name, span } => {
                Diagnostic::error("E0208", format!("`{name}` is defined by `let rec`, but is not a function"))
                    .label(*span, "this would need its own value before it has one")
                    .help(format!("write it as a function, `let rec {name} n = ...`, or drop `rec`"))
            }
            TypeError::RecursivePattern { span } => {
                Diagnostic::error("E0208", "`let rec` defines functions, by their names")
                    .label(*span, "this is a pattern")
            }
            TypeError::LocalPolymorphicRecursion { name, span } => {
                Diagnostic::error("E0209", format!("`{name}` is local and may not use itself at several types"))
                    .label(*span, "polymorphic recursion inside an expression")
                    .help(format!("move `{name}` to the top level; its type may stay as it is"))
            }
            TypeError::MissingFields { record, fields, span } => {
                let names = fields.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(", ");
                let fields_are = if fields.len() == 1 { "field is" } else { "fields are" };
                Diagnostic::error(
                    "E0211",
                    format!("a value of the record `{record}` needs all its fields: {names} missing"),
                )
                .label(*span, format!("{} {fields_are} missing here", fields.len()))
            }
            TypeError::NoSuchField { record, field, fields, near, span } => {
                let said = Diagnostic::error("E0103", format!("the record `{record}` has no field `{field}`"))
                    .label(*span, "not one of its fields")
                    .note(format!(
                        "its fields are {}",
                        fields.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(", ")
                    ));
                match near {
                    Some(near) => said.help(format!("did you mean `{near}`?")),
                    None => said,
                }
            }
            TypeError::NotARecord { ty, field, span } => {
                Diagnostic::error("E0213", format!("`.{field}` reads a field of a record, and `{ty}` is not a record"))
                    .label(*span, format!("this has type `{ty}`"))
            }
            TypeError::EmptyRecord { span } => Diagnostic::error("E0213", "a record has at least one field")
                .label(*span, "nothing tells which record this is"),
            TypeError::ConstructorArity { name, expected, given, span } => {
                let takes = count(*expected, "argument");
                let message = match given == expected {
                    // Given one after another, as a function takes them.
                    true => format!("the constructor `{name}` takes its {takes} in parentheses"),
                    false => format!("the constructor `{name}` takes {takes}, but is given {given}"),
                };
                let said =
                    Diagnostic::error("E0214", message).label(*span, format!("{} here", count(*given, "argument")));
                match expected {
                    0 => said,
                    1 => said.help(format!("write `{name} a`")),
                    _ => {
                        let args =
                            ["a", "b", "c", "d", "e"].iter().take((*expected).min(5)).copied().collect::<Vec<_>>();
                        said.help(format!("the arguments stand in parentheses: `{name} ({})`", args.join(", ")))
                    }
                }
            }
            TypeError::TypeTooLarge { span } => {
                Diagnostic::error("E0215", "the type of this is too large to work with")
                    .label(*span, "its type has thousands of parts")
                    .help("a record or a variant keeps types small")
            }
            TypeError::OpenData { name, ty, span } => Diagnostic::error(
                "E0216",
                format!(
                    "the data `{name}` is read from a file, so its type must be complete and have no function inside"
                ),
            )
            .label(*span, format!("this is `{ty}`")),
            TypeError::NumeralTooLarge { text, span } => {
                Diagnostic::error("E0217", format!("`{text}` does not fit into an `int`, which has 64 bits"))
                    .label(*span, "too large")
                    .help(format!("write `{text}.0` if a `real` is meant"))
            }
            TypeError::NotExhaustive { missing, form, inner, span } => {
                let example = missing.first().map_or("_", |m| m.as_str());
                let message = match form {
                    MatchForm::Match => format!("this match does not cover every value: `{example}` is missing"),
                    MatchForm::Let => format!("the pattern of this `let` does not match every value: not `{example}`"),
                    MatchForm::Param => {
                        format!("the pattern of this parameter does not match every value: not `{example}`")
                    }
                };
                let mut said = Diagnostic::error("E0301", message).label(*span, "not every value is covered");
                for other in missing.iter().skip(1) {
                    said = said.note(format!("also missing: `{other}`"));
                }
                if let Some(inner) = inner {
                    said = said
                        .label(*inner, "all cases from here on belong to this match, unless it stands in parentheses");
                }
                match form {
                    MatchForm::Match if example == "_" => said.help("add `| _ -> ...`; a guard may fail"),
                    MatchForm::Match => {
                        said.help(format!("add `| {example} -> ...`, or `| _ -> ...` for all the rest"))
                    }
                    MatchForm::Let | MatchForm::Param => said.help("use `match` with a case for every value"),
                }
            }
            TypeError::Unreachable { span } => Diagnostic::warning("E0302", "this case is never reached")
                .label(*span, "the cases before it cover all of this"),
            TypeError::OrPattern { name, span, without } => {
                Diagnostic::error("E0303", format!("`{name}` must be bound on every side of `|`"))
                    .label(*span, "bound here")
                    .label(*without, "but not here")
            }
            TypeError::TooComplicated { span } => {
                Diagnostic::error("E0305", "this match is too complicated to compile")
                    .label(*span, "it needs too many tests")
                    .help("split it into nested matches")
            }
            TypeError::SizesDiffer { actual, expected, actual_type, expected_type, why, span, variable } => {
                let said =
                    Diagnostic::error("E0401", format!("array sizes differ: {actual} here, but {expected} is needed"))
                        .label(*span, format!("this has type `{actual_type}`"));
                let said = because(said, why, expected_type);
                if *variable {
                    said.help("a size variable stands for any size that the caller chooses; write `[]` for a size that is checked when the program runs")
                } else {
                    said
                }
            }
            TypeError::UnknownRuleTarget { name, near, span } => {
                let said =
                    Diagnostic::error("E0511", format!("there is no function `{name}` in this file before this rule"))
                        .label(*span, "a rule follows the function that it is about");
                match near {
                    Some(near) => said.help(format!("did you mean `{near}`?")),
                    None => said,
                }
            }
            TypeError::RuleArity { name, ty, given, reverse, takes, span } => {
                let (word, shape) = if *reverse {
                    ("derivative", "the function's parameters and then the cotangent of its result")
                } else {
                    ("tangent", "the function's parameters and then a tangent for each")
                };
                if *takes == 0 {
                    return Diagnostic::error(
                        "E0512",
                        format!("`{name}` is not a function, so it has no derivative rule"),
                    )
                    .label(*span, format!("`{name}` has type `{ty}`"));
                }
                let needs = if *reverse { takes + 1 } else { takes * 2 };
                Diagnostic::error("E0512", format!("this rule of `{name}` has {}", count(*given, "parameter")))
                    .label(*span, format!("`{name}` has type `{ty}`"))
                    .note(format!("`{word} {name}` takes {shape}"))
                    .help(format!("`{name}` takes {}, so its rule takes {needs}", count(*takes, "parameter")))
            }
            TypeError::NoAppend { span } => {
                Diagnostic::error("E0101", "`@` needs the prelude's `append`").label(*span, "there is no prelude here")
            }
        }
    }
}

/// What names of other languages are called here.
fn foreign(namespace: Namespace, module: Option<&str>, name: &str) -> Option<&'static str> {
    Some(match (namespace, name) {
        (Namespace::Type, "float" | "double") => "the type of numbers with a fraction is `real`",
        (Namespace::Type, "array" | "vector") => "the type of arrays is written with brackets, as in `real[]`",
        (Namespace::Value, "pow" | "power") => "a power is written `x ** y`",
        (Namespace::Value, "ln") => "the natural logarithm is `log`",
        (Namespace::Value, "len" | "size") => "the number of elements of an array is its `length`",
        (Namespace::Value, "float" | "double" | "float_of_int" | "to_real" | "to_float" | "of_int") => {
            "an integer becomes a real by `real n`"
        }
        (Namespace::Value, "int" | "int_of_float" | "to_int") => {
            "a real becomes an integer by `round x`, `floor x` or `truncate x`"
        }
        (Namespace::Value, "ref") => "there are no mutable values: name the new value with another `let`",
        (Namespace::Value, "zeros") => "an array of zeros is made by `replicate n 0.0`",
        (
            Namespace::Value,
            "print" | "println" | "printf" | "print_endline" | "print_string" | "print_float" | "putStrLn",
        ) => "a program prints a value by `show e`",
        (Namespace::Value, "show") => "`show e` stands by itself at the top level of a file, and so does `check e`",
        (Namespace::Value, "assert") => "a file says what must hold by `check e`, at its top level",
        (Namespace::Value, "raise" | "failwith" | "invalid_arg" | "throw") => {
            "there are no exceptions: where there may be no value, give an `option`, `Some x` or `None`"
        }
        (Namespace::Value, "np" | "numpy" | "jnp" | "torch" | "math") => {
            "functions of numbers and arrays have no module in front: `sum a`, `exp x`, `matmul a b`"
        }
        (Namespace::Value, "fold_left" | "foldl") => "arrays are folded from the left by `fold`, lists by `List.fold`",
        (Namespace::Value, "init" | "tabulate") => "an array is made from its indices by `build n f`",
        (Namespace::Value, "make" | "full") => "an array of equal elements is made by `replicate n x`",
        (Namespace::Value, "append") if module == Some("Array") => "arrays are joined by `concat a b`",
        (Namespace::Value, "rev") => "arrays are reversed by `reverse`, lists by `List.reverse`",
        (Namespace::Value, "zip_with") => "two arrays are mapped together by `map2`, lists by `List.map2`",
        _ => return None,
    })
}

fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}
