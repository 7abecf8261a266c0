/* Matrix products. Each element is added up in an order that depends on the sizes only, so results have the same bits however the rows are divided among
   threads. */

typedef double gr_lanes __attribute__((vector_size(64)));

enum {
  GR_TILE_ROWS = 4,
  GR_TILE_COLUMNS = 16,
  GR_TILE_DEPTH = 128,
  GR_SMALL_PRODUCT = 2048,
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

/* A tile of c: all products of `depth` columns of a and rows of b that are packed in the order in which they are used. */
static void gr_tile(const double *a, const double *b, int64_t depth, gr_lanes sums[GR_TILE_ROWS][2]) {
  gr_lanes s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0}, s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0};
  for (int64_t l = 0; l < depth; l++, a += GR_TILE_ROWS, b += GR_TILE_COLUMNS) {
    gr_lanes b0, b1;
    memcpy(&b0, b, sizeof b0);
    memcpy(&b1, b + 8, sizeof b1);
    s00 += a[0] * b0;
    s01 += a[0] * b1;
    s10 += a[1] * b0;
    s11 += a[1] * b1;
    s20 += a[2] * b0;
    s21 += a[2] * b1;
    s30 += a[3] * b0;
    s31 += a[3] * b1;
  }
  sums[0][0] = s00, sums[0][1] = s01, sums[1][0] = s10, sums[1][1] = s11;
  sums[2][0] = s20, sums[2][1] = s21, sums[3][0] = s30, sums[3][1] = s31;
}

static int64_t gr_least(int64_t x, int64_t y) { return x < y ? x : y; }

static void gr_product_rows(gr_thread *self, const void *data, gr_word *own, int64_t from, int64_t to) {
  const struct gr_outside_product *outside = data;
  const gr_product p = outside->product;
  double a[GR_TILE_DEPTH * GR_TILE_ROWS], b[GR_TILE_DEPTH * GR_TILE_COLUMNS];
  gr_lanes sums[GR_TILE_ROWS][2];
  for (int64_t l = 0; l < p.inner; l += GR_TILE_DEPTH) {
    int64_t depth = gr_least(GR_TILE_DEPTH, p.inner - l);
    for (int64_t j = 0; j < p.columns; j += GR_TILE_COLUMNS) {
      int64_t columns = gr_least(GR_TILE_COLUMNS, p.columns - j);
      memset(b, 0, sizeof b);
      for (int64_t k = 0; k < depth; k++)
        for (int64_t q = 0; q < columns; q++)
          b[k * GR_TILE_COLUMNS + q] = p.b[(l + k) * p.b_inner + (j + q) * p.b_column];
      GR_STEPS((to - from) * depth / 4 + 1, outside->loop.place);
      for (int64_t i = from; i < to; i += GR_TILE_ROWS) {
        int64_t rows = gr_least(GR_TILE_ROWS, to - i);
        for (int64_t r = 0; r < GR_TILE_ROWS; r++)
          for (int64_t k = 0; k < depth; k++)
            a[k * GR_TILE_ROWS + r] = r < rows ? p.a[(i + r) * p.a_row + (l + k) * p.a_inner] : 0.0;
        gr_tile(a, b, depth, sums);
        for (int64_t r = 0; r < rows; r++) {
          double *c = p.c + (i + r) * p.c_row + j;
          for (int64_t q = 0; q < columns; q++) c[q] += sums[r][q / 8][q % 8];
        }
      }
    }
  }
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
  struct gr_outside_product outside = {{0, p.rows, work / 8.0, least, 0, 0, 0, 0, place}, p};
  gr_word own[1];
  gr_run_loop(self, gr_product_rows, &outside.loop, own, 0);
}
