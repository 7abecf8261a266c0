//! The inputs that are measured: the GradBench problems from their small to their largest default sizes, from a seed. (`ht` wants a hand
//! model with names, which `bench/gradbench` gives it.)

use gradus_native::Leaf;

/// A program, its function, the function that differentiates it, and inputs.
pub struct Problem {
    pub name: &'static str,
    pub function: &'static str,
    pub derivative: &'static str,
    pub cases: Vec<(String, Vec<Leaf>)>,
}

/// Numbers between -0.5 and 0.5, the same in every run.
pub struct Random(u64);

impl Random {
    fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    fn reals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.real()).collect()
    }

    fn vector(&mut self, n: usize) -> Leaf {
        Leaf::reals(self.reals(n))
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Leaf {
        Leaf::matrix(rows, columns, self.reals(rows * columns))
    }
}

fn int(n: usize) -> Leaf {
    Leaf::Int(n as i64)
}

pub fn all() -> Vec<Problem> {
    vec![gmm(), ba(), lstm(), kmeans(), llsq(), lse(), ode(), det(), particle(), saddle()]
}

fn gmm() -> Problem {
    let sizes = [(2, 5), (10, 25), (32, 10), (64, 25), (64, 100)];
    let case = |(d, k): (usize, usize)| {
        let (n, r) = (1000, &mut Random(7));
        let leaves = vec![
            int(d),
            int(k),
            int(n),
            r.matrix(n, d),
            int(0),
            Leaf::Real(1.0),
            r.vector(k),
            r.matrix(k, d),
            r.matrix(k, d),
            r.matrix(k, d * (d - 1) / 2),
        ];
        (format!("gmm d={d} k={k}"), leaves)
    };
    let cases = sizes.into_iter().map(case).collect();
    Problem { name: "gmm", function: "objective", derivative: "jacobian", cases }
}

fn ba() -> Problem {
    let case = |(n, m, p): (usize, usize, usize)| {
        let camera = [0.016, -0.026, -0.0045, 0.34, 0.54, -0.94, 480.0, 3.1, -1.4, -1.6e-2, 2.3e-2];
        let (point, feature) = ([-0.61, 0.57, -1.85], [-163.0, -131.0]);
        let leaves = vec![
            int(n),
            int(m),
            int(p),
            Leaf::reals(camera.to_vec()),
            Leaf::reals(point.to_vec()),
            Leaf::Real(0.7),
            Leaf::reals(feature.to_vec()),
        ];
        (format!("ba p={p}"), leaves)
    };
    let cases = [(49, 7776, 31843), (1197, 126327, 563734), (1936, 649672, 1255268)].into_iter().map(case).collect();
    Problem { name: "ba", function: "objective", derivative: "jacobian", cases }
}

fn lstm() -> Problem {
    let case = |(layers, c): (usize, usize)| {
        let (b, r) = (14, &mut Random(13));
        let bits = |v: &f64| f64::from(u8::from(*v > 0.0));
        let leaves = vec![
            r.matrix(2 * layers, 4 * b),
            r.matrix(3, b),
            r.matrix(2 * layers, b),
            Leaf::matrix(c, b, r.reals(c * b).iter().map(bits).collect::<Vec<_>>()),
        ];
        (format!("lstm l={layers} c={c}"), leaves)
    };
    let cases = [(2, 1024), (2, 4096), (6, 8192)].into_iter().map(case).collect();
    Problem { name: "lstm", function: "objective", derivative: "jacobian", cases }
}

fn kmeans() -> Problem {
    let case = |(k, n, d): (usize, usize, usize)| {
        let points = Random(17).reals(n * d);
        let centroids = points[(n - k) * d..].to_vec();
        (format!("kmeans k={k} n={n} d={d}"), vec![Leaf::matrix(n, d, points), Leaf::matrix(k, d, centroids)])
    };
    let cases = [(10, 10_000, 8), (100, 10_000, 16), (1000, 10_000, 16)].into_iter().map(case).collect();
    Problem { name: "kmeans", function: "cost", derivative: "dir", cases }
}

fn llsq() -> Problem {
    let case = |n: usize| (format!("llsq n={n} m=128"), vec![Random(5).vector(128), int(n)]);
    let cases = [64, 1024, 16_392].into_iter().map(case).collect();
    Problem { name: "llsq", function: "primal", derivative: "gradient", cases }
}

fn lse() -> Problem {
    let case = |n: usize| (format!("lse n={n}"), vec![Random(3).vector(n)]);
    let cases = [2500, 20_000, 1_280_000].into_iter().map(case).collect();
    Problem { name: "lse", function: "primal", derivative: "gradient", cases }
}

fn ode() -> Problem {
    let case = |(n, s): (usize, usize)| {
        let x: Vec<f64> = Random(9).reals(n).iter().map(|v| v + 0.5).collect();
        (format!("ode n={n} s={s}"), vec![Leaf::reals(x), int(s)])
    };
    // A step reaches four components further, so only the first of these has a gradient that is not 0.
    let cases = [(40, 10), (1000, 10), (1000, 100), (10_000, 10), (100_000, 100)].into_iter().map(case).collect();
    Problem { name: "ode", function: "primal", derivative: "gradient", cases }
}

fn det() -> Problem {
    let case = |l: usize| (format!("det l={l}"), vec![Random(11).vector(l * l), int(l)]);
    Problem {
        name: "det",
        function: "primal",
        derivative: "gradient",
        cases: [5, 8, 10].into_iter().map(case).collect(),
    }
}

fn particle() -> Problem {
    let cases = vec![("particle rr and ff".to_string(), vec![Leaf::Real(0.0)])];
    Problem { name: "particle", function: "rr", derivative: "ff", cases }
}

fn saddle() -> Problem {
    let cases = vec![("saddle rr and ff".to_string(), vec![Leaf::reals(vec![1.0, 1.0])])];
    Problem { name: "saddle", function: "rr", derivative: "ff", cases }
}
