/* Calling convention of compiled Gradus functions.

   Every function has the form   int NAME(const gradus_slot *in, gradus_slot *out);
   `in` holds one slot for each flattened parameter, `out` receives one for each flattened result. It returns 0, or the
   number of the failure; `gradus_failure` gives its text. After a failure `out` is untouched.

   Flattening: numbers and arrays of numbers are one slot; tuples and records are their parts in order; an array of tuples is a tuple of
   arrays; a variant is its tag (an integer, the position of the constructor) and then the fields of all constructors
   in order, those of other constructors being zero or empty.

   Input arrays stay the caller's: row-major, contiguous. Output arrays belong to the caller, who returns them
   with `gradus_release`. Functions may be called from several threads; an output is released on the thread that made it. */
#ifndef GRADUS_H
#define GRADUS_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct gradus_slot {
  union {
    double real;
    int64_t integer; /* also booleans, 0 or 1 */
    void *data;      /* double, int64_t, or uint8_t for booleans */
  } value;
  void *owner;      /* of an output array; null for inputs */
  int64_t dims[7];  /* of an array: as many as its rank */
} gradus_slot;

void gradus_release(gradus_slot *slot);

/* What the functions may use that are called from this thread. A step is an iteration of a loop or a call of a recursive function. */
typedef struct gradus_limits {
  int64_t stack;                     /* bytes of the machine's stack; 1 MiB unless said */
  int64_t memory;                    /* bytes of arrays that exist at the same time; INT64_MAX: no limit */
  int64_t steps;                     /* INT64_MAX: no limit */
  const volatile uint8_t *interrupt; /* ends the call soon after it has become nonzero; may be null */
} gradus_limits;

/* Null: no limits. A function that needs more fails. */
void gradus_set_limits(const gradus_limits *limits);

/* Loops of many independent iterations are cut into chunks. A runner calls chunk(job, k) once for each k from 0 to before `chunks`, on any threads
   and at the same time, and comes back when all calls have. The results have the same bits whatever it does. Null, as at the start: one chunk
   after the other on the thread of the call. It is set for the whole process, while none of the functions runs. */
typedef void (*gradus_runner)(void (*chunk)(void *job, int64_t k), void *job, int64_t chunks);
void gradus_set_runner(gradus_runner runner);

/* What a failure number says, and where. */
const char *gradus_failure(int code);
const char *gradus_place(int code);

#ifdef __cplusplus
}
#endif
#endif
