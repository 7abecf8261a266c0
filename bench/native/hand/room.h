#include <stdlib.h>

/* Room for so many numbers, the same in each call, each file its own: the runtime of compiled programs keeps its memory from call to call too,
   and fresh pages cost more than some of the functions. */
static inline double *room(size_t n) {
  static double *kept;
  static size_t size;
  if (n > size) {
    free(kept);
    kept = malloc(sizeof(double) * n);
    size = n;
  }
  return kept;
}
