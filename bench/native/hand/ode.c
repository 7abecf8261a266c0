/* "ode": steps of the classical Runge-Kutta method, and the gradient of the last component. */
#include "hand.h"

/* The slopes k1, k2 and k3 at y, one after another; k4 is used where it is computed. */
static void slopes(int n, double h, const double *x, const double *y, double *k1) {
  double *k2 = k1 + n, *k3 = k2 + n;
  k1[0] = k2[0] = k3[0] = x[0];
  for (int i = 1; i < n; i++) k1[i] = x[i] * y[i - 1];
  for (int i = 1; i < n; i++) k2[i] = x[i] * (y[i - 1] + h / 2 * k1[i - 1]);
  for (int i = 1; i < n; i++) k3[i] = x[i] * (y[i - 1] + h / 2 * k2[i - 1]);
}

static void step(int n, double h, const double *x, const double *y, double *k1, double *next) {
  double *k2 = k1 + n, *k3 = k2 + n;
  slopes(n, h, x, y, k1);
  next[0] = y[0] + h * x[0];
  for (int i = 1; i < n; i++) {
    double k4 = x[i] * (y[i - 1] + h * k3[i - 1]);
    next[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4);
  }
}

/* The way back through a step, from next_adj to y_adj; the cotangent of k4 is h / 6 of next_adj. Without restrict, GCC
   finds too much to compare in the last loop to make it one of vectors. */
static void back(int n, double h, const double *x, const double *y, const double *k1, const double *restrict next_adj, double *k1_adj,
                 double *restrict x_adj, double *restrict y_adj) {
  const double *k2 = k1 + n, *k3 = k2 + n;
  double *k2_adj = k1_adj + n, *k3_adj = k2_adj + n, last = next_adj[n - 1];
  for (int i = 1; i < n; i++) k3_adj[i - 1] = h / 3 * next_adj[i - 1] + h * x[i] * (h / 6 * next_adj[i]);
  k3_adj[n - 1] = h / 3 * last;
  for (int i = 1; i < n; i++) k2_adj[i - 1] = h / 3 * next_adj[i - 1] + h / 2 * x[i] * k3_adj[i];
  k2_adj[n - 1] = h / 3 * last;
  for (int i = 1; i < n; i++) k1_adj[i - 1] = h / 6 * next_adj[i - 1] + h / 2 * x[i] * k2_adj[i];
  k1_adj[n - 1] = h / 6 * last;
  x_adj[0] += h / 6 * next_adj[0] + k3_adj[0] + k2_adj[0] + k1_adj[0];
  for (int i = 1; i < n; i++) {
    double k4_adj = h / 6 * next_adj[i], before = y[i - 1];
    x_adj[i] += k4_adj * (before + h * k3[i - 1]) + k3_adj[i] * (before + h / 2 * k2[i - 1]) +
                k2_adj[i] * (before + h / 2 * k1[i - 1]) + k1_adj[i] * before;
    y_adj[i - 1] = next_adj[i - 1] + x[i] * (k4_adj + k3_adj[i] + k2_adj[i] + k1_adj[i]);
  }
  y_adj[n - 1] = last;
}

void ode_primal(const gradus_slot *in, double *out) {
  const double *x = REALS(0);
  int n = LENGTH(0), s = INT(1);
  double *k = room(5 * n), *y = k + 3 * n, *next = y + n;
  memset(y, 0, sizeof(double) * n);
  for (int t = 0; t < s; t++) {
    step(n, 2.0 / s, x, y, k, next);
    double *last = y;
    y = next, next = last;
  }
  memcpy(out, y, sizeof(double) * n);
}

/* y and its slopes are kept of each step: to compute the slopes again takes longer than to write and read them. */
void ode_gradient(const gradus_slot *in, double *x_adj) {
  const double *x = REALS(0);
  int n = LENGTH(0), s = INT(1);
  size_t row = 4 * n;
  double h = 2.0 / s, *k_adj = room(row * s + 5 * n), *y_adj = k_adj + 3 * n, *next_adj = y_adj + n, *y = next_adj + n;
  memset(y, 0, sizeof(double) * n);
  for (int t = 0; t < s - 1; t++, y += row) step(n, h, x, y, y + n, y + row);
  slopes(n, h, x, y, y + n);
  memset(x_adj, 0, sizeof(double) * n);
  memset(next_adj, 0, sizeof(double) * n);
  next_adj[n - 1] = 1;
  for (int t = 0; t < s; t++, y -= row) {
    back(n, h, x, y, y + n, next_adj, k_adj, x_adj, y_adj);
    double *last = next_adj;
    next_adj = y_adj, y_adj = last;
  }
}
