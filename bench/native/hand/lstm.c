/* "lstm": the loss of a stack of LSTM layers with diagonal weights on a sequence of characters in bits, and its gradient. */
#include "hand.h"

/* What a layer computes in a step, b numbers each, one after another: `lit` is the tanh of the cell. */
enum { HIDDEN, CELL, FORGET, INGATE, OUTGATE, CHANGE, LIT, KINDS };

typedef struct {
  int layers, b, steps;
  const double *main, *extra, *state, *sequence;
} problem;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static problem problem_of(const gradus_slot *in) {
  int layers = LENGTH(0) / 2, b = (int)in[1].dims[1];
  return (problem){layers, b, LENGTH(3) - 1, REALS(0), REALS(1), REALS(2), REALS(3)};
}

/* One layer in one step; w holds the weights of the four gates, then their biases. */
static void layer(int b, const double *w, const double *before, const double *x, double *now) {
  const double *bias = w + 4 * b;
  for (int i = 0; i < b; i++) {
    double hidden = before[HIDDEN * b + i];
    double forget = sigmoid(x[i] * w[i] + bias[i]);
    double ingate = sigmoid(hidden * w[b + i] + bias[b + i]);
    double outgate = sigmoid(x[i] * w[2 * b + i] + bias[2 * b + i]);
    double change = tanh(hidden * w[3 * b + i] + bias[3 * b + i]);
    double cell = before[CELL * b + i] * forget + ingate * change, lit = tanh(cell);
    now[HIDDEN * b + i] = outgate * lit, now[CELL * b + i] = cell;
    now[FORGET * b + i] = forget, now[INGATE * b + i] = ingate, now[OUTGATE * b + i] = outgate;
    now[CHANGE * b + i] = change, now[LIT * b + i] = lit;
  }
}

/* The sum over the sequence, from which the loss is made. `kept` has room for all steps and the state before them if `all`, else for one; so
   has `share`, the part of each bit in the sum of exponentials, for the steps. */
static double run(problem p, int all, double *kept, double *share) {
  int b = p.b, row = KINDS * b, step = p.layers * row;
  double total = 0, scaled[b], y[b];
  for (int l = 0; l < p.layers; l++) memcpy(kept + l * row, p.state + 2 * l * b, sizeof(double) * 2 * b);
  for (int t = 0; t < p.steps; t++) {
    double *before = kept + (all ? (size_t)t * step : 0), *now = before + (all ? step : 0), sum = 2;
    const double *x = scaled, *target = p.sequence + (t + 1) * b;
    for (int i = 0; i < b; i++) scaled[i] = p.sequence[t * b + i] * p.extra[i];
    for (int l = 0; l < p.layers; l++) {
      layer(b, p.main + 8 * l * b, before + l * row, x, now + l * row);
      x = now + l * row;
    }
    for (int i = 0; i < b; i++) {
      y[i] = x[i] * p.extra[b + i] + p.extra[2 * b + i];
      share[i] = exp(y[i]);
      sum += share[i];
    }
    double log_sum = log(sum);
    for (int i = 0; i < b; i++) {
      share[i] /= sum;
      total += target[i] * (y[i] - log_sum);
    }
    if (all) share += b;
  }
  return total;
}

/* The way back through a layer. hidden_adj and cell_adj go from after the step to before it; hidden_adj has what the layer above gave. */
static void layer_back(int b, const double *w, const double *before, const double *x, const double *now, double *w_adj,
                       double *hidden_adj, double *cell_adj, double *x_adj) {
  double *bias_adj = w_adj + 4 * b;
  for (int i = 0; i < b; i++) {
    double forget = now[FORGET * b + i], ingate = now[INGATE * b + i], outgate = now[OUTGATE * b + i];
    double change = now[CHANGE * b + i], lit = now[LIT * b + i], hidden = before[HIDDEN * b + i];
    double c_adj = cell_adj[i] + hidden_adj[i] * outgate * (1 - lit * lit);
    /* Of what is inside the sigmoids and the tanh. */
    double forget_adj = c_adj * before[CELL * b + i] * forget * (1 - forget);
    double ingate_adj = c_adj * change * ingate * (1 - ingate);
    double outgate_adj = hidden_adj[i] * lit * outgate * (1 - outgate);
    double change_adj = c_adj * ingate * (1 - change * change);
    w_adj[i] += forget_adj * x[i], bias_adj[i] += forget_adj;
    w_adj[b + i] += ingate_adj * hidden, bias_adj[b + i] += ingate_adj;
    w_adj[2 * b + i] += outgate_adj * x[i], bias_adj[2 * b + i] += outgate_adj;
    w_adj[3 * b + i] += change_adj * hidden, bias_adj[3 * b + i] += change_adj;
    x_adj[i] = forget_adj * w[i] + outgate_adj * w[2 * b + i];
    hidden_adj[i] = ingate_adj * w[b + i] + change_adj * w[3 * b + i];
    cell_adj[i] = c_adj * forget;
  }
}

void lstm_objective(const gradus_slot *in, double *out) {
  problem p = problem_of(in);
  double kept[p.layers * KINDS * p.b], share[p.b];
  *out = -run(p, 0, kept, share) / (p.steps * p.b);
}

void lstm_jacobian(const gradus_slot *in, double *out) {
  problem p = problem_of(in);
  int b = p.b, row = KINDS * b, step = p.layers * row;
  double *kept = room((size_t)(p.steps + 1) * step + (size_t)p.steps * b), *shares = kept + (size_t)(p.steps + 1) * step;
  double hidden_adj[p.layers * b], cell_adj[p.layers * b], x_adj[b], scaled[b];
  double *main_adj = out, *extra_adj = out + 8 * p.layers * b;
  run(p, 1, kept, shares);
  memset(out, 0, sizeof(double) * (8 * p.layers + 3) * b);
  memset(hidden_adj, 0, sizeof hidden_adj);
  memset(cell_adj, 0, sizeof cell_adj);
  for (int t = p.steps - 1; t >= 0; t--) {
    const double *before = kept + (size_t)t * step, *now = before + step, *share = shares + t * b;
    const double *target = p.sequence + (t + 1) * b, *top = now + (p.layers - 1) * row;
    double bits = 0, total_adj = -1.0 / (p.steps * b);
    for (int i = 0; i < b; i++) bits += target[i];
    for (int i = 0; i < b; i++) {
      double y_adj = total_adj * (target[i] - bits * share[i]);
      extra_adj[b + i] += y_adj * top[i];
      extra_adj[2 * b + i] += y_adj;
      x_adj[i] = y_adj * p.extra[b + i];
      scaled[i] = p.sequence[t * b + i] * p.extra[i];
    }
    for (int l = p.layers - 1; l >= 0; l--) {
      const double *x = l > 0 ? now + (l - 1) * row : scaled;
      for (int i = 0; i < b; i++) hidden_adj[l * b + i] += x_adj[i];
      layer_back(b, p.main + 8 * l * b, before + l * row, x, now + l * row, main_adj + 8 * l * b, hidden_adj + l * b, cell_adj + l * b, x_adj);
    }
    for (int i = 0; i < b; i++) extra_adj[i] += x_adj[i] * p.sequence[t * b + i];
  }
}
