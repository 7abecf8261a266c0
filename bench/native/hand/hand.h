/* What the functions and derivatives written by hand share. Each NAME_FUNCTION gets the inputs as a compiled Gradus function does, and writes
   the numbers of its results one after another. They are the limit that compiled Gradus is measured against, and compiled with the same flags. */
#include "gradus.h"
#include "room.h"
#include <math.h>
#include <string.h>

#define REALS(i) ((const double *)in[i].value.data)
#define REAL(i) (in[i].value.real)
#define INT(i) ((int)in[i].value.integer)
#define LENGTH(i) ((int)in[i].dims[0])

static inline double logsumexp(int n, const double *a) {
  double top = a[0], sum = 0;
  for (int i = 1; i < n; i++) top = a[i] > top ? a[i] : top;
  for (int i = 0; i < n; i++) sum += exp(a[i] - top);
  return top + log(sum);
}
