//! Rust values to Gradus values and back, through serde.
//!
//! | Rust | Gradus |
//! |---|---|
//! | `f64`, `f32`, integers | `real`; integers also `int` |
//! | `bool`, `String`, `()` | `bool`, `string`, `unit` |
//! | tuples, tuple structs | tuples |
//! | structs, maps with string keys | records, by field name |
//! | enums | variants, by constructor name |
//! | `Vec`, slices, arrays | arrays and lists |
//! | `Option` | `option` |

mod de;
mod ser;

pub use de::from_value;
pub use ser::to_value;

use std::fmt;

/// Why a value could not be converted, with the place: `$.points[3]: expected a number, found true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError(pub String);

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConvertError {}

impl serde::ser::Error for ConvertError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        ConvertError(message.to_string())
    }
}

impl serde::de::Error for ConvertError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        ConvertError(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::Value;
    use gradus_core::{Symbol, Type, TypeBody, TypeDecl, TypeName};
    use indexmap::IndexMap;
    use serde::{Deserialize, Serialize};
    use std::fmt::Debug;

    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Point {
        x: f64,
        y: f64,
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    enum Tree {
        Leaf(f64),
        Node(Box<Tree>, Box<Tree>),
        Nothing,
    }

    fn declarations() -> IndexMap<Symbol, TypeDecl> {
        let declare =
            |name: &str, body| TypeDecl { name: TypeName::new(name), params: vec![], body, span: Default::default() };
        let tree = || Type::named("tree", []);
        let point = TypeBody::Record(vec![("x".into(), Type::Real), ("y".into(), Type::Real)]);
        let constructors =
            vec![("Leaf".into(), vec![Type::Real]), ("Node".into(), vec![tree(), tree()]), ("Nothing".into(), vec![])];
        let own = [declare("point", point), declare("tree", TypeBody::Variant(constructors))];
        TypeDecl::builtin().into_iter().chain(own).map(|d| (d.name.base.clone(), d)).collect()
    }

    #[track_caller]
    fn both_ways<T: Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(rust: T, ty: Type, text: &str) {
        let declarations = declarations();
        let value = to_value(&rust, &ty, &Schema::new(&declarations)).expect("fits");
        assert_eq!(value.to_string(), text);
        assert_eq!(from_value::<T>(&value), Ok(rust));
    }

    #[test]
    fn every_kind_goes_both_ways() {
        both_ways(1.5, Type::Real, "1.5");
        both_ways(3u8, Type::Int, "3");
        both_ways(3i32, Type::Real, "3.0");
        both_ways("a".to_string(), Type::String, "\"a\"");
        both_ways((1.0, true), Type::tuple([Type::Real, Type::Bool]), "(1.0, true)");
        both_ways(Point { x: 1.0, y: 2.0 }, Type::named("point", []), "{ x = 1.0; y = 2.0 }");
        both_ways(vec![1.0, 2.0], Type::array(Type::Real), "[| 1.0; 2.0 |]");
        both_ways(vec![vec![1.0], vec![2.0]], Type::array(Type::array(Type::Real)), "[| [| 1.0 |]; [| 2.0 |] |]");
        both_ways(vec![Some(1), None], Type::list(Type::option(Type::Int)), "[Some 1; None]");
        let tree = Tree::Node(Box::new(Tree::Leaf(1.0)), Box::new(Tree::Nothing));
        both_ways(tree, Type::named("tree", []), "Node (Leaf 1.0, Nothing)");
        both_ways(Vec::<f64>::new(), Type::array(Type::Real), "[||]");
    }

    #[track_caller]
    fn refuses<T: Serialize>(rust: T, ty: Type, message: &str) {
        let declarations = declarations();
        let error = to_value(&rust, &ty, &Schema::new(&declarations)).map(|v: Value| v.to_string());
        assert_eq!(error, Err(ConvertError(message.into())));
    }

    #[test]
    fn misfits_name_the_place() {
        let points = Type::array(Type::named("point", []));
        refuses(vec![(1.0, 2.0)], points.clone(), "$[0]: expected an object with the fields x, y, found an array");
        #[derive(Serialize)]
        struct Wrong {
            x: f64,
            z: f64,
        }
        refuses(
            vec![Wrong { x: 1.0, z: 0.0 }],
            points,
            "$[0]: expected an object with the fields x, y, found a field z",
        );
        refuses(1.5, Type::Int, "$: expected an integer, found 1.5");
        refuses(
            vec![1.0, 2.0],
            Type::tuple([Type::Real, Type::Real, Type::Real]),
            "$: expected an array of 3 elements, found 2 elements",
        );
        refuses(
            vec![vec![1.0], vec![]],
            Type::array(Type::array(Type::Real)),
            "$[1]: expected a row of 1 element like the first, found 0 elements",
        );
    }

    #[test]
    fn a_result_of_another_type_is_an_error() {
        assert!(from_value::<f64>(&Value::Bool(true)).is_err());
        assert!(from_value::<Point>(&Value::record([("x", 1.0.into())])).is_err());
        assert!(from_value::<Tree>(&Value::variant("Branch", [])).is_err());
        assert!(from_value::<f64>(&Value::Function).is_err());
    }
}
