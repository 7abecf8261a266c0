/* "gmm": the log posterior of a Gaussian mixture, and its gradient in the same pass over the points. */
#include "hand.h"

static double wishart_constant(int d, int m, double gamma) {
  double n = d + m + 1, multigamma = 0.25 * d * (d - 1) * log(M_PI);
  for (int j = 0; j < d; j++) multigamma += lgamma(0.5 * n - 0.5 * j);
  return n * d * log(gamma / sqrt(2.0)) - multigamma;
}

/* v = Q (x - mu), for the lower triangular Q of a component. */
static void transform(int d, const double *diagonal, const double *l, const double *offset, double *v) {
  for (int i = 0; i < d; i++) v[i] = diagonal[i] * offset[i];
  for (int j = 0; j < d; j++) {
    const double *column = l + j * d - j * (j + 1) / 2 - j - 1;
    for (int i = j + 1; i < d; i++) v[i] += column[i] * offset[j];
  }
}

static double gmm(int d, int k, int n, const double *alpha, const double *mu, const double *q, const double *l,
                const double *x, double gamma, int m, double *alpha_adj, double *mu_adj, double *q_adj, double *l_adj) {
  int t = d * (d - 1) / 2;
  double *diagonal = room(3 * k * d + 2 * k), *offset = diagonal + k * d, *v = offset + k * d;
  double *scale = v + k * d, *terms = scale + k;
  double value = 0, constant = wishart_constant(d, m, gamma);
  int gradient = alpha_adj != 0;
  if (gradient) {
    memset(alpha_adj, 0, sizeof(double) * k);
    memset(mu_adj, 0, sizeof(double) * k * d);
    memset(q_adj, 0, sizeof(double) * k * d);
    memset(l_adj, 0, sizeof(double) * k * t);
  }
  for (int c = 0; c < k; c++) {
    double sum = 0;
    for (int i = 0; i < d; i++) {
      diagonal[c * d + i] = exp(q[c * d + i]);
      sum += q[c * d + i];
    }
    scale[c] = alpha[c] + sum;
  }
  for (int p = 0; p < n; p++) {
    for (int c = 0; c < k; c++) {
      double *o = offset + c * d, *w = v + c * d, square = 0;
      for (int i = 0; i < d; i++) o[i] = x[p * d + i] - mu[c * d + i];
      transform(d, diagonal + c * d, l + c * t, o, w);
      for (int i = 0; i < d; i++) square += w[i] * w[i];
      terms[c] = scale[c] - 0.5 * square;
    }
    double all = logsumexp(k, terms);
    value += all;
    if (!gradient) continue;
    for (int c = 0; c < k; c++) {
      double share = exp(terms[c] - all);
      double *o = offset + c * d, *w = v + c * d;
      alpha_adj[c] += share;
      for (int i = 0; i < d; i++) {
        double w_adj = -share * w[i];
        q_adj[c * d + i] += share + w_adj * o[i] * diagonal[c * d + i];
        mu_adj[c * d + i] -= w_adj * diagonal[c * d + i];
      }
      for (int j = 0; j < d; j++) {
        const double *column = l + c * t + j * d - j * (j + 1) / 2 - j - 1;
        double *column_adj = l_adj + c * t + j * d - j * (j + 1) / 2 - j - 1;
        double o_adj = 0;
        for (int i = j + 1; i < d; i++) {
          double w_adj = -share * w[i];
          column_adj[i] += w_adj * o[j];
          o_adj += w_adj * column[i];
        }
        mu_adj[c * d + j] -= o_adj;
      }
    }
  }
  double weights = logsumexp(k, alpha);
  value -= n * (0.5 * d * log(2 * M_PI) + weights);
  for (int c = 0; c < k; c++) {
    double spread = 0, sum = 0;
    for (int i = 0; i < d; i++) {
      spread += diagonal[c * d + i] * diagonal[c * d + i];
      sum += q[c * d + i];
    }
    for (int i = 0; i < t; i++) spread += l[c * t + i] * l[c * t + i];
    value += constant - 0.5 * gamma * gamma * spread + m * sum;
    if (!gradient) continue;
    alpha_adj[c] -= n * exp(alpha[c] - weights);
    for (int i = 0; i < d; i++) q_adj[c * d + i] += m - gamma * gamma * diagonal[c * d + i] * diagonal[c * d + i];
    for (int i = 0; i < t; i++) l_adj[c * t + i] -= gamma * gamma * l[c * t + i];
  }
  return value;
}

static double call(const gradus_slot *in, double *adj) {
  int d = INT(0), k = INT(1);
  double *mu = adj ? adj + k : 0, *q = adj ? mu + k * d : 0, *l = adj ? q + k * d : 0;
  return gmm(d, k, INT(2), REALS(6), REALS(7), REALS(8), REALS(9), REALS(3), REAL(5), INT(4), adj, mu, q, l);
}

void gmm_objective(const gradus_slot *in, double *out) { *out = call(in, 0); }

void gmm_jacobian(const gradus_slot *in, double *out) { call(in, out); }
