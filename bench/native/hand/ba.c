/* "ba": the weighted errors of projected points, and their sparse Jacobian. */
#include "hand.h"

/* A camera has 3 numbers of rotation, 3 of centre, the focal length, 2 of principal point and 2 of radial distortion. */
enum { CENTRE = 3, FOCAL = 6, PRINCIPAL = 7, RADIAL = 9, CAMERA = 11, POINT = 3, WIDTH = 15 };

typedef struct {
  int n, m, p;
  double *cameras, *points, *weights, *features, *end;
} problem;

typedef struct {
  double x, y, z;
} vec;

/* What a projection computes on its way. */
typedef struct {
  vec offset, axis, turned;
  double angle, per_angle, sine, cosine, along, per_depth, px, py, r2, stretch;
} projection;

static vec read(const double *from) { return (vec){from[0], from[1], from[2]}; }
static void write(vec a, double *to) { to[0] = a.x, to[1] = a.y, to[2] = a.z; }
static vec plus(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static vec times(double s, vec a) { return (vec){s * a.x, s * a.y, s * a.z}; }
static double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec cross(vec a, vec b) { return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

/* An angle of 0 has no axis: turned is then the product with the rotation itself. */
static projection project(const double *camera, const double *point) {
  projection o;
  vec rotation = read(camera), seen;
  o.offset = plus(read(point), times(-1, read(camera + CENTRE)));
  o.angle = sqrt(dot(rotation, rotation));
  if (o.angle == 0) {
    o.turned = cross(rotation, o.offset);
    seen = plus(o.offset, o.turned);
  } else {
    o.per_angle = 1 / o.angle;
    o.axis = times(o.per_angle, rotation);
    o.sine = sin(o.angle), o.cosine = cos(o.angle);
    o.turned = cross(o.axis, o.offset);
    o.along = dot(o.axis, o.offset);
    seen = plus(plus(times(o.cosine, o.offset), times(o.sine, o.turned)), times((1 - o.cosine) * o.along, o.axis));
  }
  o.per_depth = 1 / seen.z;
  o.px = seen.x * o.per_depth, o.py = seen.y * o.per_depth;
  o.r2 = o.px * o.px + o.py * o.py;
  o.stretch = 1 + camera[RADIAL] * o.r2 + camera[RADIAL + 1] * o.r2 * o.r2;
  return o;
}

/* From the cotangent of what is seen to those of the rotation and of the offset. */
static void turn_back(const double *camera, const projection *o, vec seen_adj, vec *rotation_adj, vec *offset_adj) {
  vec across = cross(o->offset, seen_adj);
  if (o->angle == 0) {
    *rotation_adj = across;
    *offset_adj = plus(seen_adj, cross(seen_adj, read(camera)));
    return;
  }
  double rest = 1 - o->cosine, along_adj = dot(o->axis, seen_adj);
  double angle_adj = o->cosine * dot(o->turned, seen_adj) + o->sine * (o->along * along_adj - dot(o->offset, seen_adj));
  vec twist = cross(seen_adj, o->axis);
  *offset_adj = plus(plus(times(o->cosine, seen_adj), times(o->sine, twist)), times(rest * along_adj, o->axis));
  vec axis_adj = plus(times(o->sine, across), times(rest, plus(times(o->along, seen_adj), times(along_adj, o->offset))));
  double radius_adj = angle_adj - dot(o->axis, axis_adj) * o->per_angle;
  *rotation_adj = plus(times(o->per_angle, axis_adj), times(radius_adj, o->axis));
}

/* The row of the Jacobian of one of the two errors: `axis` is 0 or 1, `at` its coordinate. */
static void row(const double *camera, double weight, const double *feature, const projection *o, int axis, double *out) {
  double at = axis ? o->py : o->px, scale = weight * camera[FOCAL];
  double r2_adj = scale * at * (camera[RADIAL] + 2 * camera[RADIAL + 1] * o->r2);
  double px_adj = 2 * o->px * r2_adj, py_adj = 2 * o->py * r2_adj;
  if (axis) py_adj += scale * o->stretch;
  else px_adj += scale * o->stretch;
  vec rotation_adj, offset_adj;
  turn_back(camera, o, times(o->per_depth, (vec){px_adj, py_adj, -(o->px * px_adj + o->py * py_adj)}), &rotation_adj, &offset_adj);
  write(rotation_adj, out);
  write(times(-1, offset_adj), out + CENTRE);
  out[FOCAL] = weight * at * o->stretch;
  out[PRINCIPAL] = axis ? 0 : weight;
  out[PRINCIPAL + 1] = axis ? weight : 0;
  out[RADIAL] = scale * at * o->r2;
  out[RADIAL + 1] = scale * at * o->r2 * o->r2;
  write(offset_adj, out + CAMERA);
  out[CAMERA + POINT] = camera[FOCAL] * at * o->stretch + camera[PRINCIPAL + axis] - feature[axis];
}

/* The protocol gives one of each, to be repeated. */
static double *repeated(int times, int n, const double *numbers, double *all) {
  for (int t = 0; t < times; t++)
    for (int i = 0; i < n; i++) all[t * n + i] = numbers[i];
  return all + times * n;
}

static problem problem_of(const gradus_slot *in, double *to) {
  problem b = {.n = INT(0), .m = INT(1), .p = INT(2), .cameras = to};
  b.points = repeated(b.n, CAMERA, REALS(3), b.cameras);
  b.weights = repeated(b.m, POINT, REALS(4), b.points);
  b.features = repeated(b.p, 1, &REAL(5), b.weights);
  b.end = repeated(b.p, 2, REALS(6), b.features);
  return b;
}

/* Of a problem and so many numbers for each observation. */
static double *room_of(const gradus_slot *in, int each) {
  return room((size_t)CAMERA * INT(0) + POINT * INT(1) + (size_t)(3 + each) * INT(2) + 1);
}

void ba_objective(const gradus_slot *in, double *out) {
  problem b = problem_of(in, room_of(in, 3));
  double *errors = b.end, *weight_errors = errors + 2 * b.p;
  for (int k = 0; k < b.p; k++) {
    const double *camera = b.cameras + k % b.n * CAMERA, *feature = b.features + 2 * k;
    projection o = project(camera, b.points + k % b.m * POINT);
    errors[2 * k] = b.weights[k] * (camera[FOCAL] * o.px * o.stretch + camera[PRINCIPAL] - feature[0]);
    errors[2 * k + 1] = b.weights[k] * (camera[FOCAL] * o.py * o.stretch + camera[PRINCIPAL + 1] - feature[1]);
  }
  for (int k = 0; k < b.p; k++) weight_errors[k] = 1 - b.weights[k] * b.weights[k];
  out[0] = errors[0], out[1] = errors[1], out[2] = b.p;
  out[3] = weight_errors[0], out[4] = b.p;
}

/* The columns of an observation's block, the same for both of its rows. */
static void columns(problem b, int k, int64_t *out) {
  for (int i = 0; i < CAMERA; i++) out[i] = CAMERA * (k % b.n) + i;
  for (int i = 0; i < POINT; i++) out[CAMERA + i] = CAMERA * b.n + POINT * (k % b.m) + i;
  out[CAMERA + POINT] = CAMERA * b.n + POINT * b.m + k;
  memcpy(out + WIDTH, out, sizeof(int64_t) * WIDTH);
}

/* All rows, columns and values of the sparse matrix are made; the protocol wants the first 30 of each and the last. */
void ba_jacobian(const gradus_slot *in, double *out) {
  problem b = problem_of(in, room_of(in, 65));
  int p = b.p;
  double *vals = b.end;
  int64_t *cols = (int64_t *)(vals + 31 * p), *rows = cols + 31 * p;
  for (int k = 0; k < p; k++) {
    const double *camera = b.cameras + k % b.n * CAMERA, *feature = b.features + 2 * k;
    projection o = project(camera, b.points + k % b.m * POINT);
    row(camera, b.weights[k], feature, &o, 0, vals + 30 * k);
    row(camera, b.weights[k], feature, &o, 1, vals + 30 * k + WIDTH);
    columns(b, k, cols + 30 * k);
    rows[2 * k] = 30 * k, rows[2 * k + 1] = 30 * k + WIDTH;
  }
  for (int k = 0; k < p; k++) {
    rows[2 * p + k] = 30 * p + k;
    cols[30 * p + k] = CAMERA * b.n + POINT * b.m + k;
    vals[30 * p + k] = -2 * b.weights[k];
  }
  rows[3 * p] = 31 * p;
  for (int i = 0; i < 30; i++) out[i] = rows[i], out[31 + i] = cols[i], out[62 + i] = vals[i];
  out[30] = rows[3 * p], out[61] = cols[31 * p - 1], out[92] = vals[31 * p - 1];
}
