/* Matrix products. Each element is added up in an order that depends on the sizes only, so results have the same bits however the rows are divided among
   threads. */

typedef double gr_lanes __attribute__((vector_size(64)));

enum {
  GR_TILE_ROWS = 4,
  GR_TILE_COLUMNS = 16,
  GR_TILE_DEPTH = 128,
  GR_SMALL_PRODUCT = 2048,
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
    memcpy(&b1, b + 8, sizeof b1);
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
      if (columns < GR_TILE_COLUMNS) memset(b, 0, sizeof b);
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
          for (int64_t q = 0; q < columns; q++) c[q] += sums[r][q / 8][q % 8];
        }
      }
    }
  }
  if (packed) gr_drop(self, packed);
}

/* Small products have no use for tiles. */
static void gr_small_product(const gr_product *p) {
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t l = 0; l < p->inner; l++) {
      double a = p->a[i * p->a_row + l * p->a_inner];
      for (int64_t j = 0; j < p->columns; j++) p->c[i * p->c_row + j] += a * p->b[l * p->b_inner + j * p->b_column];
    }
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
