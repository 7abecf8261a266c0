//! Values as JSON: numbers, booleans and strings as themselves; tuples, arrays and lists as arrays; records as objects;
//! constructors as `"Leaf"` or `{"Node": [..]}`; `()` as `null`; NaN and infinities as the strings `"nan"`, `"inf"`, `"-inf"`.
//!
//! Writing needs only the value. Reading is guided by the expected type and goes straight to typed values, without a tree of
//! JSON in between.

mod read;
mod write;

pub(crate) use read::{array_at, first_irregular, irregularity};
pub use read::{read, read_loosely, JsonError};
pub use write::{write, NotData};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::Value;
    use gradus_core::{Symbol, Type, TypeBody, TypeDecl, TypeName};
    use gradus_source::Span;
    use indexmap::IndexMap;

    /// The builtin types, `point = { x : real; y : real }` and `tree = Leaf of real | Node of tree * tree`.
    fn declarations() -> IndexMap<Symbol, TypeDecl> {
        let declare =
            |name: &str, body| TypeDecl { name: TypeName::new(name), params: Vec::new(), body, span: Span::default() };
        let tree = || Type::named("tree", []);
        let point = TypeBody::Record(vec![("x".into(), Type::Real), ("y".into(), Type::Real)]);
        let nodes = vec![("Leaf".into(), vec![Type::Real]), ("Node".into(), vec![tree(), tree()])];
        let mut all = TypeDecl::builtin();
        all.extend([declare("point", point), declare("tree", TypeBody::Variant(nodes))]);
        all.into_iter().map(|d| (d.name.base.clone(), d)).collect()
    }

    fn reads(text: &str, ty: &Type) -> Result<Value, String> {
        let declarations = declarations();
        read(text.as_bytes(), ty, &Schema::new(&declarations)).map_err(|e| e.to_string())
    }

    #[track_caller]
    fn round_trip(text: &str, ty: Type) {
        let value = reads(text, &ty).expect("fits");
        assert_eq!(write(&value).expect("data"), text);
    }

    #[track_caller]
    fn rejects(text: &str, ty: Type, message: &str) {
        assert_eq!(reads(text, &ty), Err(message.to_string()));
    }

    fn point() -> Type {
        Type::named("point", [])
    }

    fn tree() -> Type {
        Type::named("tree", [])
    }

    #[test]
    fn a_key_may_begin_with_a_capital_letter() {
        let expected = reads(r#"{"x":1,"y":2}"#, &point()).expect("fits");
        assert_eq!(reads(r#"{"X":1,"y":2}"#, &point()), Ok(expected));
        assert!(reads(r#"{"X":1,"x":1,"y":2}"#, &point()).is_err());
        assert!(reads(r#"{"x":1,"why":2}"#, &point()).is_err());
    }

    #[test]
    fn every_form_goes_in_and_out_unchanged() {
        round_trip("1.5", Type::Real);
        round_trip("5e-324", Type::Real);
        round_trip("\"nan\"", Type::Real);
        round_trip("[\"inf\",\"-inf\",-0.0]", Type::array(Type::Real));
        round_trip("9223372036854775807", Type::Int);
        round_trip("null", Type::Unit);
        round_trip("\"a\\\"b\\n\\u0001é\"", Type::String);
        round_trip("[1,true]", Type::tuple([Type::Int, Type::Bool]));
        round_trip("{\"x\":1.0,\"y\":2.0}", point());
        round_trip("{\"Node\":[{\"Leaf\":[1.0]},{\"Leaf\":[2.0]}]}", tree());
        round_trip("[\"None\",{\"Some\":[3]}]", Type::list(Type::option(Type::Int)));
        round_trip("[[1.0,2.0],[3.0,4.0]]", Type::array(Type::array(Type::Real)));
        round_trip("[]", Type::array(Type::array(Type::Real)));
        round_trip("[[],[1]]", Type::list(Type::list(Type::Int)));
    }

    #[test]
    fn fields_may_come_in_any_order_and_integers_are_numbers() {
        let value = reads("{\"y\": 2, \"x\": 1}", &point()).expect("fits");
        assert_eq!(write(&value).expect("data"), "{\"x\":1.0,\"y\":2.0}");
        let value = reads("{\"Leaf\": 2}", &tree()).expect("a single argument may stand alone");
        assert_eq!(write(&value).expect("data"), "{\"Leaf\":[2.0]}");
    }

    #[test]
    fn misfits_name_the_place() {
        let points = Type::array(point());
        rejects(
            "[{\"x\":1,\"y\":2},{\"x\":\"abc\",\"y\":2}]",
            points.clone(),
            "$[1].x: expected a number, found \"abc\"",
        );
        rejects("[{\"x\":1}]", points.clone(), "$[0]: expected an object with the fields x, y, found no field y");
        rejects(
            "[{\"x\":1,\"y\":2,\"z\":3}]",
            points.clone(),
            "$[0]: expected an object with the fields x, y, found a field z",
        );
        rejects("[{\"x\":1,\"x\":2}]", points.clone(), "$[0]: expected an object with the fields x, y, found x twice");
        rejects("3", points, "$: expected an array, found 3");
        rejects("1.5", Type::Int, "$: expected an integer, found 1.5");
        rejects("9223372036854775808", Type::Int, "$: expected an integer, found 9223372036854775808");
        rejects("[1,2,3]", Type::tuple([Type::Real, Type::Real]), "$: expected an array of 2 elements, found more");
        rejects("[1]", Type::tuple([Type::Real, Type::Real]), "$: expected an array of 2 elements, found 1 element");
        rejects("\"Branch\"", tree(), "$: expected one of {\"Leaf\": [..]}, {\"Node\": [.., ..]}, found \"Branch\"");
        rejects("{\"Leaf\":[true]}", tree(), "$.Leaf[0]: expected a number, found true");
        rejects("{\"Leaf\":true}", tree(), "$.Leaf: expected a number, found true");
        rejects("{\"Node\":1}", tree(), "$.Node: expected an array of 2 elements, found 1");
        rejects(
            "[[1,2],[3]]",
            Type::array(Type::array(Type::Real)),
            "$[1]: expected a row of 2 elements like the first, found 1 element",
        );
        rejects(
            "[[1,2],[3]]",
            Type::array(Type::array(Type::Int)),
            "$[1]: expected a row of 2 elements like the first, found 1 element",
        );
    }

    #[test]
    fn text_that_is_not_json_says_where() {
        rejects("[1, 2", Type::array(Type::Real), "not valid JSON: EOF while parsing a list at line 1 column 5");
        rejects("1 2", Type::Real, "not valid JSON: trailing characters at line 1 column 3");
        rejects("", Type::Real, "not valid JSON: EOF while parsing a value at line 1 column 0");
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = 100_000;
        let text = "{\"Node\":[{\"Leaf\":[0.0]},".repeat(deep) + "{\"Leaf\":[1.0]}" + &"]}".repeat(deep);
        round_trip(&text, tree());
        let open = "[".repeat(deep);
        assert!(reads(&open, &Type::Real).is_err());
        assert!(reads(&open, &tree()).is_err());
    }
}
