/* "det": the determinant by expansion along the first row, recursively, and its gradient. */
#include "hand.h"

/* The columns that are left are a list: next[c] is the one after c, next[l] the first, and l the end. */
static double minor(int l, int row, const double *a, int *next) {
  if (row == l - 1) return a[row * l + next[l]];
  double total = 0, sign = 1;
  for (int before = l, c = next[l]; c != l; before = c, c = next[c]) {
    next[before] = next[c];
    total += sign * a[row * l + c] * minor(l, row + 1, a, next);
    next[before] = c;
    sign = -sign;
  }
  return total;
}

/* The minor, and what its cotangent gives to the entries. The cotangent of a smaller minor does not depend on any minor below, so it is known
   on the way down, and one pass does both. */
static double minor_back(int l, int row, const double *a, int *next, double adj, double *a_adj) {
  if (row == l - 1) {
    a_adj[row * l + next[l]] += adj;
    return a[row * l + next[l]];
  }
  double total = 0, sign = 1;
  for (int before = l, c = next[l]; c != l; before = c, c = next[c]) {
    double entry = sign * a[row * l + c];
    next[before] = next[c];
    double smaller = minor_back(l, row + 1, a, next, adj * entry, a_adj);
    next[before] = c;
    total += entry * smaller;
    a_adj[row * l + c] += sign * adj * smaller;
    sign = -sign;
  }
  return total;
}

static void all_columns(int l, int *next) {
  next[l] = 0;
  for (int c = 0; c < l; c++) next[c] = c + 1;
}

void det_primal(const gradus_slot *in, double *out) {
  int l = INT(1), next[l + 1];
  all_columns(l, next);
  *out = minor(l, 0, REALS(0), next);
}

void det_gradient(const gradus_slot *in, double *a_adj) {
  int l = INT(1), next[l + 1];
  all_columns(l, next);
  memset(a_adj, 0, sizeof(double) * l * l);
  minor_back(l, 0, REALS(0), next, 1, a_adj);
}
