/* Counts of confidences in the cells of a fixed grid; see `plain.Grid`. Included by loops.c, once for each width of
 * registers: LANES confidences stand side by side, in a WIDE_VEC.
 */

/* Steps of the odds, given by their bits, in so many octaves from `first` on; none below, all above. */
#define STEPS(into, odds, first, octaves, shift)                                                                       \
    do {                                                                                                               \
        const int64_t each = 1 << (52 - (shift)), most = (octaves)*each;                                               \
        WIDE_MASK steps = ((odds) >> (shift)) - (1023 + (first)) * each;                                                   \
        steps &= steps > 0;                                                                                            \
        (into) += (steps & (steps < most)) | (most & ~(steps < most));                                                 \
    } while (0)

/* Adds n samples to cells. Bins of equal width, so many, split the cells that their edges are in: a confidence above j
 * edges is j cells further. Whether answers are correct is a byte each, or if `bit` is not negative a bit each, of which
 * the first is that one. Returns the first row whose confidence is not in [0, 1], or n; the rows before its block of 128
 * are counted then.
 */
VERSIONS int64_t NAME(assay_tally)(const double *confidence, const uint8_t *correct, int64_t bit, int64_t n,
                                   double bins, Cell *cells)
{
    const double magic = 6755399441055744.0; /* 1.5 2^52: rounds to an integer */
    double c[BLOCK] = {0};
    int64_t index[BLOCK];
    uint64_t added[BLOCK];
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t i = 0; i < rows; i++)
            c[i] = confidence[start + i] + 0.0; /* -0 becomes 0 */
        WIDE_MASK good = ~(WIDE_MASK){0};
        for (int64_t i = 0; i < rows; i += LANES) {
            WIDE_VEC x;
            WIDE_MASK edges, origin, bits, cell;
            memcpy(&x, c + i, sizeof x);
            const WIDE_VEC odds = x / (WIDE_ALL(1.0) - x), scaled = x * bins, shifted = scaled + magic;
            const WIDE_VEC nearest = shifted - magic, off = scaled - nearest;
            WIDE_MASK above = off > WIDE_ALL(0.0); /* the nearest edge, unless rounding hides it */
            const WIDE_MASK unsure = (off < WIDE_ALL(1e-13)) & (off > WIDE_ALL(-1e-13)) & (nearest < bins);
            if (BITS(unsure))
                above = x > nearest / bins;
            memcpy(&edges, &shifted, sizeof edges);
            memcpy(&origin, &WIDE_ALL(magic), sizeof origin);
            memcpy(&bits, &odds, sizeof bits);
            cell = 1 - (bits >= (1023L - 20) << 52);
            STEPS(cell, bits, -20, 12, 45);
            STEPS(cell, bits, -8, 36, 42);
            STEPS(cell, bits, 28, 25, 45);
            cell += edges - origin - 1 - above; /* a mask is -1 where it holds */
            cell &= x > WIDE_ALL(0.0);
            good &= (x >= WIDE_ALL(0.0)) & (x <= WIDE_ALL(1.0));
            memcpy(index + i, &cell, sizeof cell);
        }
        if (BITS(~good))
            for (int64_t i = 0; i < rows; i++)
                if (!(c[i] >= 0 && c[i] <= 1))
                    return start + i;
        if (bit < 0)
            for (int64_t i = 0; i < rows; i++)
                added[i] = correct[start + i] ? 1 : 1 + (1ULL << 32);
        else
            for (int64_t i = 0; i < rows; i += 8) { /* past the rows there is room */
                const int64_t at = bit + start + i, last = (bit + n - 1) >> 3;
                const uint32_t two = correct[at >> 3] | (uint32_t)correct[at >> 3 < last ? (at >> 3) + 1 : last] << 8;
                const uint64_t wrong = ~two >> (at & 7);
                for (int j = 0; j < 8; j++)
                    added[i + j] = 1 + ((wrong >> j & 1) << 32);
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

#undef STEPS
#undef LANES
#undef VERSIONS
#undef WIDE_VEC
#undef WIDE_MASK
#undef WIDE_ALL
#undef BITS
#undef NAME
