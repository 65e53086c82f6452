/* Counts of confidences in the cells of a fixed grid; see `plain.Grid`. Included by loops.c. */

/* A cell of the grid of a tally. */
typedef struct {
    uint64_t counts; /* samples, and errors times 2^32 */
    double sum;      /* of confidence */
    uint64_t only;   /* bits of the one confidence that all samples have; EMPTY of none, MIXED of several */
} Cell;

#define EMPTY UINT64_MAX /* no number of [0, 1] has these bits */
#define MIXED (UINT64_MAX - 1)

typedef uint64_t Words64 __attribute__((may_alias));

/* Steps of the odds, given by the upper half of their bits, in so many octaves from `first` on; none below, all above. */
static inline int32_t steps(int32_t odds, int32_t first, int32_t octaves, int shift)
{
    const int32_t each = 1 << (52 - shift), most = octaves * each;
    const int32_t found = (odds >> (shift - 32)) - (1023 + first) * each, some = found > 0 ? found : 0;
    return some < most ? some : most;
}

/* Which of up to eight answers from row `at` of n on are wrong, a bit each; see `assay_tally`. */
static inline uint64_t wrong_answers(const uint8_t *correct, int64_t bit, int64_t at, int64_t n)
{
    uint32_t right = 0;
    if (bit < 0)
        for (int64_t j = 0; j < 8 && at + j < n; j++)
            right |= (uint32_t)(correct[at + j] != 0) << j;
    else {
        const int64_t first = (bit + at) >> 3, last = (bit + n - 1) >> 3;
        right = (correct[first] | (uint32_t)correct[first < last ? first + 1 : last] << 8) >> ((bit + at) & 7);
    }
    return ~right;
}

/* Adds n samples to cells. Bins of equal width, so many, split the cells that their edges are in: a confidence above j
 * edges is j cells further. Whether answers are correct is a byte each, or if `bit` is not negative a bit each, of which
 * the first is that one. Returns the first row whose confidence is not in [0, 1], or n; the rows before its block of 128
 * are counted then.
 *
 * The loops over a block have no branches, so that the compiler works on several rows side by side.
 */
WIDE int64_t assay_tally(const double *confidence, const uint8_t *correct, int64_t bit, int64_t n, double bins,
                         Cell *cells)
{
    const double magic = 6755399441055744.0; /* 1.5 2^52: rounds to an integer, which the lowest bits are */
    double c[BLOCK] = {0}, odds[BLOCK], edges[BLOCK];
    int32_t upper[BLOCK], index[BLOCK];
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        int64_t bad = 0, unsure = 0;
        for (int64_t i = 0; i < rows; i++)
            c[i] = confidence[start + i] + 0.0; /* -0 becomes 0 */
        for (int64_t i = 0; i < BLOCK; i += 8)
            __builtin_prefetch(confidence + start + 4 * BLOCK + i); /* the next page, which no processor fetches ahead */
        for (int i = 0; i < BLOCK; i++) {
            const double scaled = c[i] * bins, shifted = scaled + magic, nearest = shifted - magic, off = scaled - nearest;
            odds[i] = c[i] / (1.0 - c[i]);
            edges[i] = shifted;
            bad |= -(int64_t) !(c[i] >= 0.0) | -(int64_t) !(c[i] <= 1.0);
            unsure |= -(int64_t)(off < 1e-13) & -(int64_t)(off > -1e-13) & -(int64_t)(nearest < bins);
        }
        if (bad)
            for (int64_t i = 0; i < rows; i++)
                if (!(c[i] >= 0 && c[i] <= 1))
                    return start + i;
        if (unsure) /* an edge so near that rounding may hide which side it is on */
            for (int i = 0; i < BLOCK; i++)
                edges[i] += c[i] > (edges[i] - magic) / bins ? 1.0 : 0.0;
        else
            for (int i = 0; i < BLOCK; i++)
                edges[i] += c[i] * bins > edges[i] - magic ? 1.0 : 0.0;
        for (int i = 0; i < BLOCK; i++)
            upper[i] = (int32_t)(((const Words64 *)odds)[i] >> 32);
        for (int i = 0; i < BLOCK; i++) { /* one further after the cell of 0, one less for an edge above */
            const int32_t cell = (int32_t)((const Words64 *)edges)[i] + (upper[i] >= (1023 - 20) << 20 ? 1 : 0);
            index[i] = cell + steps(upper[i], -20, 12, 45) + steps(upper[i], -8, 36, 42) + steps(upper[i], 28, 25, 45);
        }
        for (int i = 0; i < BLOCK; i++)
            index[i] &= c[i] > 0 ? -1 : 0;
        for (int64_t i = 0; i < rows; i += 8) {
            uint64_t wrong = wrong_answers(correct, bit, start + i, n) << 32;
            for (int64_t j = i; j < rows && j < i + 8; j++, wrong >>= 1) {
                Cell *cell = cells + index[j];
                const uint64_t only = cell->only;
                cell->counts += 1 + (wrong & 1ULL << 32);
                cell->sum += c[j];
                if (only != MIXED) {
                    uint64_t bits;
                    memcpy(&bits, c + j, sizeof bits);
                    cell->only = (only == bits) | (only == EMPTY) ? bits : MIXED;
                }
            }
        }
    }
    return n;
}
