/* "durand_kerner" by hand: all roots side by side, so that GCC computes them in vector lanes. */
#include "hand.h"

enum { STEPS = 14 };

/* At each of n places z the polynomial y, and the product p of the distances to all others; real and imaginary parts are apart. If they are kept,
   what each factor starts from is a row of its own. */
static void values(int n, const double *c, const double *zr, const double *zi, double *restrict yr, double *restrict yi, double *restrict pr,
                   double *restrict pi, int keep) {
  for (int i = 0; i < n; i++) yr[i] = pr[i] = 1, yi[i] = pi[i] = 0;
  for (int k = 0; k < n; k++) {
    double *nr = yr + keep * n, *ni = yi + keep * n, a = c[n - 1 - k];
    for (int i = 0; i < n; i++) {
      double re = yr[i] * zr[i] - yi[i] * zi[i] + a, im = yr[i] * zi[i] + yi[i] * zr[i];
      nr[i] = re, ni[i] = im;
    }
    yr = nr, yi = ni;
  }
  for (int j = 0; j < n; j++) {
    double *nr = pr + keep * n, *ni = pi + keep * n, xr = zr[j], xi = zi[j];
    for (int i = 0; i < n; i++) {
      double dr = i == j ? 1 : zr[i] - xr, di = i == j ? 0 : zi[i] - xi;
      double re = pr[i] * dr - pi[i] * di, im = pr[i] * di + pi[i] * dr;
      nr[i] = re, ni[i] = im;
    }
    pr = nr, pi = ni;
  }
}

static void start(int n, double *zr, double *zi) {
  for (int k = 0; k < n; k++) {
    double angle = 2 * M_PI * k / n + 0.4;
    zr[k] = 1.1 * cos(angle), zi[k] = 1.1 * sin(angle);
  }
}

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static double f(int n, const double *c) {
  double *zr = room(6 * n), *zi = zr + n, *yr = zi + n, *yi = yr + n, *pr = yi + n, *pi = pr + n;
  start(n, zr, zi);
  for (int t = 0; t < STEPS; t++) {
    values(n, c, zr, zi, yr, yi, pr, pi, 0);
    for (int i = 0; i < n; i++) {
      double size = pr[i] * pr[i] + pi[i] * pi[i];
      zr[i] -= (yr[i] * pr[i] + yi[i] * pi[i]) / size;
      zi[i] -= (yi[i] * pr[i] - yr[i] * pi[i]) / size;
    }
  }
  double total = 0;
  for (int i = 0; i < n; i++) total += softplus(8 * (sqrt(zr[i] * zr[i] + zi[i] * zi[i]) - 0.9));
  return total;
}

/* The value, and the gradient in c_adj. The places of all steps are kept; the way back computes the products of a step again and keeps those. */
static double gradient(int n, const double *c, double *restrict c_adj) {
  int m = (n + 1) * n;
  double *z = room(2 * n * (STEPS + 1) + 4 * m + 10 * n);
  double *yr = z + 2 * n * (STEPS + 1), *yi = yr + m, *pr = yi + m, *pi = pr + m;
  /* What is given to z, to y and to p. */
  double *restrict ar = pi + m, *restrict ai = ar + n, *restrict qr = ai + n, *restrict qi = qr + n;
  double *restrict sr = qi + n, *restrict si = sr + n;
  double *ur = si + n, *ui = ur + n, *vr = ui + n, *vi = vr + n;
  start(n, z, z + n);
  for (int t = 0; t < STEPS; t++, z += 2 * n) {
    double *zr = z, *zi = z + n;
    values(n, c, zr, zi, ur, ui, vr, vi, 0);
    for (int i = 0; i < n; i++) {
      double size = vr[i] * vr[i] + vi[i] * vi[i];
      zr[2 * n + i] = zr[i] - (ur[i] * vr[i] + ui[i] * vi[i]) / size;
      zi[2 * n + i] = zi[i] - (ui[i] * vr[i] - ur[i] * vi[i]) / size;
    }
  }
  memset(c_adj, 0, sizeof(double) * n);
  double total = 0;
  for (int i = 0; i < n; i++) {
    double a = sqrt(z[i] * z[i] + z[n + i] * z[n + i]), x = 8 * (a - 0.9);
    total += softplus(x);
    double s = 8 / (1 + exp(-x)) / a;
    ar[i] = s * z[i], ai[i] = s * z[n + i];
  }
  for (int t = 0; t < STEPS; t++) {
    z -= 2 * n;
    const double *zr = z, *zi = z + n;
    values(n, c, zr, zi, yr, yi, pr, pi, 1);
    const double *qre = yr + n * n, *qim = yi + n * n, *pre = pr + n * n, *pim = pi + n * n;
    for (int i = 0; i < n; i++) {
      double pr = pre[i], pi = pim[i], over = 1 / (pr * pr + pi * pi);
      double wr = (qre[i] * pr + qim[i] * pi) * over, wi = (qim[i] * pr - qre[i] * pi) * over;
      double br = -(ar[i] * pr - ai[i] * pi) * over, bi = -(ai[i] * pr + ar[i] * pi) * over;
      qr[i] = br, qi[i] = bi;
      sr[i] = -(wr * br + wi * bi), si[i] = -(wr * bi - wi * br);
    }
    for (int k = n - 1; k >= 0; k--) {
      const double *fr = yr + k * n, *fi = yi + k * n;
      double sum = 0;
      for (int i = 0; i < n; i++) {
        sum += qr[i];
        ar[i] += fr[i] * qr[i] + fi[i] * qi[i], ai[i] += fr[i] * qi[i] - fi[i] * qr[i];
        double re = zr[i] * qr[i] + zi[i] * qi[i], im = zr[i] * qi[i] - zi[i] * qr[i];
        qr[i] = re, qi[i] = im;
      }
      c_adj[n - 1 - k] += sum;
    }
    for (int j = n - 1; j >= 0; j--) {
      const double *fr = pr + j * n, *fi = pi + j * n;
      double xr = zr[j], xi = zi[j], tr = 0, ti = 0;
      for (int i = 0; i < n; i++) {
        double dr = i == j ? 1 : zr[i] - xr, di = i == j ? 0 : zi[i] - xi;
        double gr = i == j ? 0 : fr[i] * sr[i] + fi[i] * si[i], gi = i == j ? 0 : fr[i] * si[i] - fi[i] * sr[i];
        tr += gr, ti += gi;
        ar[i] += gr, ai[i] += gi;
        double re = dr * sr[i] + di * si[i], im = dr * si[i] - di * sr[i];
        sr[i] = re, si[i] = im;
      }
      ar[j] -= tr, ai[j] -= ti;
    }
  }
  return total;
}

int main(void) {
  double c[] = {0.21, -0.35, 0.42, 0.13, -0.55, 0.31, 0.24, -0.4}, c_adj[8];
  volatile int n = 8;
  MEASURE(f(n, c), gradient(n, c, c_adj), c_adj[0]);
}
