(* The executable part of the development, without the real numbers: type checker, transformations, evaluator over any numbers. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt.
Require Import Language Primitive Macro Forward Vector Continuation Delta Monadic Elaborate Checker.
Extraction Language OCaml.
Extraction "extracted.ml" infer erase ev D DT fwd vec cont dlt MD MT there accepts.
