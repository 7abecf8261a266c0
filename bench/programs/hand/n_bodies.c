/* "n_bodies" by hand: the pulls of one body on all others in vector lanes. As in the program, the forces are computed before and after each step. */
#include "hand.h"

enum { STEPS = 60 };
static const double H = 0.02;

/* Half a step with the forces on n bodies, whose x, y and z come one after another: the speeds after it. */
static void kick(int n, const double *m, const double *p, const double *v, double *w) {
  const double *x = p, *y = p + n, *z = y + n;
  double ax[n], ay[n], az[n];
  for (int i = 0; i < n; i++) ax[i] = ay[i] = az[i] = 0;
  for (int k = 0; k < n; k++) {
    double xk = x[k], yk = y[k], zk = z[k], mk = m[k];
    for (int i = 0; i < n; i++) {
      double dx = xk - x[i], dy = yk - y[i], dz = zk - z[i], s = dx * dx + dy * dy + dz * dz + 1e-4;
      double f = mk / (s * sqrt(s));
      ax[i] += f * dx, ay[i] += f * dy, az[i] += f * dz;
    }
  }
  for (int i = 0; i < n; i++) {
    w[i] = v[i] + H / 2 * ax[i];
    w[n + i] = v[n + i] + H / 2 * ay[i];
    w[2 * n + i] = v[2 * n + i] + H / 2 * az[i];
  }
}

/* The way back: what the speeds after it give to places and masses. */
static void back(int n, const double *m, const double *p, const double *va, double *pa, double *ma) {
  const double *x = p, *y = p + n, *z = y + n;
  double *xa = pa, *ya = pa + n, *za = ya + n, bx[n], by[n], bz[n];
  for (int i = 0; i < n; i++) bx[i] = H / 2 * va[i], by[i] = H / 2 * va[n + i], bz[i] = H / 2 * va[2 * n + i];
  for (int k = 0; k < n; k++) {
    double xk = x[k], yk = y[k], zk = z[k], mk = m[k], sm = 0, sx = 0, sy = 0, sz = 0;
    for (int i = 0; i < n; i++) {
      double dx = xk - x[i], dy = yk - y[i], dz = zk - z[i], s = dx * dx + dy * dy + dz * dz + 1e-4;
      double u = 1 / (s * sqrt(s)), f = mk * u;
      double along = dx * bx[i] + dy * by[i] + dz * bz[i], g = -3 * f * along / s;
      sm += u * along;
      double gx = f * bx[i] + g * dx, gy = f * by[i] + g * dy, gz = f * bz[i] + g * dz;
      sx += gx, sy += gy, sz += gz;
      xa[i] -= gx, ya[i] -= gy, za[i] -= gz;
    }
    ma[k] += sm, xa[k] += sx, ya[k] += sy, za[k] += sz;
  }
}

/* The distance from where the bodies were seen; the places after each step, if they are kept. */
static double run(int n, const double *m, const double *p0, const double *v0, const double *seen, double *ps, double *v,
                  int keep) {
  double *p = ps;
  memcpy(p, p0, sizeof(double) * 3 * n);
  memcpy(v, v0, sizeof(double) * 3 * n);
  for (int t = 0; t < STEPS; t++) {
    double *q = keep ? p + 3 * n : p;
    kick(n, m, p, v, v);
    for (int i = 0; i < 3 * n; i++) q[i] = p[i] + H * v[i];
    kick(n, m, q, v, v);
    p = q;
  }
  double total = 0;
  for (int i = 0; i < 3 * n; i++) total += (p[i] - seen[i]) * (p[i] - seen[i]);
  return total;
}

static double f(int n, const double *m, const double *p, const double *v, const double *seen) {
  double *places = room(6 * n);
  return run(n, m, p, v, seen, places, places + 3 * n, 0);
}

/* The value, and what masses, places and speeds get. */
static double gradient(int n, const double *m, const double *p0, const double *v0, const double *seen, double *g) {
  double *ps = room(3 * n * (STEPS + 2)), *v = ps + 3 * n * (STEPS + 1);
  double total = run(n, m, p0, v0, seen, ps, v, 1);
  double *ma = g, *pa = g + n, *va = pa + 3 * n, *p = ps + 3 * n * STEPS;
  memset(g, 0, sizeof(double) * 7 * n);
  for (int i = 0; i < 3 * n; i++) pa[i] = 2 * (p[i] - seen[i]);
  for (int t = 0; t < STEPS; t++, p -= 3 * n) {
    back(n, m, p, va, pa, ma);
    for (int i = 0; i < 3 * n; i++) va[i] += H * pa[i];
    back(n, m, p - 3 * n, va, pa, ma);
  }
  return total;
}

/* A planet on a circle around a sun of mass 1, a little tilted. */
static void planet(double *m, double *p, double *v, int n, int i, double mass, double radius, double angle) {
  double speed = 1 / sqrt(radius);
  m[i] = mass;
  p[i] = radius * cos(angle), p[n + i] = radius * sin(angle), p[2 * n + i] = 0.05 * radius;
  v[i] = -speed * sin(angle), v[n + i] = speed * cos(angle), v[2 * n + i] = 0.02;
}

int main(void) {
  volatile int bodies = 5;
  int n = bodies;
  double m[5] = {1}, p[15] = {0}, v[15] = {0}, seen[15] = {0}, ends[30], g[35];
  planet(m, p, v, n, 1, 0.002, 0.6, 0.3);
  planet(m, p, v, n, 2, 0.01, 1.0, 1.7);
  planet(m, p, v, n, 3, 0.003, 1.5, 3.9);
  planet(m, p, v, n, 4, 0.02, 2.4, 5.1);
  run(n, m, p, v, seen, ends, ends + 15, 0);
  for (int i = 0; i < 15; i++) seen[i] = 1.03 * ends[i];
  MEASURE(f(n, m, p, v, seen), gradient(n, m, p, v, seen, g), g[0]);
}
