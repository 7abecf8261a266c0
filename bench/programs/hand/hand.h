/* What the functions and gradients written by hand share: the measurement. */
#include "../../native/hand/room.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* The least time of a call in microseconds, of a hundred calls at a time. */
#define TIME(CALL)                               \
  ({                                             \
    double least = INFINITY;                     \
    for (int run = 0; run < 100; run++) {        \
      double start = now();                      \
      for (int k = 0; k < 100; k++) CALL;        \
      least = fmin(least, (now() - start) / 100); \
    }                                            \
    least;                                       \
  })

/* Both give the value. */
#define MEASURE(FUNCTION, GRADIENT, PARTIAL)                                                                   \
  do {                                                                                                         \
    double value = FUNCTION, same = GRADIENT;                                                                  \
    printf("value %.15g and %.15g, first partial derivative %.15g\n", value, same, PARTIAL);                   \
    double function_us = TIME(FUNCTION), gradient_us = TIME(GRADIENT);                                         \
    printf("function %.2f us, with gradient %.2f us: %.2f times the function\n", function_us, gradient_us,     \
           gradient_us / function_us);                                                                         \
  } while (0)
