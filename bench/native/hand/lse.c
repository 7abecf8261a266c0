/* "lse": the logarithm of a sum of exponentials, and its gradient. */
#include "hand.h"

void lse_primal(const gradus_slot *in, double *out) { *out = logsumexp(LENGTH(0), REALS(0)); }

void lse_gradient(const gradus_slot *in, double *x_adj) {
  const double *x = REALS(0);
  int n = LENGTH(0);
  double value = logsumexp(n, x);
  for (int i = 0; i < n; i++) x_adj[i] = exp(x[i] - value);
}
