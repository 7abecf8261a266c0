(* The elementary functions of OCaml.  For the comparison with the implementation, crates/oracle/elementary.ml takes this file's place. *)
open Extracted
let prim1 = function PNeg -> (~-.) | PExp -> exp | PLog -> log | PSqrt -> sqrt | PSin -> sin | PCos -> cos | PTan -> tan | PAsin -> asin | PAcos -> acos
  | PAtan -> atan | PSinh -> sinh | PCosh -> cosh | PTanh -> tanh | PLog1p -> log1p | PExpm1 -> expm1 | PAbs -> abs_float
let prim2 = function PAdd -> (+.) | PSub -> (-.) | PMul -> ( *. ) | PDiv -> (/.) | PPow -> ( ** ) | PAtan2 -> atan2
  | PMax -> (fun x y -> if x > y then x else y) | PMin -> (fun x y -> if x < y then x else y)
let powi x k = x ** float_of_int k
let round r x = int_of_float (match r with Floor -> floor x | Round -> Float.round x | Truncate -> Float.trunc x)
