/* The runtime of a compiled Gradus module: memory, failure, mathematics. Generated code follows. */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GR_RARE(x) __builtin_expect(!!(x), 0)

/* Memory. A block is counted by its holders; when nobody holds it, it waits in a list of its size for the next one. The blocks of a thread, held or
   waiting, are linked, so that a failure can free those that are held. */

typedef struct gr_block {
  int64_t holders;
  int64_t size_class, bytes;
  struct gr_block *next;            /* of those that wait */
  struct gr_block *earlier, *later; /* of the blocks of its thread; one that the caller has is of none */
  int64_t boxes;                    /* how many elements are counted boxes; none, while it waits */
  char padding[8];
} gr_block; /* 64 bytes, so that the data after it is aligned for vectors */

/* A cell: the tag, and words of which the first `boxes` are boxes, the next `blocks` the owners of arrays, the rest numbers. A box is
   a pointer to a cell, or, with the lowest bit set, twice a tag and 3: the value of a constructor without fields, or nil, whose tag is -1. */
typedef union {
  double r;
  int64_t i;
  void *p;
  gr_block *b;
  struct gr_cell *c;
} gr_word;

typedef struct gr_cell {
  int64_t holders;
  uint16_t tag, boxes, blocks, words;
  gr_word w[];
} gr_cell;

typedef struct gr_chunk {
  struct gr_chunk *next;
  int64_t bytes;
} gr_chunk;

#define GR_SMALL_CELL 64
#define GR_CHUNK_BYTES (1 << 20)

/* What the threads share that run the chunks of one loop: steps that are left, and, if they are limited, bytes that are used. */
typedef struct {
  int64_t steps, used;
} gr_shared;

typedef struct {
  gr_block *last; /* of the blocks of the thread */
  gr_block *waiting[256];
  jmp_buf *failure;
  char *stack_end;
  /* Cells come from chunks that are kept from call to call; those let go wait in a list of their size. */
  gr_cell *cells[GR_SMALL_CELL];
  char *cell_at, *cell_end;
  gr_chunk *chunks, *chunk;
  /* The tape, kept from call to call: where it ends now, where what has been counted of it ends, and how many bytes there are. */
  char *tape, *tape_at, *tape_end;
  int64_t tape_room;
  int64_t used;       /* bytes of the blocks that are held, of the chunks and of the tape */
  int64_t apart;      /* of these: of the chunks and of the tape */
  int64_t memory;     /* how many that may be: of the limits, which are further away; negative: others use some of them, too */
  int64_t fuel, rest; /* steps until the next look at the limits, and after that */
  gr_shared *shared;  /* while it runs chunks of a loop together with other threads */
  int64_t given;      /* then: what `fuel` was when it was last taken from the shared steps */
} gr_thread;

#define GR_NO_LIMITS {1 << 20, INT64_MAX, INT64_MAX, 0}
static __thread gr_thread gr_self;
static __thread gradus_limits gr_limits = GR_NO_LIMITS;

void gradus_set_limits(const gradus_limits *limits) {
  static const gradus_limits none = GR_NO_LIMITS;
  gr_limits = limits ? *limits : none;
  if (gr_limits.memory < 0) gr_limits.memory = 0;
}

static gradus_runner gr_runner;
void gradus_set_runner(gradus_runner runner) { gr_runner = runner; }

/* A failure number is 8 * place + kind. */
enum { GR_MEMORY = 1, GR_STACK = 2, GR_STEPS_OUT = 3, GR_INTERRUPTED = 4 };
static const char *const gr_kinds[8] = {"", "out of memory", "recursion too deep", "out of steps", "interrupted", "", "", ""};

static __attribute__((noreturn, noinline, cold)) void gr_fail(int code) { longjmp(*gr_self.failure, code); }

/* At the start of a call that can fail. */
static void gr_start(jmp_buf *failure, void *frame) {
  gr_self.failure = failure;
  gr_self.stack_end = (char *)frame - gr_limits.stack;
  gr_self.used = gr_self.apart = 0;
  gr_self.memory = gr_limits.memory;
  gr_self.tape_at = gr_self.tape_end = gr_self.tape;
  gr_self.fuel = gr_limits.steps < 1 << 20 ? gr_limits.steps : 1 << 20;
  gr_self.rest = gr_limits.steps - gr_self.fuel;
}

/* This thread begins to share steps and memory with others. */
static __attribute__((unused)) void gr_share(gr_shared *shared) {
  gr_self.shared = shared;
  if (gr_limits.memory != INT64_MAX) gr_self.memory = -1;
  gr_self.fuel = gr_self.given = 0;
}

/* Takes the steps that this thread has made from those that are shared; gives what is left. */
static int64_t gr_take_steps(void) {
  int64_t made = gr_self.given - gr_self.fuel;
  gr_self.given = gr_self.fuel;
  return __atomic_sub_fetch(&gr_self.shared->steps, made, __ATOMIC_RELAXED);
}

static __attribute__((noinline, cold)) void gr_look(int place) {
  if (gr_limits.interrupt && *gr_limits.interrupt) gr_fail(place + GR_INTERRUPTED);
  if (gr_self.shared) {
    int64_t left = gr_take_steps();
    gr_self.fuel = gr_self.given = left < 1 << 20 ? left : 1 << 20;
    if (left < 0) gr_fail(place + GR_STEPS_OUT);
    return;
  }
  int64_t rest = gr_self.rest + gr_self.fuel;
  if (rest < 0) gr_fail(place + GR_STEPS_OUT);
  gr_self.fuel = rest < 1 << 20 ? rest : 1 << 20;
  gr_self.rest = rest - gr_self.fuel;
}

/* What a generated function knows its thread by: `self`, its first parameter. To look it up each time would be a call. */
static inline gr_thread *gr_here(void) {
  gr_thread *self = &gr_self;
  __asm__("" : "+r"(self)); /* or the C compiler would know it and look it up after all */
  return self;
}

/* Counts steps, and looks at the limits from time to time. */
#define GR_STEPS(n, place) \
  if (GR_RARE((self->fuel -= (n)) < 0)) gr_look(place)

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

/* At the start of recursive functions: fails while there is still room to do so. */
#define GR_CHECK_STACK(place) \
  if (GR_RARE((char *)__builtin_frame_address(0) < self->stack_end)) gr_fail((place) + GR_STACK)

/* So many bytes more, where they may be too many: fails if they are. */
static __attribute__((noinline, cold)) void gr_charge_shared(gr_thread *self, int64_t bytes, int place) {
  if (self->memory < 0) {
    int64_t *used = &self->shared->used;
    if (__atomic_add_fetch(used, bytes, __ATOMIC_RELAXED) <= gr_limits.memory) return;
    __atomic_sub_fetch(used, bytes, __ATOMIC_RELAXED);
  }
  gr_fail(place + GR_MEMORY);
}

/* Counts bytes, against the limit. */
static inline void gr_charge(gr_thread *self, int64_t bytes, int place) {
  int64_t used = self->used + bytes;
  if (GR_RARE(used > self->memory)) gr_charge_shared(self, bytes, place);
  self->used = used;
}

/* The opposite. */
static inline void gr_credit(gr_thread *self, int64_t bytes) {
  self->used -= bytes;
  if (GR_RARE(self->memory < 0)) __atomic_sub_fetch(&self->shared->used, bytes, __ATOMIC_RELAXED);
}

static void gr_link(gr_thread *self, gr_block *b) {
  b->earlier = self->last;
  b->later = 0;
  if (b->earlier) b->earlier->later = b;
  self->last = b;
}

static __attribute__((noinline, cold)) gr_block *gr_new_block(gr_thread *self, int64_t c, int place) {
  int64_t bytes = (int64_t)gr_class_bytes(c);
  /* No memory is asked for beyond the limit. */
  gr_charge(self, bytes, place);
  gr_credit(self, bytes);
  gr_block *b = aligned_alloc(64, sizeof(gr_block) + (size_t)bytes);
  if (!b) gr_fail(place + GR_MEMORY);
  *b = (gr_block){.size_class = c, .bytes = bytes};
  gr_link(self, b);
  return b;
}

static inline void gr_wait(gr_thread *self, gr_block *b) {
  b->next = self->waiting[b->size_class];
  self->waiting[b->size_class] = b;
}

/* Written out where it is called, also in long files: small arrays come and go in inner loops. */
static inline __attribute__((always_inline)) void *gr_allocate(gr_thread *self, int64_t bytes, gr_block **owner, int place) {
  if (bytes < 0 || bytes > INT64_MAX / 4) gr_fail(place + GR_MEMORY);
  int64_t c = gr_class_of((uint64_t)bytes);
  if (GR_RARE(!self->waiting[c])) gr_wait(self, gr_new_block(self, c, place));
  gr_block *b = self->waiting[c];
  gr_charge(self, b->bytes, place);
  self->waiting[c] = b->next;
  b->holders = 1;
  *owner = b;
  return b + 1;
}

/* It is the caller's now. */
static __attribute__((unused)) void gr_hand_over(gr_thread *self, gr_block *b) {
  gr_credit(self, b->bytes);
  if (b->earlier) b->earlier->later = b->later;
  if (b->later)
    b->later->earlier = b->earlier;
  else
    self->last = b->earlier;
}

/* Of what nobody holds, and without boxes. */
static void gr_free(gr_thread *self, gr_block *b) {
  gr_credit(self, b->bytes);
  gr_wait(self, b);
}

static inline void gr_hold(gr_block *b) {
  if (b) b->holders++;
}

static __attribute__((noinline)) void gr_more_cells(int64_t bytes, int place) {
  gr_thread *self = &gr_self;
  gr_chunk *next = self->chunk ? self->chunk->next : self->chunks;
  if (!next || next->bytes < bytes) {
    int64_t size = bytes > GR_CHUNK_BYTES ? bytes : GR_CHUNK_BYTES;
    gr_chunk *fresh = malloc(sizeof(gr_chunk) + (size_t)size);
    if (!fresh) gr_fail(place + GR_MEMORY);
    fresh->bytes = size;
    fresh->next = next;
    if (self->chunk)
      self->chunk->next = fresh;
    else
      self->chunks = fresh;
    next = fresh;
  }
  gr_charge(self, next->bytes, place);
  self->apart += next->bytes;
  self->chunk = next;
  self->cell_at = (char *)(next + 1);
  self->cell_end = self->cell_at + next->bytes;
}

static inline gr_cell *gr_cell_new(gr_thread *self, int tag, int boxes, int blocks, int words, int place) {
  gr_cell *c;
  if (words < GR_SMALL_CELL && self->cells[words]) {
    c = self->cells[words];
    self->cells[words] = (gr_cell *)c->holders;
  } else {
    int64_t bytes = (int64_t)sizeof(gr_cell) + 8 * words;
    if (GR_RARE(self->cell_end - self->cell_at < bytes)) gr_more_cells(bytes, place);
    c = (gr_cell *)self->cell_at;
    self->cell_at += bytes;
  }
  c->holders = 1;
  c->tag = (uint16_t)tag;
  c->boxes = (uint16_t)boxes;
  c->blocks = (uint16_t)blocks;
  c->words = (uint16_t)words;
  return c;
}

/* Between calls no cell is alive: results have been written out. */
static void gr_cells_reset(void) {
  gr_thread *self = &gr_self;
  memset(self->cells, 0, sizeof self->cells);
  self->chunk = 0;
  self->cell_at = self->cell_end = 0;
}

#define GR_NIL ((gr_cell *)1)
#define GR_IMMEDIATE(tag) ((gr_cell *)(intptr_t)(2 * (tag) + 3))
#define GR_IS_CELL(c) (((intptr_t)(c) & 1) == 0)

static inline int64_t gr_tag(const gr_cell *c) { return GR_IS_CELL(c) ? c->tag : ((intptr_t)c >> 1) - 1; }

static inline gr_cell *gr_hold_cell(gr_cell *c) {
  if (GR_IS_CELL(c)) c->holders++;
  return c;
}

/* Lets go of a box that may have been the last holder of others: these are linked through their counts, never by recursion. */
static inline gr_cell *gr_let_go(gr_cell *c, gr_cell *todo) {
  if (GR_IS_CELL(c) && --c->holders == 0) {
    c->holders = (int64_t)todo;
    return c;
  }
  return todo;
}

/* A cell that nobody holds, and whose fields others have taken over or let go. */
static inline void gr_free_emptied(gr_thread *self, gr_cell *c) {
  if (c->words < GR_SMALL_CELL) {
    c->holders = (int64_t)self->cells[c->words];
    self->cells[c->words] = c;
  }
}

static __attribute__((noinline)) void gr_free_cells(gr_thread *self, gr_cell *todo) {
  while (todo) {
    gr_cell *c = todo;
    todo = (gr_cell *)c->holders;
    for (int k = 0; k < c->boxes; k++) todo = gr_let_go(c->w[k].c, todo);
    for (int k = c->boxes; k < c->boxes + c->blocks; k++) {
      gr_block *b = c->w[k].b;
      if (b && --b->holders == 0) {
        gr_cell **elements = (gr_cell **)(b + 1);
        for (int64_t i = 0; i < b->boxes; i++) todo = gr_let_go(elements[i], todo);
        b->boxes = 0;
        gr_free(self, b);
      }
    }
    gr_free_emptied(self, c);
  }
}

static inline void gr_drop_cell(gr_thread *self, gr_cell *c) {
  gr_cell *last = gr_let_go(c, 0);
  if (last) gr_free_cells(self, last);
}

static __attribute__((noinline)) void gr_free_boxes(gr_thread *self, gr_block *b) {
  gr_cell **elements = (gr_cell **)(b + 1), *todo = 0;
  for (int64_t i = 0; i < b->boxes; i++) todo = gr_let_go(elements[i], todo);
  gr_free_cells(self, todo);
  b->boxes = 0;
  gr_free(self, b);
}

static inline void gr_drop(gr_thread *self, gr_block *b) {
  if (b && --b->holders == 0) {
    if (GR_RARE(b->boxes))
      gr_free_boxes(self, b);
    else
      gr_free(self, b);
  }
}

/* Puts a box that is held by the caller in the place of another one. */
static inline void gr_put(gr_thread *self, gr_cell **place, gr_cell *c) {
  gr_cell *old = *place;
  *place = c;
  gr_drop_cell(self, old);
}

static inline __attribute__((unused)) void gr_put_all(gr_thread *self, gr_cell **to, gr_cell *const *from, int64_t count) {
  for (int64_t k = 0; k < count; k++) gr_put(self, to + k, gr_hold_cell(from[k]));
}

/* The tape: values in the reverse order of which they will be wanted. It grows as a whole, so nobody keeps a pointer into it. */
static __attribute__((noinline)) char *gr_more_tape(gr_thread *self, int64_t bytes, int place) {
  int64_t at = self->tape_at - self->tape, end = self->tape_end - self->tape;
  int64_t more = bytes > GR_CHUNK_BYTES ? bytes : GR_CHUNK_BYTES;
  gr_charge(self, more, place);
  self->apart += more;
  if (end + more > self->tape_room) {
    char *fresh = realloc(self->tape, 2 * (size_t)(end + more));
    if (!fresh) gr_fail(place + GR_MEMORY);
    self->tape = fresh;
    self->tape_room = 2 * (end + more);
  }
  self->tape_end = self->tape + end + more;
  return self->tape_at = self->tape + at;
}

static inline char *gr_push(gr_thread *self, int64_t bytes, int place) {
  char *at = self->tape_at;
  if (GR_RARE(self->tape_end - at < bytes)) at = gr_more_tape(self, bytes, place);
  self->tape_at = at + bytes;
  return at;
}

static inline const char *gr_pop(gr_thread *self, int64_t bytes) { return self->tape_at -= bytes; }

static inline void gr_store_real(char *to, double x) { memcpy(to, &x, 8); }
static inline void gr_store_int(char *to, int64_t x) { memcpy(to, &x, 8); }
static inline void gr_store_bool(char *to, uint8_t x) { *to = (char)x; }
static inline void gr_store_box(char *to, gr_cell *c) { memcpy(to, &c, 8); }

static inline int gr_sole(const gr_block *b) { return b && b->holders == 1; }

/* Frees all blocks that are held. */
static void gr_free_live(void) {
  for (gr_block *b = gr_self.last; b; b = b->earlier)
    if (b->holders) {
      b->holders = b->boxes = 0;
      gr_free(&gr_self, b);
    }
}

void gradus_release(gradus_slot *slot) {
  gr_block *b = slot->owner;
  if (b) {
    slot->owner = 0;
    b->holders = 0;
    gr_link(&gr_self, b);
    gr_wait(&gr_self, b);
  }
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
  static inline __attribute__((unused)) void NAME##_new(gr_thread *self, NAME *a, int place) {    \
    a->p = gr_allocate(self, gr_size(a->d, RANK, sizeof(ELEMENT)), &a->b, place);                 \
  }                                                                                               \
  /* In a row of a larger array with the same shape, if there is one: what becomes a row need not be copied there. */\
  static inline __attribute__((unused)) void NAME##_new_at(gr_thread *self, NAME *a, ELEMENT *rows, gr_block *b, \
                                                           const int64_t *d, int64_t row, int place) {\
    if (rows && row < d[0] && !memcmp(d + 1, a->d, sizeof a->d)) {                                \
      a->p = rows + row * gr_size(a->d, RANK, 1);                                                 \
      a->b = b;                                                                                   \
      gr_hold(b);                                                                                 \
    } else                                                                                        \
      NAME##_new(self, a, place);                                                                 \
  }                                                                                               \
  /* In the place of an array that is let go next, if nobody else holds it. */                      \
  static inline __attribute__((unused)) void NAME##_new_for(gr_thread *self, NAME *a, NAME old, int place) { \
    if (old.b && old.b->holders == 1 && (void *)old.p == (void *)(old.b + 1) && old.d[0] == a->d[0]) { \
      a->p = old.p;                                                                               \
      a->b = old.b;                                                                               \
      gr_hold(old.b);                                                                             \
    } else                                                                                        \
      NAME##_new(self, a, place);                                                                 \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_copy(gr_thread *self, NAME a, int place) {    \
    NAME c = a;                                                                                   \
    NAME##_new(self, &c, place);                                                                  \
    memcpy(c.p, a.p, (size_t)gr_size(a.d, RANK, sizeof(ELEMENT)));                                \
    return c;                                                                                     \
  }                                                                                               \
  /* The same array, which may now be changed: itself if nobody else holds it. */                 \
  static inline __attribute__((unused)) NAME NAME##_own(gr_thread *self, NAME a, int place) {     \
    if (gr_sole(a.b)) return a;                                                                   \
    NAME c = NAME##_copy(self, a, place);                                                         \
    gr_drop(self, a.b);                                                                           \
    return c;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_input(const gradus_slot *s) {                 \
    NAME a;                                                                                       \
    a.p = s->value.data;                                                                          \
    a.b = 0;                                                                                      \
    memcpy(a.d, s->dims, sizeof a.d);                                                             \
    return a;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) void NAME##_output(gr_thread *self, gradus_slot *s, NAME a, int place) {\
    /* A part of a larger array, or something that is also held elsewhere, is copied. */          \
    if (!gr_sole(a.b) || (void *)a.p != (void *)(a.b + 1)) {                                      \
      NAME c = NAME##_copy(self, a, place);                                                       \
      gr_drop(self, a.b);                                                                         \
      a = c;                                                                                      \
    }                                                                                             \
    gr_hand_over(self, a.b);                                                                      \
    s->value.data = a.p;                                                                          \
    s->owner = a.b;                                                                               \
    memcpy(s->dims, a.d, sizeof a.d);                                                             \
  }

/* The same for arrays of boxes, which begin with nil everywhere. */
#define GR_BOX_ARRAY(NAME, RANK)                                                                  \
  typedef struct {                                                                                \
    gr_cell **p;                                                                                  \
    gr_block *b;                                                                                  \
    int64_t d[RANK];                                                                              \
  } NAME;                                                                                         \
  static inline __attribute__((unused)) void NAME##_new(gr_thread *self, NAME *a, int place) {    \
    int64_t bytes = gr_size(a->d, RANK, 8);                                                       \
    a->p = gr_allocate(self, bytes, &a->b, place);                                                \
    a->b->boxes = bytes / 8;                                                                      \
    for (int64_t k = 0; k < bytes / 8; k++) a->p[k] = GR_NIL;                                     \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_copy(gr_thread *self, NAME a, int place) {    \
    NAME c = a;                                                                                   \
    NAME##_new(self, &c, place);                                                                  \
    gr_put_all(self, c.p, a.p, gr_size(a.d, RANK, 1));                                            \
    return c;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) NAME NAME##_own(gr_thread *self, NAME a, int place) {     \
    if (gr_sole(a.b)) return a;                                                                   \
    NAME c = NAME##_copy(self, a, place);                                                         \
    gr_drop(self, a.b);                                                                           \
    return c;                                                                                     \
  }

/* Room for one more row of boxes at the end of a growing array of `count` rows. The new places are nil. */
static __attribute__((unused)) gr_cell **gr_grow_boxes(gr_thread *self, gr_cell **p, gr_block **b, int64_t count, int64_t width, int place) {
  int64_t have = count * width, want = have + width;
  if (!*b || want * 8 > (*b)->bytes) {
    gr_block *old = *b;
    gr_cell **fresh = gr_allocate(self, want * 16, b, place);
    if (old) {
      memcpy(fresh, p, (size_t)(have * 8));
      old->boxes = 0;
      gr_drop(self, old);
    }
    p = fresh;
  }
  for (int64_t k = have; k < want; k++) p[k] = GR_NIL;
  (*b)->boxes = want;
  return p;
}

/* Numbers, in the array of a block which is taken over if there is one, and more of them behind: in its place if nobody else holds it and there is room. */
static __attribute__((unused)) void *gr_extend(gr_thread *self, gr_block **b, void *p, gr_block *of, int64_t bytes, const void *more, int64_t others, int place) {
  char *to = p;
  if (gr_sole(of) && p == (void *)(of + 1) && bytes + others <= of->bytes) {
    *b = of;
  } else {
    to = gr_allocate(self, bytes + others, b, place);
    if (bytes > 0) memcpy(to, p, (size_t)bytes);
    gr_drop(self, of);
  }
  if (others > 0) memcpy(to + bytes, more, (size_t)others);
  return to;
}

/* Room for one more element at the end of a growing array of `count` elements of `width` bytes. */
static void *gr_grow(gr_thread *self, void *p, gr_block **b, int64_t count, int64_t width, int place) {
  if (*b && (count + 1) * width <= (*b)->bytes) return p;
  gr_block *old = *b;
  void *fresh = gr_allocate(self, (count + 1) * width * 2, b, place);
  if (old) {
    memcpy(fresh, p, (size_t)(count * width));
    gr_drop(self, old);
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
/* The cosine in lanes. By its own name, next to a sine of the same number, the C compiler would compute both by a function that has no vector form. */
#if defined(__GLIBC__)
GR_VECTOR double gr_cos_in_lanes(double) __asm__("cos");
#else
#define gr_cos_in_lanes cos
#endif
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

/* The same where x goes from one iteration to the next and seldom changes: with a branch, which is foreseen, no iteration waits for the one before. */
static inline __attribute__((unused)) double gr_maximum_so_far(double x, double y) {
  if (GR_RARE(!(x > y)) && x == x) {
    __asm__ volatile("");
    x = y;
  }
  return x;
}
static inline __attribute__((unused)) double gr_minimum_so_far(double x, double y) {
  if (GR_RARE(!(x < y)) && x == x) {
    __asm__ volatile("");
    x = y;
  }
  return x;
}

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

int snprintf(char *, size_t, const char *, ...);

/* The shortest decimal that reads back as the same number, with an exponent outside 1e-4 to 1e16; the number of characters. */
static __attribute__((noinline, unused)) int64_t gr_digits(double x, char *to) {
  if (x != x) return snprintf(to, 400, "nan");
  if (x - x != 0) return snprintf(to, 400, x > 0 ? "inf" : "-inf");
  char digits[40];
  int precision = 0;
  do snprintf(digits, sizeof digits, "%.*e", precision, x);
  while (strtod(digits, 0) != x && precision++ < 17);
  char *from = digits, *e = digits;
  int64_t n = 0;
  if (*from == '-') to[n++] = *from++;
  while (*e != 'e') e++;
  long exponent = strtol(e + 1, 0, 10), count = 0;
  char plain[40];
  for (char *c = from; c < e; c++)
    if (*c != '.') plain[count++] = *c;
  double size = fabs(x);
  if (size != 0 && (size < 1e-4 || size >= 1e16)) {
    to[n++] = plain[0];
    if (count > 1) to[n++] = '.';
    for (long k = 1; k < count; k++) to[n++] = plain[k];
    return n + snprintf(to + n, 400 - (size_t)n, "e%ld", exponent);
  }
  for (long k = exponent < 0 ? exponent : 0; k < count || k <= exponent + 1; k++) {
    if (k == exponent + 1) to[n++] = '.';
    to[n++] = k >= 0 && k < count ? plain[k] : '0';
  }
  return n;
}

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
