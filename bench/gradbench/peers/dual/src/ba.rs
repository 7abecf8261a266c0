//! Bundle adjustment: two errors for each observation, which depend on 15 numbers.

use crate::number::{self, Number};
use crate::problems::{count, reals, Prepared};
use serde_json::{json, Value};

fn cross<D: Number>(a: [D; 3], b: [D; 3]) -> [D; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot<D: Number>(a: [D; 3], b: [D; 3]) -> D {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Rotation of x by the angle |r| about the axis r.
fn rotate<D: Number>(r: [D; 3], x: [D; 3]) -> [D; 3] {
    let squared = dot(r, r);
    if squared.re() == 0.0 {
        let turned = cross(r, x);
        return [0, 1, 2].map(|i| x[i] + turned[i]);
    }
    let angle = squared.sqrt();
    let axis = r.map(|r| r / angle);
    let (sin, cos) = angle.sin_cos();
    let (side, along) = (cross(axis, x), dot(axis, x) * (-cos + 1.0));
    [0, 1, 2].map(|i| x[i] * cos + side[i] * sin + axis[i] * along)
}

/// A camera has 3 numbers of rotation, 3 of centre, the focal length, 2 of principal point and 2 of distortion; then 3 of the point and the weight.
fn error<D: Number>(v: &[D], feature: [f64; 2]) -> [D; 2] {
    let seen = rotate([v[0], v[1], v[2]], [v[11] - v[3], v[12] - v[4], v[13] - v[5]]);
    let p = [seen[0] / seen[2], seen[1] / seen[2]];
    let r2 = p[0] * p[0] + p[1] * p[1];
    let stretch = v[9] * r2 + v[10] * r2 * r2 + 1.0;
    [0, 1].map(|i| v[14] * (v[6] * p[i] * stretch + v[7 + i] - feature[i]))
}

/// The protocol gives one camera, point, weight and feature; here they are repeated, n cameras, m points and p observations.
struct Scene {
    cameras: Vec<f64>,
    points: Vec<f64>,
    weights: Vec<f64>,
    features: Vec<f64>,
}

impl Scene {
    fn new(i: &Value) -> Scene {
        let repeated = |name: &str, times: &str| reals(&i[name]).repeat(count(&i[times]));
        Scene {
            cameras: repeated("cam", "n"),
            points: repeated("x", "m"),
            weights: repeated("w", "p"),
            features: repeated("feat", "p"),
        }
    }

    /// Camera and point of an observation.
    fn seen(&self, observation: usize) -> (usize, usize) {
        (observation % (self.cameras.len() / 11), observation % (self.points.len() / 3))
    }

    fn inputs(&self, observation: usize) -> ([f64; 15], [f64; 2]) {
        let (camera, point) = self.seen(observation);
        let mut v = [0.0; 15];
        v[..11].copy_from_slice(&self.cameras[11 * camera..][..11]);
        v[11..14].copy_from_slice(&self.points[3 * point..][..3]);
        v[14] = self.weights[observation];
        (v, [self.features[2 * observation], self.features[2 * observation + 1]])
    }
}

/// All errors of images, then those of weights.
pub fn objective(i: &Value) -> Prepared {
    let (scene, p) = (Scene::new(i), count(&i["p"]));
    let run = move || {
        let mut errors = Vec::with_capacity(3 * p);
        for observation in 0..p {
            let (v, feature) = scene.inputs(observation);
            errors.extend(error(&v, feature));
        }
        errors.extend(scene.weights.iter().map(|w| 1.0 - w * w));
        errors
    };
    let finish = move |errors: Vec<f64>| {
        json!({
            "reproj_error": {"elements": errors[..2], "repeated": p},
            "w_err": {"element": errors[2 * p], "repeated": p},
        })
    };
    Prepared::new(run, finish)
}

/// The values of the sparse Jacobian: 2 rows of 15 for each observation, then one for each weight. Which rows and columns they are in, is known.
pub fn jacobian(i: &Value) -> Prepared {
    let (scene, n, m, p) = (Scene::new(i), count(&i["n"]), count(&i["m"]), count(&i["p"]));
    let run = move || {
        let mut values = Vec::with_capacity(31 * p);
        for observation in 0..p {
            let (v, feature) = scene.inputs(observation);
            let rows = number::jacobian(|v| error(v, feature), &v);
            values.extend(rows.as_flattened());
        }
        values.extend(scene.weights.iter().map(|w| -2.0 * w));
        values
    };
    // The protocol wants the first 30 of everything and the last.
    let finish = move |values: Vec<f64>| {
        let weights = 11 * n + 3 * m;
        let row = (0..11).chain(11 * n..11 * n + 3).chain([weights]);
        let cols: Vec<usize> = row.clone().chain(row).chain([weights + p - 1]).collect();
        let rows: Vec<usize> = (0..30).map(|i| 15 * i).chain([31 * p]).collect();
        let vals: Vec<f64> = values[..30].iter().chain(values.last()).copied().collect();
        json!({"rows": rows, "cols": cols, "vals": vals})
    };
    Prepared::new(run, finish)
}
