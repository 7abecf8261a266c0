//! `gradus build`: the C program of docs/native.md, compiled and run, and arrays, data and failures through the same convention.

mod support;

use std::process::Command;
use support::Folder;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first block of this language in the documentation.
fn documented(language: &str) -> String {
    let text = std::fs::read_to_string(root().join("docs/native.md")).expect("the documentation");
    let (_, after) = text.split_once(&format!("```{language}\n")).expect("a block");
    after.split_once("```").expect("its end").0.to_string()
}

/// Compiles `main.c` with some more files and gives what it prints.
fn compile_and_run(folder: &Folder, files: &[&str]) -> String {
    let program = folder.path().join("main");
    let compiled = Command::new("cc")
        .current_dir(folder.path())
        .args(["-w", "main.c"])
        .args(files)
        .args(["-o", "main", "-pthread", "-lmvec", "-lm"])
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(program).current_dir(folder.path()).output().expect("runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn the_documented_program_runs() {
    for kind in ["c", "so"] {
        let folder =
            Folder::new(&format!("build-{kind}")).with("model.gr", documented("ocaml")).with("main.c", documented("c"));
        let library = format!("model.{kind}");
        folder.run(&["build", "model.gr", "loss", "--grad", "-o", &library]).exits(0).says("wrote model.h");
        assert_eq!(compile_and_run(&folder, &[&format!("./{library}")]), "100, gradient (-400, 200)\n");
    }
}

const MIXED: &str = "type shape = Dot | Box of real * real\n\
                     data scale : real from \"scale.json\"\n\
                     let double (a : real[]) : real[] = map (fun x -> scale * x) a\n\
                     let area s = match s with Dot -> 0.0 | Box (w, h) -> w * h\n\
                     let pick (a : real[]) (i : int) : real = a.(i)\n";

const MIXED_MAIN: &str = "#include \"mixed.h\"\n#include <stdio.h>\n#include <string.h>\n\
    int main(void) {\n\
      double numbers[3] = {1, 2, 3};\n\
      gradus_slot in[3], out[1];\n\
      memset(in, 0, sizeof in);\n\
      in[0].value.data = numbers; in[0].dims[0] = 3;\n\
      in[1].value.real = 2.5;\n\
      if (mixed_double(in, out)) return 1;\n\
      double *doubled = out[0].value.data;\n\
      printf(\"%g %g %g of %d\\n\", doubled[0], doubled[1], doubled[2], (int)out[0].dims[0]);\n\
      gradus_release(&out[0]);\n\
      gradus_slot shape[3] = {{.value.integer = 1}, {.value.real = 2}, {.value.real = 3}};\n\
      if (mixed_area(shape, out)) return 1;\n\
      printf(\"%g\\n\", out[0].value.real);\n\
      in[1].value.integer = 7;\n\
      int code = mixed_pick(in, out);\n\
      printf(\"%d %s\\n\", code != 0, gradus_failure(code));\n\
      return 0;\n\
    }\n";

#[test]
fn arrays_data_variants_and_failures() {
    let folder = Folder::new("build-mixed").with("mixed.gr", MIXED).with("scale.json", "9").with("main.c", MIXED_MAIN);
    folder.run(&["build", "mixed.gr", "double", "area", "pick", "-o", "mixed.c"]).exits(0);
    let header = std::fs::read_to_string(folder.path().join("mixed.h")).expect("a header");
    for part in [
        "in[0]: real[], argument 1",
        "in[1]: real, data scale",
        "out[0]: real[], result",
        "argument 1, Box, component 2",
    ] {
        assert!(header.contains(part), "{part} is not in\n{header}");
    }
    let printed = compile_and_run(&folder, &["mixed.c"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["2.5 5 7.5 of 3", "6"], "{printed}");
    assert!(lines[2].starts_with("1 ") && lines[2].contains("index") && lines[2].contains("mixed.gr:5:"), "{printed}");
}

const THREADS_MAIN: &str = r#"
#include "long.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct { void (*chunk)(void *, int64_t); void *job; int64_t chunks, next; } work;
static int64_t most;

static void *take(void *nothing) {
  for (int64_t k; (k = __atomic_fetch_add(&work.next, 1, __ATOMIC_RELAXED)) < work.chunks;) work.chunk(work.job, k);
  return 0;
}

static void two_threads(void (*chunk)(void *, int64_t), void *job, int64_t chunks) {
  work.chunk = chunk, work.job = job, work.chunks = chunks, work.next = 0;
  if (chunks > most) most = chunks;
  pthread_t other;
  pthread_create(&other, 0, take, 0);
  take(0);
  pthread_join(other, 0);
}

static double xs[300000];

int main(void) {
  gradus_slot in[2], out[2];
  memset(in, 0, sizeof in);
  in[0].value.data = xs;
  in[0].dims[0] = 300000;
  in[1].value.integer = 300000;
  for (int i = 0; i < 300000; i++) xs[i] = 1.0 / (i + 1.0);
  double sums[2];
  for (int lent = 0; lent < 2; lent++) {
    gradus_set_runner(lent ? two_threads : 0);
    if (long_total_grad(in, out)) return 1;
    sums[lent] = out[0].value.real;
    double *slopes = out[1].value.data;
    printf("%.9f %.9f %.9f\n", out[0].value.real, slopes[0], slopes[1]);
    gradus_release(&out[1]);
  }
  printf("%d %d\n", memcmp(&sums[0], &sums[1], sizeof(double)), most > 1);
  in[1].value.integer = 300001;
  int code = long_walk(in, out);
  printf("%s\n", gradus_failure(code));
  return 0;
}
"#;

#[test]
fn loops_run_on_threads_that_are_lent() {
    // The sum of 300000 squares of 1/i, by Python; the slopes are 2/i.
    let text = "let total (a : real[]) : real = sum (map (fun x -> x * x) a)\n\
                let walk (a : real[]) (n : int) : real = sum (build n (fun i -> a.(i)))\n";
    let folder = Folder::new("build-threads").with("long.gr", text).with("main.c", THREADS_MAIN);
    for kind in ["c", "so"] {
        folder.run(&["build", "long.gr", "total", "walk", "--grad", "-o", &format!("long.{kind}")]).exits(0);
        let printed = compile_and_run(&folder, &[&format!("./long.{kind}")]);
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[..3], ["1.644930734 2.000000000 1.000000000", lines[0], "0 1"], "{printed}");
        assert!(lines[3].contains("index"), "{printed}");
    }
}

/// Keeps a result while later calls fail, and counts the blocks in which results have been.
const KEPT_MAIN: &str = r#"
#include "kept.h"
#include <stdio.h>
#include <string.h>

int main(void) {
  double numbers[100], first[100];
  gradus_slot in[2], kept, out;
  void *owners[1000];
  int failed = 0, wrong = 0, blocks = 0;
  memset(in, 0, sizeof in);
  for (int i = 0; i < 100; i++) numbers[i] = i, first[i] = 2.0 * i + 14.0;
  in[0].value.data = numbers;
  in[0].dims[0] = 100;
  in[1].value.integer = 7;
  if (kept_shifted(in, &kept)) return 1;
  for (int round = 0; round < 1000; round++) {
    in[1].value.integer = round % 2 ? 100 : 7;
    if (kept_shifted(in, &out)) {
      failed++;
      continue;
    }
    wrong += memcmp(out.value.data, first, sizeof first) != 0;
    int known = 0;
    for (int i = 0; i < blocks; i++) known |= owners[i] == out.owner;
    if (!known) owners[blocks++] = out.owner;
    gradus_release(&out);
  }
  wrong += memcmp(kept.value.data, first, sizeof first) != 0;
  gradus_release(&kept);
  printf("%d failed, %d wrong, %s\n", failed, wrong, blocks < 10 ? "in few blocks" : "each in a block of its own");
  return 0;
}
"#;

#[test]
fn a_failure_frees_what_the_call_had_and_nothing_else() {
    let text = "let shifted (a : real[]) (i : int) : real[] =\n\
                  let doubled = map (fun x -> 2.0 * x) a in\n\
                  if i < 50 then map (fun x -> x + doubled.(i)) doubled else map (fun x -> x - doubled.(i)) doubled\n";
    let folder = Folder::new("build-kept").with("kept.gr", text).with("main.c", KEPT_MAIN);
    folder.run(&["build", "kept.gr", "shifted", "-o", "kept.c"]).exits(0);
    assert_eq!(compile_and_run(&folder, &["kept.c"]), "500 failed, 0 wrong, in few blocks\n");
}

#[test]
fn mistakes() {
    let folder = Folder::new("build-mistakes").with("m.gr", "let f (x : real) = x\nlet s (f : real -> real) = f 1.0\n");
    folder.run(&["build", "m.gr", "f", "-o", "m.txt"]).exits(2).says(".so");
    folder.run(&["build", "m.gr", "-o", "m.c"]).exits(2);
    folder.run(&["build", "m.gr", "g", "-o", "m.c"]).exits(1).says("`g`");
    folder.run(&["build", "m.gr", "(fun x -> x + 1.0)", "-o", "m.c"]).exits(1).says("plain name");
    folder.run(&["build", "m.gr", "s", "-o", "m.c"]).exits(1).says("E0801");
    folder.run(&["build", "m.gr", "f", "-o", "missing/m.c"]).exits(1).says("cannot write");
}
