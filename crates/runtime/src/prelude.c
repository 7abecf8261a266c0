/* The runtime of a compiled Gradus module: memory, failure, mathematics. Generated code follows. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GR_RARE(x) __builtin_expect(!!(x), 0)

/* Memory. A block is counted by its holders; when nobody holds it, it waits in a list of its size for the next one. The blocks of
   a running call are linked, so that a failure can free them. */

typedef struct gr_block {
  int64_t holders;
  int64_t size_class;
  struct gr_block *next, *previous;
  char padding[32];
} gr_block; /* 64 bytes, so that the data after it is aligned for vectors */

typedef struct {
  gr_block live;
  gr_block *waiting[256];
  jmp_buf *failure;
  char *stack_end;
} gr_thread;

static __thread gr_thread gr_self;
static __thread int64_t gr_stack = 1 << 20;

void gradus_stack(int64_t bytes) { gr_stack = bytes; }

/* Sizes in units of 64 bytes are rounded up to m * 2^s with m from 5 to 8: four classes for each power of two. */
static int64_t gr_class_of(uint64_t bytes) {
  uint64_t units = (bytes + 63) / 64;
  if (units <= 4) return units < 1 ? 1 : (int64_t)units;
  int s = 61 - __builtin_clzll(units - 1);
  return 4 * s + (int64_t)((units - 1) >> s) + 1;
}

static uint64_t gr_class_bytes(int64_t c) {
  if (c <= 4) return 64 * (uint64_t)c;
  int64_t s = (c - 5) / 4;
  return 64 * ((uint64_t)(c - 4 * s) << s);
}

static __attribute__((noreturn, noinline, cold)) void gr_fail(int code) { longjmp(*gr_self.failure, code); }

/* At the start of recursive functions: fails while there is still room to do so. */
#define GR_CHECK_STACK() \
  if (GR_RARE((char *)__builtin_frame_address(0) < gr_self.stack_end)) gr_fail(2)

static void *gr_allocate(int64_t bytes, gr_block **owner) {
  gr_thread *self = &gr_self;
  int64_t c = gr_class_of((uint64_t)bytes);
  gr_block *b = self->waiting[c];
  if (b) {
    self->waiting[c] = b->next;
  } else {
    b = aligned_alloc(64, sizeof(gr_block) + gr_class_bytes(c));
    if (!b) gr_fail(1);
    b->size_class = c;
  }
  b->holders = 1;
  b->next = self->live.next;
  b->previous = &self->live;
  if (b->next) b->next->previous = b;
  self->live.next = b;
  *owner = b;
  return b + 1;
}

static void gr_free(gr_block *b) {
  gr_thread *self = &gr_self;
  b->previous->next = b->next;
  if (b->next) b->next->previous = b->previous;
  /* Small ones and a few large ones are kept. */
  b->next = self->waiting[b->size_class];
  self->waiting[b->size_class] = b;
}

static inline void gr_hold(gr_block *b) {
  if (b) b->holders++;
}

static inline void gr_drop(gr_block *b) {
  if (b && --b->holders == 0) gr_free(b);
}

static inline int gr_sole(const gr_block *b) { return b && b->holders == 1; }

static void gr_free_live(void) {
  while (gr_self.live.next) gr_free(gr_self.live.next);
}

void gradus_release(gradus_slot *slot) {
  gr_block *b = slot->owner;
  if (b) {
    slot->owner = 0;
    b->next = gr_self.waiting[b->size_class];
    gr_self.waiting[b->size_class] = b;
  }
}

/* An output is no longer part of the call. */
static void gr_hand_over(gr_block *b) {
  b->previous->next = b->next;
  if (b->next) b->next->previous = b->previous;
}

/* The number of bytes of an array; a product that overflows becomes more than any machine has. */
static inline int64_t gr_size(const int64_t *dims, int rank, int64_t width) {
  int64_t size = width;
  for (int k = 0; k < rank; k++)
    if (__builtin_mul_overflow(size, dims[k], &size)) return INT64_MAX / 2;
  return size;
}

/* A flat array with its shape, held by whoever has the struct; `b` is null for an input, which is the caller's. */
#define GR_ARRAY(NAME, ELEMENT, RANK)                                                             \
  typedef struct {                                                                                \
    ELEMENT *p;                                                                                   \
    gr_block *b;                                                                                  \
    int64_t d[RANK];                                                                              \
  } NAME;                                                                                         \
  static inline __attribute__((unused)) void NAME##_new(NAME *a) {                                \
    a->p = gr_allocate(gr_size(a->d, RANK, sizeof(ELEMENT)), &a->b);                              \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_copy(NAME a) {                                \
    NAME c = a;                                                                                   \
    NAME##_new(&c);                                                                               \
    memcpy(c.p, a.p, (size_t)gr_size(a.d, RANK, sizeof(ELEMENT)));                                \
    return c;                                                                                     \
  }                                                                                               \
  /* The same array, which may now be changed: itself if nobody else holds it. */                 \
  static inline __attribute__((unused)) NAME NAME##_own(NAME a) {                                 \
    if (gr_sole(a.b)) return a;                                                                   \
    NAME c = NAME##_copy(a);                                                                      \
    gr_drop(a.b);                                                                                 \
    return c;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_input(const gradus_slot *s) {                 \
    NAME a;                                                                                       \
    a.p = s->value.data;                                                                          \
    a.b = 0;                                                                                      \
    memcpy(a.d, s->dims, sizeof a.d);                                                             \
    return a;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) void NAME##_output(gradus_slot *s, NAME a) {              \
    /* A part of a larger array, or something that is also held elsewhere, is copied. */          \
    if (!gr_sole(a.b) || (void *)a.p != (void *)(a.b + 1)) {                                      \
      NAME c = NAME##_copy(a);                                                                    \
      gr_drop(a.b);                                                                               \
      a = c;                                                                                      \
    }                                                                                             \
    gr_hand_over(a.b);                                                                            \
    s->value.data = a.p;                                                                          \
    s->owner = a.b;                                                                               \
    memcpy(s->dims, a.d, sizeof a.d);                                                             \
  }

/* Room for one more element at the end of a growing array of `count` elements of `width` bytes. */
static void *gr_grow(void *p, gr_block **b, int64_t count, int64_t width) {
  if (*b && (uint64_t)((count + 1) * width) <= gr_class_bytes((*b)->size_class)) return p;
  gr_block *old = *b;
  void *fresh = gr_allocate((count + 1) * width * 2, b);
  if (old) {
    memcpy(fresh, p, (size_t)(count * width));
    gr_drop(old);
  }
  return fresh;
}

/* Mathematics. Declared here rather than by math.h, whose macros cost more to read than the program; with glibc on x86-64, also as
   vector functions (at most 4 ulp, exceptional values as in the scalar ones). */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#define GR_VECTOR __attribute__((simd("notinbranch"), const, nothrow))
#if __GLIBC_PREREQ(2, 35)
#define GR_VECTOR_NEW GR_VECTOR
#else
#define GR_VECTOR_NEW __attribute__((const, nothrow))
#endif
#else
#define GR_VECTOR __attribute__((const, nothrow))
#define GR_VECTOR_NEW GR_VECTOR
#endif
#define GR_SCALAR __attribute__((const, nothrow))

GR_VECTOR double exp(double);
GR_VECTOR double log(double);
GR_VECTOR double sin(double);
GR_VECTOR double cos(double);
GR_VECTOR double pow(double, double);
GR_VECTOR_NEW double tan(double);
GR_VECTOR_NEW double asin(double);
GR_VECTOR_NEW double acos(double);
GR_VECTOR_NEW double atan(double);
GR_VECTOR_NEW double atan2(double, double);
GR_VECTOR_NEW double sinh(double);
GR_VECTOR_NEW double cosh(double);
GR_VECTOR_NEW double tanh(double);
GR_VECTOR_NEW double log1p(double);
GR_VECTOR_NEW double expm1(double);
GR_VECTOR_NEW double erf(double);
GR_SCALAR double sqrt(double);
GR_SCALAR double fabs(double);
GR_SCALAR double floor(double);
GR_SCALAR double round(double);
GR_SCALAR double trunc(double);
double lgamma_r(double, int *);

static inline double gr_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

static inline double gr_maximum(double x, double y) { return x > y || x != x ? x : y; }
static inline double gr_minimum(double x, double y) { return x < y || x != x ? x : y; }

static inline double gr_powi(double x, int64_t k) {
  double result = 1.0, square = x;
  uint64_t rest = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;
  while (rest > 0) {
    if (rest & 1) result *= square;
    rest >>= 1;
    if (rest > 0) square *= square;
  }
  return k < 0 ? 1.0 / result : result;
}

static inline int64_t gr_power_of_int(int64_t x, int64_t k) {
  uint64_t result = 1, square = (uint64_t)x;
  for (; k > 0; k >>= 1) {
    if (k & 1) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

/* Rounding saturates, and no number becomes 0. */
static inline int64_t gr_to_int(double x) {
  if (x >= -9223372036854775808.0 && x < 9223372036854775808.0) return (int64_t)x;
  return x != x ? 0 : x < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t gr_idiv(int64_t x, int64_t y) { return y == -1 ? (int64_t)(0 - (uint64_t)x) : y == 0 ? 0 : x / y; }
static inline int64_t gr_imod(int64_t x, int64_t y) { return y == -1 || y == 0 ? 0 : x % y; }
static inline int64_t gr_iadd(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
static inline int64_t gr_isub(int64_t x, int64_t y) { return (int64_t)((uint64_t)x - (uint64_t)y); }
static inline int64_t gr_imul(int64_t x, int64_t y) { return (int64_t)((uint64_t)x * (uint64_t)y); }

/* Polygamma: digamma by recurrence and the asymptotic series, the higher ones as k! zeta(k + 1, x) by Euler and Maclaurin. */

static const double gr_bernoulli[12] = {
    1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510,
    43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
#define GR_PI 3.14159265358979323846

static double gr_digamma(double x) {
  if (x < 0) return gr_digamma(1.0 - x) - GR_PI / tan(GR_PI * (x - round(x)));
  double z = x, below = 0;
  while (z < 12) {
    below += 1.0 / z;
    z += 1.0;
  }
  double inverse = 1.0 / (z * z), power = inverse, series = 0;
  for (int n = 1; n <= 12; n++) {
    series += gr_bernoulli[n - 1] / (2.0 * n) * power;
    power *= inverse;
  }
  return log(z) - 0.5 / z - series - below;
}

static double gr_factorial(int64_t k) {
  double product = 1;
  for (int64_t n = 2; n <= k; n++) product *= (double)n;
  return product;
}

static double gr_zeta_term(int64_t k, double z) {
  if (k <= 150) return gr_factorial(k) * gr_powi(z, -k - 1);
  return exp(gr_lgamma((double)k + 1) - ((double)k + 1) * log(z));
}

static double gr_scaled_zeta(int64_t k, double x) {
  double kr = (double)k, start = 15 + (kr < 150 ? kr : 150), z = x, sum = 0;
  while (z < start) {
    double next = gr_zeta_term(k, z);
    sum += next;
    z += 1;
    if (next < sum * 1e-19) return sum;
  }
  double rest = z / kr + 0.5, rising = (kr + 1) / (2 * z);
  for (int n = 1; n <= 12; n++) {
    double n2 = 2.0 * n;
    rest += gr_bernoulli[n - 1] * rising;
    rising *= (kr + n2) * (kr + n2 + 1) / ((n2 + 1) * (n2 + 2) * z * z);
  }
  return sum + gr_zeta_term(k, z) * rest;
}

static __attribute__((noinline)) double gr_polygamma(int64_t k, double x) {
  if (k < 0 || x != x || (x <= 0 && x == trunc(x))) return (x - x) / (x - x);
  if (k == 0) return gr_digamma(x);
  double sign = k % 2 == 0 ? -1 : 1;
  if (x >= 0.5) return sign * gr_scaled_zeta(k, x);
  if (x > -100 || k > 30) {
    double z = x > -100 ? x : x - floor(x) - 100, sum = 0, size = k <= 150 ? gr_factorial(k) : 1.0 / 0.0;
    while (z < 0.5) {
      sum += gr_powi(z, -k - 1) * size;
      z += 1;
    }
    return sign * (sum + gr_scaled_zeta(k, z));
  }
  double c = 1 / tan(GR_PI * (x - round(x))), p[40] = {0, 1}, q[40];
  for (int64_t step = 0; step < k; step++) {
    memset(q, 0, sizeof q);
    for (int64_t power = 1; power <= step + 1; power++) {
      double slope = -GR_PI * p[power] * (double)power;
      q[power - 1] += slope;
      q[power + 1] += slope;
    }
    memcpy(p, q, sizeof p);
  }
  double cotangent = 0;
  for (int64_t power = k + 1; power >= 0; power--) cotangent = cotangent * c + p[power];
  return -GR_PI * cotangent - sign * gr_polygamma(k, 1 - x);
}
