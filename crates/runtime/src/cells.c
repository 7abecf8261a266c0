
/* Boxes in the calling convention: a buffer of words. A box is a reference: -2 - tag for an immediate value, otherwise the place in the buffer
   of its cell, which is its tag and then its fields; an array is its shape and then its elements. What a cell refers to comes before it. The
   slot has the buffer, in dims[0] the number of words and in dims[1] the reference, or the place of the array. */

typedef struct {
  uint8_t kind, rank; /* real, int, bool, box */
  uint16_t place, rest, shape;
} gr_field;
typedef struct {
  int fields;
  const gr_field *field;
  int boxes, blocks, words;
} gr_cell_info;
typedef struct {
  const gr_cell_info *cell;
} gr_shape_info;

typedef struct {
  int64_t *words, count, room;
  int64_t epoch; /* the number of this buffer */
} gr_buffer;

static void gr_buffer_add(gr_buffer *to, int64_t word) {
  if (to->count == to->room) {
    to->room = to->room ? 2 * to->room : 256;
    int64_t *more = realloc(to->words, 8 * (size_t)to->room);
    if (!more) gr_fail(GR_MEMORY);
    to->words = more;
  }
  to->words[to->count++] = word;
}

static __thread int64_t gr_epoch;

/* The reference of a box that has been written; a cell that was is marked in its count, which nobody needs any more. */
static int64_t gr_reference(const gr_buffer *to, const gr_cell *c) {
  if (!GR_IS_CELL(c)) return -2 - gr_tag(c);
  int64_t mark = -c->holders;
  return mark >> 40 == to->epoch ? (mark & 0xffffffffff) : -1000000;
}

static void gr_write_array(gr_buffer *to, int kind, int rank, void *p, const gr_word *dims) {
  int64_t count = 1;
  for (int k = 0; k < rank; k++) {
    gr_buffer_add(to, dims[k].i);
    count *= dims[k].i;
  }
  for (int64_t i = 0; i < count; i++)
    gr_buffer_add(to, kind == 3 ? gr_reference(to, ((gr_cell **)p)[i]) : kind == 2 ? ((uint8_t *)p)[i] : ((int64_t *)p)[i]);
}

static void gr_write_cell(gr_buffer *to, gr_cell *c, const gr_cell_info *info) {
  int64_t at = to->count;
  gr_buffer_add(to, c->tag);
  for (int k = 0; k < info->fields; k++) {
    const gr_field *f = info->field + k;
    if (f->rank)
      gr_write_array(to, f->kind, f->rank, c->w[f->rest].p, c->w + f->rest + 1);
    else
      gr_buffer_add(to, f->kind == 3 ? gr_reference(to, c->w[f->place].c) : c->w[f->place].i);
  }
  c->holders = -((to->epoch << 40) | at);
}

typedef struct {
  gr_cell *cell;
  int64_t shape; /* with -1 - shape the children are done */
} gr_visit;

static void gr_write_reachable(gr_buffer *to, gr_cell *root, int shape, const gr_shape_info *shapes) {
  if (gr_reference(to, root) != -1000000) return;
  int64_t count = 0, room = 64;
  gr_visit *stack = malloc(sizeof(gr_visit) * (size_t)room);
  if (!stack) gr_fail(GR_MEMORY);
  stack[count++] = (gr_visit){root, shape};
  while (count) {
    gr_visit now = stack[--count];
    if (gr_reference(to, now.cell) != -1000000) continue;
    int done = now.shape < 0;
    const gr_cell_info *info = &shapes[done ? -1 - now.shape : now.shape].cell[now.cell->tag];
    if (done) {
      gr_write_cell(to, now.cell, info);
      continue;
    }
    stack[count++] = (gr_visit){now.cell, -1 - now.shape};
    for (int k = 0; k < info->fields; k++) {
      const gr_field *f = info->field + k;
      if (f->kind != 3) continue;
      int64_t boxes = 1;
      for (int j = 0; j < f->rank; j++) boxes *= now.cell->w[f->rest + 1 + j].i;
      gr_cell **box = f->rank ? now.cell->w[f->rest].p : &now.cell->w[f->place].c;
      for (int64_t i = 0; i < boxes; i++) {
        if (gr_reference(to, box[i]) != -1000000) continue;
        if (count + 1 >= room) {
          room *= 2;
          gr_visit *more = realloc(stack, sizeof(gr_visit) * (size_t)room);
          if (!more) gr_fail(GR_MEMORY);
          stack = more;
        }
        stack[count++] = (gr_visit){box[i], f->shape};
      }
    }
  }
  free(stack);
}

static void gr_output_boxes(gradus_slot *s, gr_cell **p, int rank, const int64_t *dims, int shape, const gr_shape_info *shapes) {
  gr_buffer to = {0, 0, 0, ++gr_epoch};
  int64_t count = 1;
  gr_word shown[8];
  for (int k = 0; k < rank; k++) {
    count *= dims[k];
    shown[k].i = dims[k];
  }
  for (int64_t i = 0; i < count; i++) gr_write_reachable(&to, p[i], shape, shapes);
  s->dims[1] = rank ? to.count : gr_reference(&to, *p);
  if (rank) gr_write_array(&to, 3, rank, p, shown);
  gr_block *owner;
  s->dims[0] = to.count;
  s->value.data = gr_allocate(&gr_self, 8 * to.count + 8, &owner, 0);
  if (to.count) memcpy(s->value.data, to.words, 8 * (size_t)to.count);
  free(to.words);
  gr_hand_over(&gr_self, owner);
  s->owner = owner;
}

static gr_cell *gr_cell_at(const gr_word *found, int64_t reference) {
  return reference < 0 ? GR_IMMEDIATE(-2 - reference) : gr_hold_cell(found[reference].c);
}

static const int64_t *gr_read_array(gr_thread *self, const int64_t *at, const gr_field *f, gr_word *rest, gr_block **owner, const gr_word *found) {
  int64_t dims[8], count = 1;
  for (int k = 0; k < f->rank; k++) {
    dims[k] = rest[1 + k].i = *at++;
    count *= dims[k];
  }
  void *p = gr_allocate(self, gr_size(dims, f->rank, f->kind == 2 ? 1 : 8), owner, 0);
  rest[0].p = p;
  if (f->kind == 3) {
    (*owner)->boxes = count;
    for (int64_t i = 0; i < count; i++) ((gr_cell **)p)[i] = gr_cell_at(found, at[i]);
  } else if (f->kind == 2) {
    for (int64_t i = 0; i < count; i++) ((uint8_t *)p)[i] = (uint8_t)at[i];
  } else if (count) {
    memcpy(p, at, 8 * (size_t)count);
  }
  return at + count;
}

/* Notes the shapes of the boxes of an array or cell that stands at `at`; gives the place after it. */
static const int64_t *gr_note_shapes(const int64_t *at, const gr_field *f, gr_word *found) {
  int64_t count = 1;
  for (int k = 0; k < f->rank; k++) count *= *at++;
  if (f->kind == 3)
    for (int64_t i = 0; i < count; i++)
      if (at[i] >= 0) found[at[i]].i = f->shape;
  return at + count;
}

/* Makes the cells of a buffer. After its words come the places of the cells, dims[2] of them, in order; what a cell is follows from
   what refers to it, which comes later. `what` says what the slot holds: a box, or an array of boxes, whose parts go to `box` or to `rest`
   and `owner`. At the place of a cell, `found` has first its shape, or -1 if no box that is read refers to it, then the cell. */
static void gr_input_boxes(const gradus_slot *s, const gr_shape_info *shapes, gr_field what, gr_cell **box, gr_word *rest, gr_block **owner) {
  gr_thread *self = &gr_self;
  const int64_t *words = s->value.data, *order = words + s->dims[0];
  gr_word *found = malloc(8 * (size_t)(s->dims[0] + 1));
  if (!found) gr_fail(GR_MEMORY);
  for (int64_t n = 0; n < s->dims[2]; n++) found[order[n]].i = -1;
  gr_note_shapes(what.rank ? words + s->dims[1] : &s->dims[1], &what, found);
  for (int64_t n = s->dims[2] - 1; n >= 0; n--) {
    const int64_t *at = words + order[n], shape = found[order[n]].i;
    if (shape < 0) continue;
    const gr_cell_info *info = &shapes[shape].cell[*at++];
    for (int k = 0; k < info->fields; k++) at = gr_note_shapes(at, info->field + k, found);
  }
  for (int64_t n = 0; n < s->dims[2]; n++) {
    const int64_t *at = words + order[n], shape = found[order[n]].i, tag = *at++;
    if (shape < 0) continue;
    const gr_cell_info *info = &shapes[shape].cell[tag];
    gr_cell *c = gr_cell_new(self, (int)tag, info->boxes, info->blocks, info->words, 0);
    c->holders = 0;
    for (int k = 0; k < info->fields; k++) {
      const gr_field *f = info->field + k;
      if (f->rank)
        at = gr_read_array(self, at, f, c->w + f->rest, &c->w[f->place].b, found);
      else if (f->kind == 3)
        c->w[f->place].c = gr_cell_at(found, *at++);
      else
        c->w[f->place].i = *at++;
    }
    found[order[n]].c = c;
  }
  if (what.rank)
    gr_read_array(self, words + s->dims[1], &what, rest, owner, found);
  else
    *box = gr_cell_at(found, s->dims[1]);
  free(found);
}
