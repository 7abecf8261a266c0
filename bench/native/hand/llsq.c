/* "llsq": half the squared misfit of a polynomial to the sign of t, and its gradient in the same pass. */
#include "hand.h"

static double llsq(int n, int m, const double *x, double *x_adj) {
  double value = 0;
  if (x_adj) memset(x_adj, 0, sizeof(double) * m);
  for (int i = 0; i < n; i++) {
    double t = -1.0 + 2.0 * i / (n - 1), total = 0, power = 1;
    for (int j = 0; j < m; j++) {
      total += x[j] * power;
      power *= t;
    }
    double miss = (t < 0 ? -1.0 : t > 0 ? 1.0 : 0.0) - total;
    value += miss * miss;
    if (!x_adj) continue;
    power = 1;
    for (int j = 0; j < m; j++) {
      x_adj[j] -= miss * power;
      power *= t;
    }
  }
  return 0.5 * value;
}

void llsq_primal(const gradus_slot *in, double *out) { *out = llsq(INT(1), LENGTH(0), REALS(0), 0); }

void llsq_gradient(const gradus_slot *in, double *out) { llsq(INT(1), LENGTH(0), REALS(0), out); }
