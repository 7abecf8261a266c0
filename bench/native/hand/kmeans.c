/* "kmeans": the sum of squared distances to the nearest centroids, and the gradient over the diagonal of the Hessian. */
#include "hand.h"

/* The nearest centroid and its squared distance. */
static int nearest(int k, int d, const double *centroids, const double *point, double *least) {
  int best = 0;
  *least = INFINITY;
  for (int c = 0; c < k; c++) {
    double distance = 0;
    for (int j = 0; j < d; j++) {
      double miss = point[j] - centroids[c * d + j];
      distance += miss * miss;
    }
    if (distance < *least) *least = distance, best = c;
  }
  return best;
}

void kmeans_cost(const gradus_slot *in, double *out) {
  const double *points = REALS(0), *centroids = REALS(1);
  int n = LENGTH(0), k = LENGTH(1), d = (int)in[0].dims[1];
  double total = 0, least;
  for (int p = 0; p < n; p++) {
    nearest(k, d, centroids, points + p * d, &least);
    total += least;
  }
  *out = total;
}

void kmeans_dir(const gradus_slot *in, double *out) {
  const double *points = REALS(0), *centroids = REALS(1);
  int n = LENGTH(0), k = LENGTH(1), d = (int)in[0].dims[1];
  double *diagonal = room(k), least;
  memset(diagonal, 0, sizeof(double) * k);
  memset(out, 0, sizeof(double) * k * d);
  for (int p = 0; p < n; p++) {
    int c = nearest(k, d, centroids, points + p * d, &least);
    diagonal[c] += 2; /* the same for each coordinate */
    for (int j = 0; j < d; j++) out[c * d + j] += 2 * (centroids[c * d + j] - points[p * d + j]);
  }
  for (int c = 0; c < k; c++)
    for (int j = 0; j < d; j++) out[c * d + j] /= diagonal[c];
}
