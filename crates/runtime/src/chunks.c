/* Loops of independent iterations in chunks. Their number depends on how much there is to do and never on the number of threads, and what
   each chunk adds up is added in the order of the chunks: results have the same bits on one thread as on many. */

/* A loop; what it uses from outside stands behind it. */
typedef struct {
  int64_t cut; /* whether it is cut into chunks: set before the body runs */
  int64_t count;
  double work, least;
  int64_t scalars, arrays; /* how many sums of one number, and how many arrays of sums */
  int64_t states, joins;   /* how many states it carries, and how they are joined, two bits each, the first in the lowest */
  int place;
} gr_loop;

typedef struct {
  double *to;
  int64_t count;
} gr_sums;

/* Iterations `from` to before `to`, with the loop and what it uses from outside; the sums of one number and, if it is cut, the arrays of sums. */
typedef void (*gr_body)(gr_thread *self, const void *outside, gr_word *own, int64_t from, int64_t to);

typedef struct {
  gr_body body;
  const void *outside;
  int64_t count, chunks;
  gr_word *records;
  int64_t width;
  gradus_limits limits;
  gr_shared shared;
  gr_thread *caller;
  int64_t failed; /* the lowest chunk that failed; those after it need not run */
  int code, lock;
} gr_job;

/* Into how many chunks a loop is cut; see the function `count` of the Rust runtime, which does the same. */
static int64_t gr_chunk_count(int64_t count, double work, double least, int64_t sums) {
  double k = 128.0, bounds[4] = {work / least, (double)count, (double)(1 << 25) / (double)sums, work / (least / 1024.0 * (double)sums)};
  for (int i = 0; i < 4; i++) k = bounds[i] < k ? bounds[i] : k;
  return (int64_t)k;
}

static int64_t gr_chunk_start(const gr_job *job, int64_t k) {
  int64_t rest = job->count % job->chunks;
  return job->count / job->chunks * k + (k < rest ? k : rest);
}

static void gr_one_chunk(gr_thread *self, const gr_job *job, int64_t k) {
  gr_word *own = job->width ? job->records + job->width * k : 0;
  /* Nothing, to which a sum adds without losing the sign of its zero. */
  for (int64_t i = 0; i < job->width; i++) own[i].r = -0.0;
  job->body(self, job->outside, own, gr_chunk_start(job, k), gr_chunk_start(job, k + 1));
}

static void gr_chunk_failed(gr_job *job, int64_t k, int code) {
  while (__atomic_exchange_n(&job->lock, 1, __ATOMIC_ACQUIRE)) {
  }
  if (k < job->failed) {
    job->code = code;
    __atomic_store_n(&job->failed, k, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&job->lock, 0, __ATOMIC_RELEASE);
}

/* A chunk on whatever thread; one that is not that of the call takes over its limits. */
static void gr_chunk_apart(void *data, int64_t k) {
  gr_job *job = data;
  gr_thread *self = gr_here();
  if (k > __atomic_load_n(&job->failed, __ATOMIC_RELAXED)) return;
  jmp_buf failure;
  jmp_buf *before = self->failure;
  if (self != job->caller) {
    gr_limits = job->limits;
    gr_start(&failure, __builtin_frame_address(0));
    gr_share(&job->shared);
  }
  self->failure = &failure;
  int code = setjmp(failure);
  if (code)
    gr_chunk_failed(job, k, code);
  else
    gr_one_chunk(self, job, k);
  gr_take_steps();
  self->failure = before;
  if (self != job->caller) {
    if (code) gr_free_live();
    self->shared = 0;
    gradus_set_limits(0);
  }
}

/* Runs the chunks, each with `width` numbers of the records to add up. Fails as the first iteration that fails does. */
static void gr_run_chunks(gr_thread *self, gr_body body, gr_loop *outside, int64_t chunks, gr_word *records, int64_t width) {
  gr_job job = {body, outside, outside->count, chunks, records, width, gr_limits, {self->fuel + self->rest, self->used}, self, INT64_MAX, 0, 0};
  if (!gr_runner || self->shared) {
    for (int64_t k = 0; k < chunks; k++) gr_one_chunk(self, &job, k);
    return;
  }
  gr_share(&job.shared);
  gr_runner(gr_chunk_apart, &job, chunks);
  self->shared = 0;
  self->memory = gr_limits.memory;
  int64_t steps = job.shared.steps;
  self->fuel = steps < 1 << 20 ? steps : 1 << 20;
  self->rest = steps - self->fuel;
  if (job.code) gr_fail(job.code);
  GR_STEPS(0, outside->place);
}

/* Adds what all chunks have added up, in their order. */
static void gr_merge(double *to, const double *records, int64_t width, int64_t chunks, int64_t count) {
  for (int64_t k = 0; k < chunks; k++)
    for (int64_t i = 0; i < count; i++) to[i] += records[width * k + i];
}

/* How the states of chunks become one: maximum, minimum; sum, product of integers. */
static gr_word gr_join(int how, gr_word x, gr_word y) {
  switch (how) {
    case 0: return x.r > y.r || x.r != x.r ? x : y;
    case 1: return x.r < y.r || x.r != x.r ? x : y;
    case 2: return (gr_word){.i = (int64_t)((uint64_t)x.i + (uint64_t)y.i)};
    default: return (gr_word){.i = (int64_t)((uint64_t)x.i * (uint64_t)y.i)};
  }
}

/* Runs a loop: in chunks if there is enough to do. The sums of one number are in `own`, and then the states; a loop that is not cut adds to the arrays itself. */
static void gr_run_loop(gr_thread *self, gr_body body, gr_loop *outside, gr_word *own, const gr_sums *arrays) {
  int64_t chunks = 1, width = outside->scalars + outside->states;
  /* Less is done before another thread is awake. */
  if (outside->work >= 4.0 * outside->least) {
    for (int64_t k = 0; k < outside->arrays; k++) width += arrays[k].count;
    chunks = gr_chunk_count(outside->count, outside->work, outside->least, width);
  }
  outside->cut = chunks > 1;
  if (chunks <= 1) {
    body(self, outside, own, 0, outside->count);
    return;
  }
  gr_block *owner = 0;
  gr_word *records = width ? gr_allocate(self, 8 * chunks * width, &owner, outside->place) : 0;
  gr_run_chunks(self, body, outside, chunks, records, width);
  if (!width) return;
  const gr_word *from = records;
  for (int64_t i = 0; i < outside->scalars; i++, own++, from++) gr_merge(&own->r, &from->r, width, chunks, 1);
  for (int64_t i = 0; i < outside->states; i++, own++, from++)
    for (int64_t k = 0; k < chunks; k++) *own = gr_join((int)(outside->joins >> 2 * i) & 3, *own, from[width * k]);
  for (int64_t k = 0; k < outside->arrays; k++) {
    gr_merge(arrays[k].to, &from->r, width, chunks, arrays[k].count);
    from += arrays[k].count;
  }
  gr_drop(self, owner);
}
