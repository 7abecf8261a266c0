(* The elementary functions of OCaml.  For the comparison with the implementation, crates/oracle/elementary.ml takes this file's place. *)
open Extracted
(* Stirling's series and its derivatives, above 10; below by recurrence, and log |gamma| by reflection.  B_2, B_4, ... over their number *)
let bernoulli = [1, 1. /. 6.; 2, -1. /. 30.; 3, 1. /. 42.; 4, -1. /. 30.; 5, 5. /. 66.; 6, -691. /. 2730.; 7, 7. /. 6.]
let rec lgamma x =
  if x < 0.5 then log (Float.pi /. Float.abs (sin (Float.pi *. x))) -. lgamma (1. -. x)
  else if x < 10. then lgamma (x +. 1.) -. log x
  else (x -. 0.5) *. log x -. x +. 0.5 *. log (2. *. Float.pi)
    +. List.fold_left (fun s (i, b) -> let j = float (2 * i) in s +. b /. (j *. (j -. 1.)) *. x ** (1. -. j)) 0. bernoulli
let rec rising a n = if n = 0 then 1. else a *. rising (a +. 1.) (n - 1)
let rec polygamma k x =
  let sign = if k mod 2 = 0 then 1. else -1. in
  if x < 10. then polygamma k (x +. 1.) -. sign *. rising 1. k /. x ** float (k + 1)
  else if k = 0 then log x -. 0.5 /. x -. List.fold_left (fun s (i, b) -> s +. b /. float (2 * i) *. x ** float (- 2 * i)) 0. bernoulli
  else -. sign *. (rising 1. (k - 1) *. x ** float (- k) +. 0.5 *. rising 1. k *. x ** float (- k - 1)
    +. List.fold_left (fun s (i, b) -> s +. b /. float (2 * i) *. rising (float (2 * i)) k *. x ** float (- 2 * i - k)) 0. bernoulli)
let prim1 = function PNeg -> (~-.) | PExp -> exp | PLog -> log | PSqrt -> sqrt | PSin -> sin | PCos -> cos | PTan -> tan | PAsin -> asin | PAcos -> acos
  | PAtan -> atan | PSinh -> sinh | PCosh -> cosh | PTanh -> tanh | PLog1p -> log1p | PExpm1 -> expm1 | PAbs -> abs_float | PErf -> Float.erf | PLgamma -> lgamma
let prim2 = function PAdd -> (+.) | PSub -> (-.) | PMul -> ( *. ) | PDiv -> (/.) | PPow -> ( ** ) | PAtan2 -> atan2
  | PMax -> (fun x y -> if x > y then x else y) | PMin -> (fun x y -> if x < y then x else y)
let primi = function PPowi -> (fun x k -> x ** float_of_int k) | PPolygamma -> (fun x k -> polygamma k x)
let round r x = int_of_float (match r with Floor -> floor x | Round -> Float.round x | Truncate -> Float.trunc x)
