// ADOL-C on the problems that are functions of one vector. A tape is made anew for each derivative, since a program may take other branches at another point.

#include <adolc/adolc.h>
#include <cmath>
#include <vector>

namespace {

// How well the polynomial with coefficients x fits the sign function in n points of [-1, 1].
template <class T> T misfit(const T *x, int m, int n) {
  T total = 0.0;
  for (int i = 0; i < n; i++) {
    double t = -1.0 + 2.0 * i / (n - 1);
    T value = 0.0;
    for (int j = m - 1; j >= 0; j--) value = value * t + x[j];
    T rest = (t > 0) - (t < 0) - value;
    total += rest * rest;
  }
  return total * 0.5;
}

// The largest element is a constant for derivatives, as in the problem's formula.
template <class T> T log_sum_exp(const T *x, int m, double largest) {
  T total = 0.0;
  for (int i = 0; i < m; i++) total += exp(x[i] - largest);
  return largest + log(total);
}

// y0' = x0, yi' = xi y(i-1), from 0 to 2 by s steps of Runge-Kutta.
template <class T> std::vector<T> solve(const T *x, int m, int s) {
  double h = 2.0 / s;
  std::vector<T> y(m, T(0.0)), k1(m), k2(m), k3(m), k4(m), at(m);
  auto rate = [&](const std::vector<T> &y, std::vector<T> &k) {
    k[0] = x[0];
    for (int i = 1; i < m; i++) k[i] = x[i] * y[i - 1];
  };
  auto along = [&](double h, const std::vector<T> &k) {
    for (int i = 0; i < m; i++) at[i] = y[i] + h * k[i];
  };
  for (int step = 0; step < s; step++) {
    rate(y, k1);
    along(h / 2, k1);
    rate(at, k2);
    along(h / 2, k2);
    rate(at, k3);
    along(h, k3);
    rate(at, k4);
    for (int i = 0; i < m; i++) y[i] = y[i] + h / 6 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
  }
  return y;
}

// The determinant by expansion along the rows, over the columns that are left.
template <class T> T determinant(const T *a, int size, int row, unsigned left) {
  if (row == size) return T(1.0);
  T total = 0.0;
  double sign = 1.0;
  for (int column = 0; column < size; column++)
    if (left >> column & 1) {
      total += sign * a[row * size + column] * determinant(a, size, row + 1, left & ~(1u << column));
      sign = -sign;
    }
  return total;
}

enum Problem { HELLO, LLSQ, LSE, ODE, DET };

template <class T> T value(int problem, const T *x, int m, int extra, double largest) {
  switch (problem) {
  case LLSQ:
    return misfit(x, m, extra);
  case LSE:
    return log_sum_exp(x, m, largest);
  case ODE:
    return solve(x, m, extra).back();
  case DET:
    return determinant(x, extra, 0, (1u << extra) - 1);
  default:
    return x[0] * x[0];
  }
}

double largest_of(const double *x, int m) {
  double largest = x[0];
  for (int i = 1; i < m; i++) largest = std::fmax(largest, x[i]);
  return largest;
}

} // namespace

// The function; for ODE all of the solution.
extern "C" void primal(int problem, const double *x, int m, int extra, double *out) {
  if (problem == ODE) {
    std::vector<double> y = solve(x, m, extra);
    for (int i = 0; i < m; i++) out[i] = y[i];
  } else {
    *out = value(problem, x, m, extra, largest_of(x, m));
  }
}

extern "C" void derivative(int problem, const double *x, int m, int extra, double *out) {
  trace_on(1);
  std::vector<adouble> inside(m);
  for (int i = 0; i < m; i++) inside[i] <<= x[i];
  adouble y = value(problem, inside.data(), m, extra, largest_of(x, m));
  double result;
  y >>= result;
  trace_off();
  gradient(1, m, const_cast<double *>(x), out);
}
