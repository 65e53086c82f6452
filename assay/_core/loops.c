/* Loops that numpy and torch cannot express well; `compiled.py` calls them. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A function in two versions, for CPUs with and without wide registers, of which the loader takes the right one. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#elif defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#define LANES 8
#define BLOCK 128 /* rows finished together, a multiple of LANES */
#define MOST_CLASSES 1024
#define TERMS 32 /* that floats are added up for, before the sum goes on in double */

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef float Half __attribute__((vector_size(2 * LANES)));
typedef double Doubles __attribute__((vector_size(4 * LANES)));

#define ALL(x) ((Floats){x, x, x, x, x, x, x, x})
#define HIGHER(a, b) ((Floats)(((Ints)(a) & ~((a) <= (b))) | ((Ints)(b) & ((a) <= (b))))) /* a, where it is nan */

/* Adds eight floats to eight doubles. */
#define ADD(into, x)                                                                                                   \
    do {                                                                                                               \
        (into)[0] += __builtin_convertvector(((Half){(x)[0], (x)[1], (x)[2], (x)[3]}), Doubles);                       \
        (into)[1] += __builtin_convertvector(((Half){(x)[4], (x)[5], (x)[6], (x)[7]}), Doubles);                       \
    } while (0)

/* exp(x) for -86 <= x <= 0 to 1.2e-7 of itself: 2^m e^r with |r| <= ln(2) / 2, by the coefficients of Cephes' expf. */
#define EXP(x, into)                                                                                                   \
    do {                                                                                                               \
        const Floats shifted = (x) * ALL(1.44269504f) + ALL(12582912.0f); /* 1.5 2^23: rounds to an integer */         \
        const Floats m = shifted - ALL(12582912.0f);                                                                   \
        const Floats r = (x) - m * ALL(0.693359375f) + m * ALL(2.12194440e-4f), rr = r * r;                            \
        const Floats third = ALL(1.3981999507e-3f) + ALL(1.9875691500e-4f) * r;                                        \
        const Floats second = ALL(4.1665795894e-2f) + ALL(8.3334519073e-3f) * r + third * rr;                          \
        const Floats first = ALL(5.0000001201e-1f) + ALL(1.6666665459e-1f) * r + second * rr;                          \
        (into) = (ALL(1.0f) + r + first * rr) * (Floats)(((Ints)shifted + (127 - 0x4B400000)) << 23);                  \
    } while (0)

/* log(x) of a normal x > 0: e ln 2 + log m with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh((m - 1) / (m + 1)).
 * Written so that a compiler makes vectors of it.
 */
static inline double log_of(double x)
{
    const uint64_t sqrt_half = 0x3FE6A09E667F3BCD, bias = 1024;
    uint64_t bits, power;
    double m, e;
    memcpy(&bits, &x, sizeof x);
    power = (bits - sqrt_half + (bias << 52)) >> 52; /* e + bias */
    bits -= (power - bias) << 52;
    memcpy(&m, &bits, sizeof m);
    power += 0x4330000000000000; /* 2^52, whose lowest bits are those of an integer */
    memcpy(&e, &power, sizeof e);
    e -= 4503599627370496.0 + bias;
    const double s = (m - 1) / (m + 1), q = s * s;
    double sum = 1.0 / 21;
    sum = sum * q + 1.0 / 19;
    sum = sum * q + 1.0 / 17;
    sum = sum * q + 1.0 / 15;
    sum = sum * q + 1.0 / 13;
    sum = sum * q + 1.0 / 11;
    sum = sum * q + 1.0 / 9;
    sum = sum * q + 1.0 / 7;
    sum = sum * q + 1.0 / 5;
    sum = sum * q + 1.0 / 3;
    return e * 0.6931471805599453 + (2 * s + 2 * s * q * sum);
}

/* exp(x) for -700 <= x <= 700 in the same way, with as many terms of Taylor's series as |r| <= ln(2) / 2 needs. */
static inline double exp_of(double x)
{
    const double round = 6755399441055744.0; /* 1.5 2^52 */
    const double shifted = x * 1.4426950408889634 + round, m = shifted - round;
    const double r = x - m * 0.693147180369123816490 - m * 1.90821492927058770002e-10; /* ln 2 in two parts */
    double sum = 1.0 / 6227020800, power;
    uint64_t bits;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 1.0 / 2;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return (sum * r * r + r + 1) * power;
}

/* Is one of eight floats above the threshold? */
static inline bool any_above(const float *x, float threshold)
{
    Floats values;
    uint64_t mask[LANES / 2];
    memcpy(&values, x, sizeof values);
    const Ints above = values > ALL(threshold);
    memcpy(mask, &above, sizeof mask);
    return mask[0] | mask[1] | mask[2] | mask[3];
}

/* Confidence, NLL, Brier, entropy (rows of `columns`, `stride` apart) and correctness of n rows of k logits.
 * `probabilities`, where given, receives them, [n, k]. Returns the first row whose label is no class, or n.
 */
WIDE int64_t assay_reduce_logits(const float *scores, const int64_t *labels, int64_t n, int64_t k, double *columns,
                              int64_t stride, bool *correct, float *probabilities)
{
    Floats z[MOST_CLASSES];
    double total[BLOCK], moment[BLOCK], squares[BLOCK], label_below[BLOCK], label_weight[BLOCK];

    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t at = 0; at < rows; at += LANES) {
            const float *row[LANES];
            for (int i = 0; i < LANES; i++) /* past the end the last row again */
                row[i] = scores + k * (start + (at + i < rows ? at + i : rows - 1));
            Floats top = ALL(-INFINITY);
            for (int64_t j = 0; j < k; j++) {
                z[j] = (Floats){row[0][j], row[1][j], row[2][j], row[3][j], row[4][j], row[5][j], row[6][j], row[7][j]};
                top = HIGHER(z[j], top);
            }
            Doubles totals[2] = {0}, moments[2] = {0}, sums[2] = {0};
            Ints tops = {0};
            for (int64_t from = 0; from < k; from += TERMS) {
                const int64_t to = k - from < TERMS ? k : from + TERMS;
                Floats some_moments = ALL(0.0f), some_sums = ALL(0.0f);
                for (int64_t j = from; j < to; j++) {
                    const Floats below = HIGHER(z[j] - top, ALL(-86.0f));
                    const Ints at_top = below >= ALL(0.0f);
                    Floats weight;
                    EXP(below, weight);
                    z[j] = weight = (Floats)((Ints)weight & ~(below <= ALL(-86.0f)));
                    some_moments += below * weight;
                    /* Squares too small to count would be denormal, and slow. */
                    const Floats large = (Floats)((Ints)weight & ~(below <= ALL(-43.0f)));
                    some_sums += large * large;
                    /* The highest are counted apart: what is small is not lost beside 1, in whatever order it comes, so
                     * that a confidence near 1 keeps its distance from 1, and saturated rows their order. */
                    tops -= at_top;
                    const Floats rest = (Floats)((Ints)weight & ~at_top);
                    ADD(totals, rest);
                }
                ADD(moments, some_moments);
                ADD(sums, some_sums);
            }
            const Floats n_tops = __builtin_convertvector(tops, Floats);
            ADD(totals, n_tops);
            memcpy(total + at, totals, sizeof totals);
            memcpy(moment + at, moments, sizeof moments);
            memcpy(squares + at, sums, sizeof sums);
            for (int64_t i = 0; i < LANES && at + i < rows; i++) {
                const int64_t label = labels[start + at + i];
                if (label < 0 || label >= k)
                    return start + at + i;
                label_below[at + i] = (double)row[i][label] - top[i];
                label_weight[at + i] = z[label][i];
                bool right = row[i][label] == top[i];
                if (squares[at + i] >= 2) /* of classes tied at the top the first is the answer */
                    for (int64_t j = 0; j < label; j++)
                        right = right && row[i][j] != top[i];
                correct[start + at + i] = right;
            }
            for (int64_t i = 0; probabilities && i < LANES && at + i < rows; i++) {
                const float confidence = (float)(1 / total[at + i]);
                for (int64_t j = 0; j < k; j++)
                    probabilities[(start + at + i) * k + j] = z[j][i] * confidence;
            }
        }
        double *confidence = columns + start, *nll = confidence + stride, *brier = nll + stride,
               *entropy = brier + stride;
        for (int64_t i = 0; i < rows; i++) {
            const double c = 1 / total[i], log_total = log_of(total[i]);
            const double squared = (squares[i] * c - 2 * label_weight[i]) * c + 1;
            confidence[i] = c;
            nll[i] = log_total - label_below[i];
            brier[i] = squared < 0 ? 0 : squared;
            entropy[i] = log_total - moment[i] * c;
        }
    }
    return n;
}

/* Adds n rows of probabilities to the sums of k classes: in `columns` [2, k] of each class all probabilities, and how
 * often it was the label; in `binned` [3, k, bins] of each class and bin how many probabilities above the threshold,
 * their sum, and how many of them the label's. Bin b ends with `upper[b]`. Returns as `assay_reduce_logits` does.
 */
WIDE int64_t assay_tally(const float *probabilities, const int64_t *labels, int64_t n, int64_t k, const double *upper,
                      int64_t bins, float threshold, double *columns, double *binned)
{
    for (int64_t i = 0; i < n; i++) {
        const float *p = probabilities + i * k;
        if (labels[i] < 0 || labels[i] >= k)
            return i;
        columns[k + labels[i]]++;
        for (int64_t j = 0; j < k; j++)
            columns[j] += p[j];
        for (int64_t start = 0; start < k; start += LANES) {
            const int64_t stop = k - start < LANES ? k : start + LANES;
            if (stop - start == LANES && !any_above(p + start, threshold))
                continue;
            for (int64_t j = start; j < stop; j++) {
                if (!(p[j] > threshold))
                    continue;
                int64_t b = (int64_t)(p[j] * (double)bins);
                b = b < bins ? b : bins - 1;
                b -= b && p[j] <= upper[b - 1]; /* on an edge */
                double *cell = binned + j * bins + b;
                cell[0] += 1;
                cell[k * bins] += p[j];
                cell[2 * k * bins] += labels[i] == j;
            }
        }
    }
    return n;
}

/* A ranking from n negated scores in ascending order, and the m among them that were errors: the distinct scores, how
 * many samples have at least each, and how many errors; `kept` and `wrong` begin with 0. Returns how many are distinct.
 */
int64_t assay_runs(const double *values, int64_t n, const double *errors, int64_t m, double *score, double *kept,
                   double *wrong)
{
    int64_t t = 0, e = 0;
    kept[0] = wrong[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + 1 < n && values[i + 1] == values[i])
            continue;
        while (e < m && errors[e] <= values[i])
            e++;
        score[t++] = -values[i];
        kept[t] = i + 1;
        wrong[t] = e;
    }
    return t;
}

/* From a ranking's scores [t] and cumulative counts [t + 1]: right answers among the kept, and how many their confidence
 * claims [t + 1]; samples, errors and right answers at each score [t].
 */
WIDE void assay_spread(const double *restrict score, const double *restrict kept, const double *restrict wrong, int64_t t,
                       double *restrict right, double *restrict claimed, double *restrict size,
                       double *restrict misses, double *restrict hits)
{
    double sum = right[0] = claimed[0] = 0;
    for (int64_t i = 0; i < t; i++) {
        right[i + 1] = kept[i + 1] - wrong[i + 1];
        size[i] = kept[i + 1] - kept[i];
        misses[i] = wrong[i + 1] - wrong[i];
        hits[i] = size[i] - misses[i];
    }
    for (int64_t i = 0; i < t; i++)
        claimed[i + 1] = sum += score[i] * size[i];
}

/* Sum over k of the error rate to expect among the k most confident, where ties come in any order. `kept` and `wrong`
 * are a ranking's, [t + 1].
 */
double assay_risks(const double *kept, const double *wrong, int64_t t)
{
    double sum = 0;
    for (int64_t i = 0; i < t; i++) {
        const double size = kept[i + 1] - kept[i], misses = wrong[i + 1] - wrong[i];
        sum += wrong[i + 1] / kept[i + 1];
        for (double j = 1; j < size; j++)
            sum += (wrong[i] + j * misses / size) / (kept[i] + j);
    }
    return sum;
}

/* sum of hits log c + misses log(1 - c) over descending scores between the least normal number and 1. */
WIDE double assay_log_likelihood(const double *score, const double *hits, const double *misses, int64_t t)
{
    double sums[BLOCK] = {0}, sum = 0;
    for (int64_t start = 0; start < t; start += BLOCK) {
        const int64_t rows = t - start < BLOCK ? t - start : BLOCK;
        const double *c = score + start, *right = hits + start, *wrong = misses + start;
        for (int64_t i = 0; i < rows; i++) /* one logarithm each, for few scores have both */
            sums[i] += (right[i] > 0 ? right[i] : wrong[i]) * log_of(right[i] > 0 ? c[i] : 1 - c[i]);
        for (int64_t i = 0; i < rows; i++)
            if (right[i] > 0 && wrong[i] > 0)
                sum += wrong[i] * log(1 - c[i]);
    }
    for (int64_t i = 0; i < BLOCK; i++)
        sum += sums[i];
    return sum;
}

/* Corners of the least concave majorant of n points, x rising: their indices, first and last among them, and how many
 * there are. Its slopes between corners are the isotonic regression of the steps of y, never rising.
 */
int64_t assay_majorant(const double *x, const double *y, int64_t n, int64_t *corner)
{
    int64_t t = 0;            /* the last corner so far */
    double run = 0, rise = 0; /* of the side that leads to it */
    corner[0] = 0;
    for (int64_t i = 1; i < n; i++) {
        const int64_t from = i - 1;
        double new_run = x[i] - x[from], new_rise = y[i] - y[from];
        while (i + 1 < n && (y[i + 1] - y[i]) * new_run == new_rise * (x[i + 1] - x[i])) /* straight on */
            i++;
        new_run = x[i] - x[from], new_rise = y[i] - y[from];
        while (t && new_rise * run >= rise * new_run) { /* no flatter than the side before: both become one */
            new_run += run;
            new_rise += rise;
            if (--t) {
                run = x[corner[t]] - x[corner[t - 1]];
                rise = y[corner[t]] - y[corner[t - 1]];
            }
        }
        corner[++t] = i;
        run = new_run;
        rise = new_rise;
    }
    return t + 1;
}

/* sum_ij d_i d_j exp(-|c_i - c_j| / width) over samples of descending confidence c, of which `size` tie at each score;
 * d = correct - confidence. Once c_i >= c_j the kernel is exp(-c_i / width) / exp(-c_j / width): one running sum.
 */
WIDE double assay_laplacian(const double *score, const double *size, const double *hits, int64_t t, double width)
{
    double decay[BLOCK], excess[BLOCK], above = 0, sum = 0;
    for (int64_t start = 0; start < t; start += BLOCK) {
        const int64_t rows = t - start < BLOCK ? t - start : BLOCK;
        for (int64_t i = 0; i < rows; i++) {
            decay[i] = exp_of(-score[start + i] / width);
            excess[i] = hits[start + i] - score[start + i] * size[start + i];
        }
        for (int64_t i = 0; i < rows; i++) {
            above += excess[i] * decay[i];
            sum += excess[i] * (2 * above / decay[i] - excess[i]);
        }
    }
    return sum;
}

/* The most bins, tried from `first` on, up to which every number of equal-mass bins has accuracies that never rise from
 * the most confident bin down, empty ones aside; at most `last`. `kept` and `right` are a ranking's, [t + 1].
 */
int64_t assay_sweep(const double *kept, const double *right, int64_t t, int64_t first, int64_t last)
{
    const int64_t n = (int64_t)kept[t];
    for (int64_t bins = first; bins <= last; bins++) {
        double accuracy = INFINITY;
        int64_t from = 0;
        for (int64_t j = 1; j <= bins; j++) {
            const int64_t limit = j * n / bins;
            int64_t to = from, above = limit < t ? limit + 1 : t + 1; /* kept[i] >= i */
            while (above - to > 1) { /* kept[to] <= limit, and kept[above] is more or beyond the end */
                const int64_t middle = (to + above) / 2;
                if (kept[middle] <= limit)
                    to = middle;
                else
                    above = middle;
            }
            if (to > from) {
                const double next = (right[to] - right[from]) / (kept[to] - kept[from]);
                if (next > accuracy)
                    return bins - 1;
                accuracy = next;
            }
            from = to;
        }
    }
    return last;
}
