/* Counts of confidences in the cells of a fixed grid; see `plain.Grid`. Included by loops.c. */

typedef struct {
    uint64_t counts; /* samples, and errors times 2^32 */
    double sum;      /* of confidence */
    uint64_t only;   /* bits of the one confidence that all samples have; EMPTY of none, MIXED of several */
} Cell;

/* A third version, for CPUs that compare whole numbers of 64 bits at once, takes a sixth less time. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST WIDE
#endif

#define EMPTY UINT64_MAX /* no number of [0, 1] has these bits */
#define MIXED (UINT64_MAX - 1)

/* Steps of the odds, given by their bits, in so many octaves from `first` on; none below, all above. */
#define STEPS(into, odds, first, octaves, shift)                                                                       \
    do {                                                                                                               \
        const int64_t each = 1 << (52 - (shift)), most = (octaves)*each;                                               \
        Longs steps = ((odds) >> (shift)) - (1023 + (first)) * each;                                                   \
        steps &= steps > 0;                                                                                            \
        (into) += (steps & (steps < most)) | (most & ~(steps < most));                                                 \
    } while (0)

/* Adds n samples to cells. Bins of equal width, so many, split the cells that their edges are in: a confidence above j
 * edges is j cells further. Whether answers are correct is a byte each, or if `bit` is
 * not negative a bit each, of which the first is that one. Returns the first row whose confidence is not in [0, 1], or n;
 * the rows before its block of 128 are counted then.
 */
WIDEST int64_t assay_tally(const double *confidence, const uint8_t *correct, int64_t bit, int64_t n, double bins,
                         Cell *cells)
{
    const double magic = 6755399441055744.0; /* 1.5 2^52: rounds to an integer */
    double c[BLOCK] = {0};
    int64_t index[BLOCK];
    uint64_t added[BLOCK];
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t i = 0; i < rows; i++)
            c[i] = confidence[start + i] + 0.0; /* -0 becomes 0 */
        Longs good = ~(Longs){0};
        for (int64_t i = 0; i < rows; i += 4) {
            Doubles x;
            Longs edges, origin, bits, cell;
            memcpy(&x, c + i, sizeof x);
            const Doubles odds = x / (DOUBLES(1.0) - x), scaled = x * bins, shifted = scaled + magic;
            const Doubles nearest = shifted - magic, off = scaled - nearest;
            Longs above = off > DOUBLES(0.0); /* the nearest edge, unless rounding hides it */
            const Longs unsure = (off < DOUBLES(1e-13)) & (off > DOUBLES(-1e-13)) & (nearest < bins);
            if (unsure[0] | unsure[1] | unsure[2] | unsure[3])
                above = x > nearest / bins;
            memcpy(&edges, &shifted, sizeof edges);
            memcpy(&origin, &(Doubles){magic, magic, magic, magic}, sizeof origin);
            memcpy(&bits, &odds, sizeof bits);
            cell = 1 - (bits >= (1023L - 20) << 52);
            STEPS(cell, bits, -20, 12, 45);
            STEPS(cell, bits, -8, 36, 42);
            STEPS(cell, bits, 28, 25, 45);
            cell += edges - origin - 1 - above; /* a mask is -1 where it holds */
            cell &= x > DOUBLES(0.0);
            good &= (x >= DOUBLES(0.0)) & (x <= DOUBLES(1.0));
            memcpy(index + i, &cell, sizeof cell);
        }
        if (!(good[0] & good[1] & good[2] & good[3]))
            for (int64_t i = 0; i < rows; i++)
                if (!(c[i] >= 0 && c[i] <= 1))
                    return start + i;
        if (bit < 0)
            for (int64_t i = 0; i < rows; i++)
                added[i] = correct[start + i] ? 1 : 1 + (1ULL << 32);
        else
            for (int64_t i = 0; i < rows; i++) {
                const int64_t at = bit + start + i;
                added[i] = 1 + ((uint64_t)(~correct[at >> 3] >> (at & 7) & 1) << 32);
            }
        for (int64_t i = 0; i < rows; i++) {
            Cell *cell = cells + index[i];
            const uint64_t only = cell->only;
            cell->counts += added[i];
            cell->sum += c[i];
            if (only != MIXED) {
                uint64_t bits;
                memcpy(&bits, c + i, sizeof bits);
                cell->only = (only == bits) | (only == EMPTY) ? bits : MIXED;
            }
        }
    }
    return n;
}
