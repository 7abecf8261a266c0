//! Custom derivatives: `derivative f x dy = e` and `tangent f x dx = e`. The rules here are wrong on purpose, so that
//! it shows when they are used.

use crate::session::check;

#[test]
fn a_rule_is_used_instead_of_the_text() {
    let program = "
        let f x = x * x
        derivative f x dy = 10.0 * dy
        let g x = x * x
        tangent g x dx = 20.0 * dx
        let h x y = x * y
        derivative h x y dz = (3.0 * dz, 5.0 * dz)
        let k x y = x * y
        tangent k x y dx dy = 7.0 * dx + 9.0 * dy
        let both (x : real) = x
        derivative both x dy = 100.0 * dy
        tangent both x dx = 100.0 * dx
        let apply f x = f x
        let held = h 2.0
    ";
    check(
        program,
        &[
            ("grad f 3.0", &[10.0]),
            ("diff f 3.0", &[10.0]),
            ("grad g 3.0", &[20.0]),
            ("diff g 3.0", &[20.0]),
            ("f 3.0", &[9.0]),
            ("value_and_grad (fun x -> 2.0 * f (x * x)) 3.0", &[162.0, 120.0]),
            ("grad (fun (x, y) -> h x y) (2.0, 4.0)", &[3.0, 5.0]),
            ("jvp (fun (x, y) -> h x y) (2.0, 4.0) (1.0, 10.0)", &[53.0]),
            ("grad (fun (x, y) -> k x y) (2.0, 4.0)", &[7.0, 9.0]),
            ("jvp (fun (x, y) -> k x y) (2.0, 4.0) (1.0, 10.0)", &[97.0]),
            ("grad both 1.0", &[100.0]),
            // However the function gets there.
            ("grad (apply f) 3.0", &[10.0]),
            ("grad (h 2.0) 4.0", &[5.0]),
            ("grad held 4.0", &[5.0]),
            ("grad (fun x -> (let p = h x in p x)) 4.0", &[8.0]),
            ("let p = h 2.0 in grad p 4.0", &[5.0]),
            ("let p = f in diff p 4.0", &[10.0]),
        ],
    );
}

#[test]
fn rules_on_structures_and_higher_orders() {
    let program = "
        let norm_like (xs, k) = (map (fun x -> x * k) xs, k)
        derivative norm_like (xs, k) (dy, dk) = (map (fun d -> 2.0 * d) dy, 3.0 * dk)
        let cube x = x ^ 3
        derivative cube x dy = 3.0 * x * x * dy
        let cube_tangent x = x ^ 3
        tangent cube_tangent x dx = 3.0 * x * x * dx
        let unused (x, y) = cube y
        let split xs = (sum xs, xs.(0))
        derivative split xs (ds, dx) = mapi (fun i x -> ds + (if i = 0 then dx else 0.0)) xs
    ";
    check(
        program,
        &[
            ("vjp norm_like ([| 1.0; 2.0 |], 5.0) ([| 10.0; 20.0 |], 1.0)", &[20.0, 40.0, 3.0]),
            ("jvp norm_like ([| 1.0; 2.0 |], 5.0) ([| 10.0; 20.0 |], 1.0)", &[20.0, 40.0, 3.0]),
            ("grad cube 2.0", &[12.0]),
            ("grad (grad cube) 2.0", &[12.0]),
            ("diff (grad cube) 2.0", &[12.0]),
            ("grad (diff cube) 2.0", &[12.0]),
            ("grad (grad cube_tangent) 2.0", &[12.0]),
            ("grad (diff cube_tangent) 2.0", &[12.0]),
            ("hessian (fun (x, y) -> x * cube y) (2.0, 3.0)", &[0.0, 27.0, 27.0, 36.0]),
            ("grad unused (1.0, 2.0)", &[0.0, 12.0]),
            ("grad (fun xs -> (let (s, x) = split xs in s * x)) [| 2.0; 3.0 |]", &[7.0, 2.0]),
        ],
    );
}

/// A rule is a program, so higher orders follow from it: by differentiating it, or on towers.
#[test]
fn rules_at_higher_orders() {
    let program = "
        let cube x = x ^ 3
        derivative cube x dy = 3.0 * x * x * dy
        let product x y = x * y
        tangent product x y dx dy = y * dx + x * dy
        let grow x = exp x
        tangent grow x dx = grow x * dx
        let shrink x = exp (-x)
        derivative shrink x dy = -(shrink x) * dy
        let wave (x, y) = (sin x * y, cos x)
        derivative wave (x, y) (a, b) = (a * cos x * y - b * sin x, a * sin x)
    ";
    let (sin, cos) = (0.4f64.sin(), 0.4f64.cos());
    check(
        program,
        &[
            ("taylor 4 cube 2.0", &[8.0, 12.0, 6.0, 1.0, 0.0]),
            ("taylor 3 (fun x -> product x (cube x)) 1.0", &[1.0, 4.0, 6.0, 4.0]),
            ("taylor 2 (fun x -> product 3.0 x) 1.0", &[3.0, 3.0, 0.0]),
            // The rules speak of the functions themselves.
            ("taylor 4 grow 0.0", &[1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0]),
            ("taylor 3 (fun x -> shrink (2.0 * x)) 0.0", &[1.0, -2.0, 2.0, -4.0 / 3.0]),
            ("grad (grad (grad grow)) 0.0", &[1.0]),
            ("diff (grad shrink) 0.0", &[1.0]),
            ("taylor 2 (fun x -> product 3.0 2.0) 1.0", &[6.0, 0.0, 0.0]),
            // sin x * x and cos x
            ("taylor 2 (fun x -> let (a, _) = wave (x, x) in a) 0.4", &[0.4 * sin, sin + 0.4 * cos, cos - 0.2 * sin]),
            (
                "grad (fun (x, y) -> let (a, b) = wave (x, y) in a * b) (0.4, 2.0)",
                &[2.0 * (cos * cos - sin * sin), sin * cos],
            ),
            ("grad (fun x -> cube 2.0 + x) 1.0", &[1.0]),
        ],
    );
}
