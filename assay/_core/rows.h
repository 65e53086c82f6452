/* Loops over rows of k scores, for one type of number: included by `loops.c` once for each.
 *
 * LANES rows are worked on side by side: VEC holds a number of each, MASK as many integers of its size, and WIDEN makes
 * PARTS vectors WIDE_VEC of doubles of it. TURN brings TURNED scores of each row into columns, and BITS has a bit for
 * each number of a MASK. EXP is good from LEAST to 0, and below that a weight counts as 0. NAME(x) names a function for
 * the type, and VERSIONS says for which processors. `scratch` has room for LANES * k numbers.
 *
 * While rows are worked on the next ones are fetched, for each class as many scores as a vector holds: beyond the end of
 * a page the processor does not fetch by itself.
 */

#define BLEND(mask, a, b) ((VEC)(((MASK)(a) & (mask)) | ((MASK)(b) & ~(mask))))

/* The scores of LANES rows, class by class, in `scratch`, and the highest of each row; past `n` the last row again. */
#define GATHER(z, top, scores, n, k)                                                                                   \
    do {                                                                                                               \
        const REAL *row[LANES];                                                                                        \
        for (int i = 0; i < LANES; i++)                                                                                \
            row[i] = (scores) + (k) * (i < (n) ? i : (n) - 1);                                                         \
        (top) = ALL((REAL)-INFINITY);                                                                                  \
        for (int64_t from = 0; (k) >= TURNED && from < (k); from += TURNED) {                                          \
            const int64_t j = (k) - from < TURNED ? (k) - TURNED : from; /* the last take in some of those before */   \
            TURN((z) + j, row, j);                                                                                     \
            for (int i = 0; i < TURNED; i++)                                                                           \
                (top) = BLEND((z)[j + i] > (top), (z)[j + i], top);                                                    \
        }                                                                                                              \
        for (int64_t j = 0; (k) < TURNED && j < (k); j++) {                                                            \
            for (int i = 0; i < LANES; i++)                                                                            \
                (z)[j][i] = row[i][j];                                                                                 \
            (top) = BLEND((z)[j] > (top), (z)[j], top);                                                                \
        }                                                                                                              \
    } while (0)

/* The weight exp(x); where x is LEAST or lower both become 0, and where it is nan the weight is. */
#define WEIGH(weight, x)                                                                                               \
    do {                                                                                                               \
        const MASK too_low = (x) <= ALL(LEAST);                                                                        \
        EXP(weight, x);                                                                                                \
        (weight) = (VEC)((MASK)(weight) & ~too_low);                                                                   \
        (x) = (VEC)((MASK)(x) & ~too_low);                                                                             \
    } while (0)

/* Adds a vector to PARTS vectors of doubles. */
#define ADD(into, x)                                                                                                   \
    do {                                                                                                               \
        WIDE_VEC wide[PARTS];                                                                                          \
        WIDEN(wide, x);                                                                                                \
        for (int h = 0; h < PARTS; h++)                                                                                \
            (into)[h] += wide[h];                                                                                      \
    } while (0)

/* Whether the label has the highest score; of classes tied there the first is the answer. */
static inline bool NAME(right)(const REAL *row, int64_t label, REAL top, bool tied)
{
    bool right = row[label] == top;
    for (int64_t j = 0; tied && j < label; j++)
        right = right && row[j] != top;
    return right;
}

/* Adds one probability to the bin of its class. */
static inline void NAME(bin)(double p, int64_t j, bool hit, int64_t k, const Classes *classes)
{
    const int64_t bins = classes->bins;
    if (!(p > classes->threshold))
        return;
    int64_t b = p >= 1 ? bins - 1 : (int64_t)(p * (double)bins);
    b = b < bins ? b : bins - 1;
    b -= b && p <= classes->upper[b - 1]; /* on an edge */
    double *cell = classes->binned + j * bins + b;
    cell[0] += 1;
    cell[k * bins] += p;
    cell[2 * k * bins] += hit;
}

/* Adds the probabilities z * unit of `rows` of LANES rows to the sums of the classes; a unit past the rows is 0. */
#define TALLY(z, unit, rows, label, k, classes)                                                                        \
    do {                                                                                                               \
        VEC near; /* what is at most this is at most the threshold */                                                  \
        WIDE_VEC units[PARTS];                                                                                         \
        for (int i = 0; i < LANES; i++)                                                                                \
            near[i] = i < (rows) ? (REAL)((classes)->threshold / (unit)[i] * (1 - 1e-6)) : (REAL)INFINITY;             \
        memcpy(units, unit, sizeof units);                                                                             \
        for (int64_t i = 0; i < LANES && i < (rows); i++)                                                              \
            (classes)->labels[(label)[i]]++;                                                                           \
        for (int64_t j = 0; j < (k); j++) {                                                                            \
            WIDE_VEC mass[PARTS];                                                                                      \
            Doubles sum;                                                                                               \
            WIDEN(mass, (z)[j]);                                                                                       \
            memcpy(&sum, (classes)->mass + 4 * j, sizeof sum);                                                         \
            for (int h = 0; h < PARTS; h++) {                                                                          \
                const WIDE_VEC some = mass[h] * units[h];                                                              \
                ADD_FOURS(sum, some);                                                                                  \
            }                                                                                                          \
            memcpy((classes)->mass + 4 * j, &sum, sizeof sum);                                                         \
            for (uint32_t rest = BITS((z)[j] > near); rest; rest &= rest - 1) {                                        \
                const int i = __builtin_ctz(rest);                                                                     \
                NAME(bin)((double)(z)[j][i] * (unit)[i], j, (label)[i] == j, k, classes);                              \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Whether all n numbers are finite: 0 times one that is not is nan, and so is every sum with it. */
VERSIONS bool NAME(assay_finite)(const REAL *x, int64_t n)
{
    VEC sums[4] = {0}, some;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int j = 0; j < 4; j++) {
            __builtin_prefetch(x + i + (j + 64) * LANES);
            memcpy(&some, x + i + j * LANES, sizeof some);
            sums[j] += some * (REAL)0;
        }
    REAL sum = 0;
    for (; i < n; i++)
        sum += x[i] * (REAL)0;
    sums[0] += sums[1] + sums[2] + sums[3];
    for (int j = 0; j < LANES; j++)
        sum += sums[0][j];
    return sum == 0;
}

/* Confidence, NLL, Brier, entropy (rows of `out`, `stride` apart) and correctness of n rows of k logits. Each row is
 * added to the sums of `classes` too, where given.
 */
VERSIONS int64_t NAME(assay_logits)(const REAL *scores, const int64_t *labels, int64_t n, int64_t k, double *out,
                                int64_t stride, bool *correct, REAL *scratch, const Classes *classes)
{
    double totals[BLOCK] = {0}, moments[BLOCK], squares[BLOCK], label_below[BLOCK], label_weight[BLOCK];
    double log_totals[BLOCK];
    VEC *z = (VEC *)scratch, top;

    if (n < 0 || k < 1 || (classes && (classes->bins < 1 || !(classes->threshold >= 0))))
        return -1;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t at = 0; at < rows; at += LANES) {
            const REAL *first = scores + k * (start + at);
            GATHER(z, top, first, rows - at, k);
            WIDE_VEC total[PARTS] = {0}, moment[PARTS] = {0}, square[PARTS] = {0};
            MASK tops = {0};
            for (int64_t from = 0; from < k; from += TERMS) {
                const int64_t to = k - from < TERMS ? k : from + TERMS;
                VEC some = ALL((REAL)0), some_moments = some, some_squares = some;
                for (int64_t j = from; j < to; j++) {
                    __builtin_prefetch(first + LANES * (k + j));
                    VEC below = z[j] - top, weight;
                    const MASK at_top = below >= ALL((REAL)0);
                    WEIGH(weight, below);
                    z[j] = weight;
                    /* The highest are counted apart: what is small is not lost beside 1, in whatever order it comes, so
                     * that a confidence near 1 keeps its distance from 1, and saturated rows their order. */
                    tops -= at_top;
                    weight = (VEC)((MASK)weight & ~at_top);
                    some += weight;
                    some_moments += below * weight;
                    /* Squares too small to count would be denormal, and slow. */
                    weight = (VEC)((MASK)weight & ~(below <= ALL(LEAST / 2)));
                    some_squares += weight * weight;
                }
                ADD(total, some);
                ADD(moment, some_moments);
                ADD(square, some_squares);
            }
            const VEC n_tops = __builtin_convertvector(tops, VEC);
            ADD(total, n_tops);
            ADD(square, n_tops);
            memcpy(totals + at, total, sizeof total);
            memcpy(moments + at, moment, sizeof moment);
            memcpy(squares + at, square, sizeof square);
            for (int64_t i = 0; i < LANES && at + i < rows; i++) {
                const int64_t label = labels[start + at + i];
                if (label < 0 || label >= k)
                    return start + at + i;
                label_below[at + i] = (double)first[i * k + label] - (double)top[i];
                label_weight[at + i] = (double)z[label][i];
                correct[start + at + i] = NAME(right)(first + i * k, label, top[i], tops[i] > 1);
            }
            if (classes) {
                double unit[LANES] = {0};
                for (int64_t i = 0; i < LANES && at + i < rows; i++)
                    unit[i] = 1 / totals[at + i];
                TALLY(z, unit, rows - at, labels + start + at, k, classes);
            }
        }
        double *confidence = out + start, *nll = confidence + stride, *brier = nll + stride, *entropy = brier + stride;
        for (int64_t i = 0; i < rows; i += LANES / PARTS) { /* past the rows there is room, and nothing is read from it */
            WIDE_VEC total, log_total;
            memcpy(&total, totals + i, sizeof total);
            LOG(log_total, total);
            memcpy(log_totals + i, &log_total, sizeof log_total);
        }
        for (int64_t i = 0; i < rows; i++) {
            const double c = 1 / totals[i], squared = (squares[i] * c - 2 * label_weight[i]) * c + 1;
            confidence[i] = c;
            nll[i] = log_totals[i] - label_below[i];
            brier[i] = squared < 0 ? 0 : squared;
            entropy[i] = log_totals[i] - moments[i] * c;
        }
    }
    return n;
}

/* The same of n rows of k probabilities; 0 log 0 = 0, and of a true class of probability 0 the NLL is infinite. */
VERSIONS int64_t NAME(assay_probabilities)(const REAL *scores, const int64_t *labels, int64_t n, int64_t k, double *out,
                                       int64_t stride, bool *correct, REAL *scratch, const Classes *classes)
{
    VEC *p = (VEC *)scratch, top;

    if (n < 0 || k < 1 || (classes && (classes->bins < 1 || !(classes->threshold >= 0))))
        return -1;
    for (int64_t start = 0; start < n; start += LANES) {
        const REAL *first = scores + k * start;
        GATHER(p, top, first, n - start, k);
        WIDE_VEC square[PARTS] = {0}, entropy[PARTS] = {0};
        MASK tops = {0};
        for (int64_t j = 0; j < k; j++) {
            __builtin_prefetch(first + LANES * (k + j));
            WIDE_VEC wide[PARTS], logarithm;
            tops -= p[j] >= top;
            WIDEN(wide, p[j]);
            for (int h = 0; h < PARTS; h++) {
                /* What is too small for a normal number is 0 here; it would add less than 1e-305. */
                const WIDE_MASK none = wide[h] < WIDE_ALL(2.2250738585072014e-308);
                const WIDE_VEC some = (WIDE_VEC)(((WIDE_MASK)wide[h] & ~none) | ((WIDE_MASK)WIDE_ALL(1.0) & none));
                LOG(logarithm, some);
                square[h] += wide[h] * wide[h];
                entropy[h] -= some * logarithm;
            }
        }
        for (int64_t i = 0; i < LANES && start + i < n; i++) {
            const int64_t label = labels[start + i];
            if (label < 0 || label >= k)
                return start + i;
            const double at_label = (double)first[i * k + label];
            const double squared = square[i * PARTS / LANES][i % (LANES / PARTS)] - 2 * at_label + 1;
            double *found = out + start + i;
            found[0] = top[i] > 1 ? 1 : (double)top[i];
            found[stride] = -any_log(at_label);
            found[2 * stride] = squared < 0 ? 0 : squared;
            found[3 * stride] = entropy[i * PARTS / LANES][i % (LANES / PARTS)];
            correct[start + i] = NAME(right)(first + i * k, label, top[i], tops[i] > 1);
        }
        if (classes) {
            double unit[LANES] = {0};
            for (int64_t i = 0; i < LANES && start + i < n; i++)
                unit[i] = 1;
            TALLY(p, unit, n - start, labels + start, k, classes);
        }
    }
    return n;
}

/* Adds to `sums` [4] the NLL of softmax(b z) and its first three derivatives by b, over n rows of k logits z. */
VERSIONS int64_t NAME(assay_moments)(const REAL *scores, const int64_t *labels, int64_t n, int64_t k, double b,
                                 REAL *scratch, double *sums)
{
    VEC *z = (VEC *)scratch, top;

    if (n < 0 || k < 1)
        return -1;
    for (int64_t start = 0; start < n; start += LANES) {
        const REAL *rows = scores + k * start;
        GATHER(z, top, rows, n - start, k);
        WIDE_VEC total[PARTS] = {0}, first[PARTS] = {0}, second[PARTS] = {0}, third[PARTS] = {0};
        for (int64_t j = 0; j < k; j++) {
            __builtin_prefetch(rows + LANES * (k + j));
            VEC below = z[j] - top, weight;
            WIDE_VEC distance[PARTS], share[PARTS];
            below = BLEND(below < ALL((REAL)-1e30), ALL((REAL)-1e30), below); /* 0 times that is 0 */
            VEC x = below * ALL((REAL)b);
            WEIGH(weight, x);
            WIDEN(distance, below);
            WIDEN(share, weight);
            for (int h = 0; h < PARTS; h++) {
                total[h] += share[h];
                first[h] += share[h] *= distance[h];
                second[h] += share[h] *= distance[h];
                third[h] += share[h] *= distance[h];
            }
        }
        double s[LANES], s1[LANES], s2[LANES], s3[LANES];
        memcpy(s, total, sizeof s);
        memcpy(s1, first, sizeof s1);
        memcpy(s2, second, sizeof s2);
        memcpy(s3, third, sizeof s3);
        for (int64_t i = 0; i < LANES && start + i < n; i++) {
            const int64_t label = labels[start + i];
            if (label < 0 || label >= k)
                return start + i;
            const double m1 = s1[i] / s[i], m2 = s2[i] / s[i], m3 = s3[i] / s[i], variance = m2 - m1 * m1;
            const double label_below = (double)rows[i * k + label] - (double)top[i];
            sums[0] += log_of(s[i]) - b * label_below;
            sums[1] += m1 - label_below;
            sums[2] += variance;
            sums[3] += m3 - m1 * (m2 + 2 * variance);
        }
    }
    return n;
}

/* The highest probability of softmax(b z) of n rows of k logits z. */
VERSIONS int64_t NAME(assay_confidence)(const REAL *scores, int64_t n, int64_t k, double b, REAL *scratch,
                                    double *confidence)
{
    VEC *z = (VEC *)scratch, top;

    if (n < 0 || k < 1)
        return -1;
    for (int64_t start = 0; start < n; start += LANES) {
        const REAL *rows = scores + k * start;
        GATHER(z, top, rows, n - start, k);
        WIDE_VEC total[PARTS] = {0}, n_tops[PARTS];
        MASK tops = {0};
        for (int64_t j = 0; j < k; j++) {
            __builtin_prefetch(rows + LANES * (k + j));
            VEC x = (z[j] - top) * ALL((REAL)b), weight;
            WIDE_VEC rest[PARTS];
            const MASK at_top = x >= ALL((REAL)0);
            WEIGH(weight, x);
            tops -= at_top;
            weight = (VEC)((MASK)weight & ~at_top);
            WIDEN(rest, weight);
            for (int h = 0; h < PARTS; h++)
                total[h] += rest[h];
        }
        WIDEN(n_tops, __builtin_convertvector(tops, VEC));
        double sums[LANES];
        for (int h = 0; h < PARTS; h++)
            total[h] += n_tops[h];
        memcpy(sums, total, sizeof sums);
        for (int64_t i = 0; i < LANES && start + i < n; i++)
            confidence[start + i] = 1 / sums[i];
    }
    return n;
}

#undef REAL
#undef LANES
#undef TURNED
#undef VERSIONS
#undef VEC
#undef MASK
#undef ALL
#undef EXP
#undef TURN
#undef LEAST
#undef PARTS
#undef WIDE_VEC
#undef WIDE_MASK
#undef WIDE_ALL
#undef LOG
#undef ADD_FOURS
#undef WIDEN
#undef BITS
#undef NAME
#undef BLEND
#undef GATHER
#undef WEIGH
#undef ADD
#undef TALLY
