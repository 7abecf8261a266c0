(* The elementary functions as Gradus computes them (src/elementary.rs); proofs/elementary.ml has those of OCaml. *)
open Extracted
external real1 : (int [@untagged]) -> (float [@unboxed]) -> (float [@unboxed]) = "native_only" "gradus_real1" [@@noalloc]
external real2 : (int [@untagged]) -> (float [@unboxed]) -> (float [@unboxed]) -> (float [@unboxed]) = "native_only" "gradus_real2" [@@noalloc]
external reali : (int [@untagged]) -> (float [@unboxed]) -> (int [@untagged]) -> (float [@unboxed]) = "native_only" "gradus_reali" [@@noalloc]
external round_to : (int [@untagged]) -> (float [@unboxed]) -> (int [@untagged]) = "native_only" "gradus_round" [@@noalloc]
let index1 = function PNeg -> 0 | PExp -> 1 | PLog -> 2 | PSqrt -> 3 | PSin -> 4 | PCos -> 5 | PTan -> 6 | PAsin -> 7 | PAcos -> 8 | PAtan -> 9
  | PSinh -> 10 | PCosh -> 11 | PTanh -> 12 | PLog1p -> 13 | PExpm1 -> 14 | PAbs -> 15 | PErf -> 16 | PLgamma -> 17
let index2 = function PAdd -> 0 | PSub -> 1 | PMul -> 2 | PDiv -> 3 | PPow -> 4 | PAtan2 -> 5 | PMax -> 6 | PMin -> 7
let prim1 p x = real1 (index1 p) x
let prim2 p x y = real2 (index2 p) x y
let primi p x k = reali (match p with PPowi -> 0 | PPolygamma -> 1) x k
let round r x = round_to (match r with Floor -> 0 | Round -> 1 | Truncate -> 2) x
