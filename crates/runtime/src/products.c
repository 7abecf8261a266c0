/* Matrix products. Each element is added up in an order that depends on the sizes only, so results have the same bits however the rows are divided among
   threads. */

/* As many numbers as a vector register holds: C compilers keep longer vectors in memory. */
#if defined(__AVX512F__)
enum { GR_LANES = 8 };
#elif defined(__AVX__)
enum { GR_LANES = 4 };
#else
enum { GR_LANES = 2 };
#endif
typedef double gr_lanes __attribute__((vector_size(8 * GR_LANES)));

enum {
  GR_TILE_ROWS = 4,
  GR_TILE_COLUMNS = 2 * GR_LANES,
  GR_TILE_DEPTH = 128,
  GR_SMALL_PRODUCT = 8192,
  /* Rows that are worth packing columns for. */
  GR_PRODUCT_ROWS = 64,
};

/* c[i][j] += a(i, l) * b(l, j); the distances between neighbours in either direction. */
typedef struct {
  double *c;
  const double *a, *b;
  int64_t c_row, a_row, a_inner, b_inner, b_column;
  int64_t rows, columns, inner;
} gr_product;

struct gr_outside_product {
  gr_loop loop;
  gr_product product;
};

/* A tile of c: all products of `depth` numbers of each of four rows of a, so far apart, and of rows of b that are packed in the order in which they are
   used. */
static void gr_tile(const double *const a[GR_TILE_ROWS], int64_t apart, const double *b, int64_t depth, gr_lanes sums[GR_TILE_ROWS][2]) {
  const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
  gr_lanes s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0}, s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0};
  for (int64_t l = 0; l < depth; l++, b += GR_TILE_COLUMNS) {
    gr_lanes b0, b1;
    memcpy(&b0, b, sizeof b0);
    memcpy(&b1, b + GR_LANES, sizeof b1);
    s00 += a0[l * apart] * b0;
    s01 += a0[l * apart] * b1;
    s10 += a1[l * apart] * b0;
    s11 += a1[l * apart] * b1;
    s20 += a2[l * apart] * b0;
    s21 += a2[l * apart] * b1;
    s30 += a3[l * apart] * b0;
    s31 += a3[l * apart] * b1;
  }
  sums[0][0] = s00, sums[0][1] = s01, sums[1][0] = s10, sums[1][1] = s11;
  sums[2][0] = s20, sums[2][1] = s21, sums[3][0] = s30, sums[3][1] = s31;
}

static int64_t gr_least(int64_t x, int64_t y) { return x < y ? x : y; }

/* From one bundle of rows to before another. */
static void gr_product_rows(gr_thread *self, const void *data, gr_word *own, int64_t first, int64_t past) {
  const struct gr_outside_product *outside = data;
  const gr_product p = outside->product;
  const int place = outside->loop.place;
  int64_t from = first * GR_PRODUCT_ROWS, to = gr_least(past * GR_PRODUCT_ROWS, p.rows);
  double b[GR_TILE_DEPTH * GR_TILE_COLUMNS];
  gr_lanes sums[GR_TILE_ROWS][2];
  /* Rows of a are read where they are if their numbers lie there side by side, and packed otherwise, four rows together. */
  gr_block *packed = 0;
  double *a = 0;
  if (p.a_inner != 1) {
    int64_t rows = (to - from + GR_TILE_ROWS - 1) / GR_TILE_ROWS * GR_TILE_ROWS;
    a = gr_allocate(self, rows * gr_least(GR_TILE_DEPTH, p.inner) * (int64_t)sizeof *a, &packed, place);
  }
  for (int64_t l = 0; l < p.inner; l += GR_TILE_DEPTH) {
    int64_t depth = gr_least(GR_TILE_DEPTH, p.inner - l);
    if (a)
      for (int64_t i = from; i < to; i++) {
        double *to_pack = a + (i - from) / GR_TILE_ROWS * GR_TILE_ROWS * depth + (i - from) % GR_TILE_ROWS;
        for (int64_t k = 0; k < depth; k++) to_pack[k * GR_TILE_ROWS] = p.a[i * p.a_row + (l + k) * p.a_inner];
      }
    for (int64_t j = 0; j < p.columns; j += GR_TILE_COLUMNS) {
      int64_t columns = gr_least(GR_TILE_COLUMNS, p.columns - j);
      if (columns < GR_TILE_COLUMNS) memset(b, 0, depth * GR_TILE_COLUMNS * (int64_t)sizeof *b);
      for (int64_t k = 0; k < depth; k++)
        for (int64_t q = 0; q < columns; q++) b[k * GR_TILE_COLUMNS + q] = p.b[(l + k) * p.b_inner + (j + q) * p.b_column];
      GR_STEPS((to - from) * depth / 4 + 1, place);
      for (int64_t i = from; i < to; i += GR_TILE_ROWS) {
        int64_t rows = gr_least(GR_TILE_ROWS, to - i);
        const double *four[GR_TILE_ROWS];
        for (int64_t r = 0; r < GR_TILE_ROWS; r++) {
          int64_t row = gr_least(r, rows - 1); /* beyond the last, the last again */
          four[r] = a ? a + (i - from) * depth + row : p.a + (i + row) * p.a_row + l;
        }
        gr_tile(four, a ? GR_TILE_ROWS : 1, b, depth, sums);
        for (int64_t r = 0; r < rows; r++) {
          double *c = p.c + (i + r) * p.c_row + j;
          for (int64_t q = 0; q < columns; q++) c[q] += sums[r][q / GR_LANES][q % GR_LANES];
        }
      }
    }
  }
  if (packed) gr_drop(self, packed);
}

/* Some neighbouring columns of a small product, for which tiles are too large: four rows at a time, whose sums stay in registers. */
#define GR_COLUMNS(NAME, TYPE, AT)                                                                               \
  static inline __attribute__((always_inline)) void NAME(const gr_product p, int64_t j, const int64_t b_column) { \
    const double *column = p.b + j * b_column;                                                                   \
    int64_t i = 0;                                                                                               \
    for (; i + 4 <= p.rows; i += 4) {                                                                            \
      const double *a0 = p.a + i * p.a_row, *a1 = a0 + p.a_row, *a2 = a1 + p.a_row, *a3 = a2 + p.a_row;          \
      double *c0 = p.c + i * p.c_row + j, *c1 = c0 + p.c_row, *c2 = c1 + p.c_row, *c3 = c2 + p.c_row;            \
      const double *b = column;                                                                                  \
      TYPE s0, s1, s2, s3;                                                                                       \
      memcpy(&s0, c0, sizeof s0), memcpy(&s1, c1, sizeof s1);                                                    \
      memcpy(&s2, c2, sizeof s2), memcpy(&s3, c3, sizeof s3);                                                    \
      for (int64_t l = 0; l < p.inner; l++, b += p.b_inner) {                                                    \
        const TYPE few = AT(b, b_column);                                                                        \
        s0 += a0[l * p.a_inner] * few, s1 += a1[l * p.a_inner] * few;                                            \
        s2 += a2[l * p.a_inner] * few, s3 += a3[l * p.a_inner] * few;                                            \
      }                                                                                                          \
      memcpy(c0, &s0, sizeof s0), memcpy(c1, &s1, sizeof s1);                                                    \
      memcpy(c2, &s2, sizeof s2), memcpy(c3, &s3, sizeof s3);                                                    \
    }                                                                                                            \
    for (; i < p.rows; i++) {                                                                                    \
      const double *a = p.a + i * p.a_row, *b = column;                                                          \
      double *c = p.c + i * p.c_row + j;                                                                         \
      TYPE sum;                                                                                                  \
      memcpy(&sum, c, sizeof sum);                                                                               \
      for (int64_t l = 0; l < p.inner; l++, b += p.b_inner) sum += a[l * p.a_inner] * AT(b, b_column);           \
      memcpy(c, &sum, sizeof sum);                                                                               \
    }                                                                                                            \
  }

typedef double gr_two __attribute__((vector_size(16)));
#define GR_AT_ONE(b, apart) (b)[0]
#define GR_AT_TWO(b, apart) ((gr_two){(b)[0], (b)[apart]})
GR_COLUMNS(gr_column, double, GR_AT_ONE)
GR_COLUMNS(gr_two_columns, gr_two, GR_AT_TWO)
#ifdef __AVX__
typedef double gr_four __attribute__((vector_size(32)));
#define GR_AT_FOUR(b, apart) ((gr_four){(b)[0], (b)[apart], (b)[2 * (apart)], (b)[3 * (apart)]})
GR_COLUMNS(gr_four_columns, gr_four, GR_AT_FOUR)
#endif

/* With the distance of the columns as a number of its own, which is one in code of its own. */
static inline __attribute__((always_inline)) void gr_small_product_apart(const gr_product p, const int64_t b_column) {
  int64_t j = 0;
#ifdef __AVX__
  for (; j + 4 <= p.columns; j += 4) gr_four_columns(p, j, b_column);
#endif
  for (; j + 2 <= p.columns; j += 2) gr_two_columns(p, j, b_column);
  if (j < p.columns) gr_column(p, j, b_column);
}

static void gr_small_product(const gr_product *p) {
  if (p->b_column == 1)
    gr_small_product_apart(*p, 1);
  else
    gr_small_product_apart(*p, p->b_column);
}

static void gr_add_product(gr_thread *self, gr_product p, double least, int place) {
  if (p.rows <= 0 || p.columns <= 0 || p.inner <= 0) return;
  double work = (double)p.rows * (double)p.columns * (double)p.inner;
  if (work <= GR_SMALL_PRODUCT) {
    gr_small_product(&p);
    return;
  }
  int64_t bundles = (p.rows + GR_PRODUCT_ROWS - 1) / GR_PRODUCT_ROWS;
  struct gr_outside_product outside = {{0, bundles, work / 8.0, least, 0, 0, 0, 0, place}, p};
  gr_word own[1];
  gr_run_loop(self, gr_product_rows, &outside.loop, own, 0);
}
