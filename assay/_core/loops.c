/* Loops that numpy expresses badly; `loops.py` calls them and `plain.py` has their twins.
 *
 * Compiled without contraction (-ffp-contract=off), so that digits are the same on every processor and those of the
 * twins. A function that reads labels returns the first row whose label is no class, or n; one that is given sizes it
 * cannot work with returns -1 and touches nothing.
 *
 * What works on vectors is a macro, not a function: a function would be translated for the least of processors before
 * it is inlined into the version for better ones.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A function in two versions, for CPUs with and without wide registers, of which the loader takes the right one. WIDER
 * ones, of registers twice as wide, have names of their own: they work on twice as many rows side by side, each as before.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#define WIDER __attribute__((target("arch=x86-64-v4")))
#elif defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#define BLOCK 128 /* rows finished together */
#define TERMS 8   /* that are added up in the type of the scores, before the sum goes on in double */

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(32)));
typedef uint64_t Words __attribute__((vector_size(32)));

typedef float Floats16 __attribute__((vector_size(64)));
typedef int32_t Ints16 __attribute__((vector_size(64)));
typedef double Doubles8 __attribute__((vector_size(64)));
typedef int64_t Longs8 __attribute__((vector_size(64)));
typedef uint64_t Words8 __attribute__((vector_size(64)));

#define FLOATS(x) ((Floats){x, x, x, x, x, x, x, x})
#define FLOATS16(x) ((Floats16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x})
#define DOUBLES(x) ((Doubles){x, x, x, x})
#define DOUBLES8(x) ((Doubles8){x, x, x, x, x, x, x, x})
#define WORDS(x) ((Words){x, x, x, x})
#define WORDS8(x) ((Words8){x, x, x, x, x, x, x, x})
#define ITSELF(x) (x)

/* exp(x) for -86 <= x <= 0 to 1.2e-7 of itself: 2^m e^r with |r| <= ln(2) / 2, by the coefficients of Cephes' expf. */
#define EXP_FLOATS(TYPE, BITS, ALL, into, x)                                                                           \
    do {                                                                                                               \
        const TYPE shifted = (x) * ALL(1.44269504f) + ALL(12582912.0f); /* 1.5 2^23: rounds to an integer */           \
        const TYPE m = shifted - ALL(12582912.0f);                                                                     \
        const TYPE r = (x) - m * ALL(0.693359375f) + m * ALL(2.12194440e-4f), rr = r * r;                              \
        const TYPE third = ALL(1.3981999507e-3f) + ALL(1.9875691500e-4f) * r;                                          \
        const TYPE second = ALL(4.1665795894e-2f) + ALL(8.3334519073e-3f) * r + third * rr;                            \
        const TYPE first = ALL(5.0000001201e-1f) + ALL(1.6666665459e-1f) * r + second * rr;                            \
        (into) = (ALL(1.0f) + r + first * rr) * (TYPE)(((BITS)shifted + (127 - 0x4B400000)) << 23);                    \
    } while (0)

/* exp(x) for -700 <= x <= 700 in the same way, with as many terms of Taylor's series as |r| <= ln(2) / 2 needs. */
#define EXP_OF(TYPE, BITS, ALL, into, x)                                                                               \
    do {                                                                                                               \
        const TYPE shifted = (x) * ALL(1.4426950408889634) + ALL(6755399441055744.0); /* 1.5 2^52 */                   \
        const TYPE m = shifted - ALL(6755399441055744.0);                                                              \
        const TYPE r = (x) - m * ALL(0.693147180369123816490) - m * ALL(1.90821492927058770002e-10);                   \
        TYPE power, sum = ALL(1.0 / 6227020800);                                                                       \
        BITS bits;                                                                                                     \
        sum = sum * r + ALL(1.0 / 479001600);                                                                          \
        sum = sum * r + ALL(1.0 / 39916800);                                                                           \
        sum = sum * r + ALL(1.0 / 3628800);                                                                            \
        sum = sum * r + ALL(1.0 / 362880);                                                                             \
        sum = sum * r + ALL(1.0 / 40320);                                                                              \
        sum = sum * r + ALL(1.0 / 5040);                                                                               \
        sum = sum * r + ALL(1.0 / 720);                                                                                \
        sum = sum * r + ALL(1.0 / 120);                                                                                \
        sum = sum * r + ALL(1.0 / 24);                                                                                 \
        sum = sum * r + ALL(1.0 / 6);                                                                                  \
        sum = sum * r + ALL(1.0 / 2);                                                                                  \
        memcpy(&bits, &shifted, sizeof bits);                                                                          \
        bits = (bits + 1023) << 52;                                                                                    \
        memcpy(&power, &bits, sizeof power);                                                                           \
        (into) = (sum * r * r + r + ALL(1.0)) * power;                                                                 \
    } while (0)
#define EXP_DOUBLES(into, x) EXP_OF(Doubles, Words, DOUBLES, into, x)

/* log(x) of a normal x > 0: e ln 2 + log m with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh((m - 1) / (m + 1)). */
#define LOG_OF(TYPE, BITS, ALL, MANY, into, x)                                                                         \
    do {                                                                                                               \
        const TYPE given = (x);                                                                                        \
        BITS bits, power;                                                                                              \
        TYPE m, e, sum = ALL(1.0 / 21);                                                                                \
        memcpy(&bits, &given, sizeof bits);                                                                            \
        power = (bits - MANY(0x3FE6A09E667F3BCDu) + MANY((uint64_t)1024 << 52)) >> 52; /* e + 1024 */                  \
        bits -= (power - MANY((uint64_t)1024)) << 52;                                                                  \
        memcpy(&m, &bits, sizeof m);                                                                                   \
        power += MANY(0x4330000000000000u); /* 2^52, whose lowest bits are those of an integer */                      \
        memcpy(&e, &power, sizeof e);                                                                                  \
        e -= ALL(4503599627370496.0 + 1024);                                                                           \
        const TYPE s = (m - ALL(1.0)) / (m + ALL(1.0)), q = s * s;                                                     \
        sum = sum * q + ALL(1.0 / 19);                                                                                 \
        sum = sum * q + ALL(1.0 / 17);                                                                                 \
        sum = sum * q + ALL(1.0 / 15);                                                                                 \
        sum = sum * q + ALL(1.0 / 13);                                                                                 \
        sum = sum * q + ALL(1.0 / 11);                                                                                 \
        sum = sum * q + ALL(1.0 / 9);                                                                                  \
        sum = sum * q + ALL(1.0 / 7);                                                                                  \
        sum = sum * q + ALL(1.0 / 5);                                                                                  \
        sum = sum * q + ALL(1.0 / 3);                                                                                  \
        (into) = e * ALL(0.6931471805599453) + (ALL(2.0) * s + ALL(2.0) * s * q * sum);                                \
    } while (0)
#define LOG_DOUBLES(into, x) LOG_OF(Doubles, Words, DOUBLES, WORDS, into, x)

static inline double log_of(double x)
{
    double found;
    LOG_OF(double, uint64_t, ITSELF, ITSELF, found, x);
    return found;
}

/* Of any x: -inf at 0, nan below. Not that of libm, which differs from one to the next. */
static inline double any_log(double x)
{
    if (x >= 2.2250738585072014e-308)
        return log_of(x);
    return x > 0 ? log_of(x * 18014398509481984.0) - 54 * 0.6931471805599453 : x == 0 ? -INFINITY : NAN;
}

/* The sums of k classes that a row of probabilities is added to. */
typedef struct {
    const double *upper; /* [bins] right edges */
    int64_t bins;
    double threshold;
    double *mass;   /* [k, 4] all probabilities of a class, in four sums side by side */
    double *labels; /* [k] how often it was the label */
    double *binned; /* [3, k, bins] probabilities above the threshold: their number, sum, and how many the label's */
} Classes;

/* The scores of LANES rows from place j on, as many as a vector of WIDE functions holds, class by class. */
#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (Ints){__VA_ARGS__})
#endif
#define PICK_8(a, b, c0, c1, c2, c3, c4, c5, c6, c7) PICK(a, b, c0, c1, c2, c3, c4, c5, c6, c7)
/* The same in each half of vectors of sixteen. */
#define SECOND(c) ((c) < 8 ? (c) : (c) + 8)
#define PICK_16(a, b, c0, c1, c2, c3, c4, c5, c6, c7)                                                                  \
    PICK(a, b, SECOND(c0), SECOND(c1), SECOND(c2), SECOND(c3), SECOND(c4), SECOND(c5), SECOND(c6), SECOND(c7),         \
         SECOND(c0) + 8, SECOND(c1) + 8, SECOND(c2) + 8, SECOND(c3) + 8, SECOND(c4) + 8, SECOND(c5) + 8,               \
         SECOND(c6) + 8, SECOND(c7) + 8)
#define LOAD_8(into, row, i, j) memcpy(&(into), (row)[i] + (j), sizeof(Floats))
#define LOAD_16(into, row, i, j)                                                                                       \
    do {                                                                                                               \
        Floats low, high;                                                                                              \
        memcpy(&low, (row)[i] + (j), sizeof low);                                                                      \
        memcpy(&high, (row)[(i) + 8] + (j), sizeof high);                                                              \
        (into) = PICK(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);                                \
    } while (0)
#define TURN_FLOATS(VEC, LOAD, PICK, to, row, j)                                                                       \
    do {                                                                                                               \
        VEC r0, r1, r2, r3, r4, r5, r6, r7;                                                                            \
        LOAD(r0, row, 0, j);                                                                                           \
        LOAD(r1, row, 1, j);                                                                                           \
        LOAD(r2, row, 2, j);                                                                                           \
        LOAD(r3, row, 3, j);                                                                                           \
        LOAD(r4, row, 4, j);                                                                                           \
        LOAD(r5, row, 5, j);                                                                                           \
        LOAD(r6, row, 6, j);                                                                                           \
        LOAD(r7, row, 7, j);                                                                                           \
        const VEC p0 = PICK(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13), p1 = PICK(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15);          \
        const VEC p2 = PICK(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13), p3 = PICK(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);          \
        const VEC p4 = PICK(r4, r5, 0, 8, 1, 9, 4, 12, 5, 13), p5 = PICK(r4, r5, 2, 10, 3, 11, 6, 14, 7, 15);          \
        const VEC p6 = PICK(r6, r7, 0, 8, 1, 9, 4, 12, 5, 13), p7 = PICK(r6, r7, 2, 10, 3, 11, 6, 14, 7, 15);          \
        const VEC q0 = PICK(p0, p2, 0, 1, 8, 9, 4, 5, 12, 13), q1 = PICK(p0, p2, 2, 3, 10, 11, 6, 7, 14, 15);          \
        const VEC q2 = PICK(p1, p3, 0, 1, 8, 9, 4, 5, 12, 13), q3 = PICK(p1, p3, 2, 3, 10, 11, 6, 7, 14, 15);          \
        const VEC q4 = PICK(p4, p6, 0, 1, 8, 9, 4, 5, 12, 13), q5 = PICK(p4, p6, 2, 3, 10, 11, 6, 7, 14, 15);          \
        const VEC q6 = PICK(p5, p7, 0, 1, 8, 9, 4, 5, 12, 13), q7 = PICK(p5, p7, 2, 3, 10, 11, 6, 7, 14, 15);          \
        (to)[0] = PICK(q0, q4, 0, 1, 2, 3, 8, 9, 10, 11);                                                              \
        (to)[1] = PICK(q1, q5, 0, 1, 2, 3, 8, 9, 10, 11);                                                              \
        (to)[2] = PICK(q2, q6, 0, 1, 2, 3, 8, 9, 10, 11);                                                              \
        (to)[3] = PICK(q3, q7, 0, 1, 2, 3, 8, 9, 10, 11);                                                              \
        (to)[4] = PICK(q0, q4, 4, 5, 6, 7, 12, 13, 14, 15);                                                            \
        (to)[5] = PICK(q1, q5, 4, 5, 6, 7, 12, 13, 14, 15);                                                            \
        (to)[6] = PICK(q2, q6, 4, 5, 6, 7, 12, 13, 14, 15);                                                            \
        (to)[7] = PICK(q3, q7, 4, 5, 6, 7, 12, 13, 14, 15);                                                            \
    } while (0)
#define TURN_DOUBLES(to, row, j)                                                                                       \
    do {                                                                                                               \
        Doubles r0, r1, r2, r3;                                                                                        \
        memcpy(&r0, (row)[0] + (j), sizeof r0);                                                                        \
        memcpy(&r1, (row)[1] + (j), sizeof r1);                                                                        \
        memcpy(&r2, (row)[2] + (j), sizeof r2);                                                                        \
        memcpy(&r3, (row)[3] + (j), sizeof r3);                                                                        \
        (to)[0] = (Doubles){r0[0], r1[0], r2[0], r3[0]};                                                               \
        (to)[1] = (Doubles){r0[1], r1[1], r2[1], r3[1]};                                                               \
        (to)[2] = (Doubles){r0[2], r1[2], r2[2], r3[2]};                                                               \
        (to)[3] = (Doubles){r0[3], r1[3], r2[3], r3[3]};                                                               \
    } while (0)

#define REAL float
#define LANES 8
#define TURNED 8
#define VERSIONS WIDE
#define VEC Floats
#define MASK Ints
#define ALL FLOATS
#define EXP(into, x) EXP_FLOATS(Floats, Ints, FLOATS, into, x)
#define TURN(to, row, j) TURN_FLOATS(Floats, LOAD_8, PICK_8, to, row, j)
#define LEAST -86.0f
#define WIDE_VEC Doubles
#define WIDE_MASK Longs
#define WIDE_ALL DOUBLES
#define LOG LOG_DOUBLES
#define PARTS 2
#define WIDEN(into, x)                                                                                                 \
    do {                                                                                                               \
        (into)[0] = (Doubles){(x)[0], (x)[1], (x)[2], (x)[3]};                                                         \
        (into)[1] = (Doubles){(x)[4], (x)[5], (x)[6], (x)[7]};                                                         \
    } while (0)
#define ADD_FOURS(sum, x) ((sum) += (x))
#define BITS(x)                                                                                                        \
    ({                                                                                                                 \
        const Longs two = (Longs)((x) & (Ints){1, 2, 4, 8, 16, 32, 64, 128});                                          \
        const int64_t all = two[0] | two[1] | two[2] | two[3];                                                         \
        (uint32_t)(all | all >> 32) & 255;                                                                             \
    })
#define NAME(x) x##_float
#include "rows.h"

#ifdef WIDER
#include <immintrin.h>
#define REAL float
#define LANES 16
#define TURNED 8
#define VERSIONS WIDER
#define VEC Floats16
#define MASK Ints16
#define ALL FLOATS16
#define EXP(into, x) EXP_FLOATS(Floats16, Ints16, FLOATS16, into, x)
#define TURN(to, row, j) TURN_FLOATS(Floats16, LOAD_16, PICK_16, to, row, j)
#define LEAST -86.0f
#define WIDE_VEC Doubles8
#define WIDE_MASK Longs8
#define WIDE_ALL DOUBLES8
#define LOG(into, x) LOG_OF(Doubles8, Words8, DOUBLES8, WORDS8, into, x)
#define PARTS 2
#define WIDEN(into, x)                                                                                                 \
    do {                                                                                                               \
        (into)[0] = (Doubles8)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(x)));                                    \
        (into)[1] = (Doubles8)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)(x), 1));                                 \
    } while (0)
#define ADD_FOURS(sum, x) ((sum) += PICK(x, x, 0, 1, 2, 3), (sum) += PICK(x, x, 4, 5, 6, 7))
#define BITS(x) _mm512_movepi32_mask((__m512i)(x))
#define NAME(x) x##_wider
#include "rows.h"
#endif

#define BITS_4(x) ((uint32_t)(((x)[0] & 1) | ((x)[1] & 2) | ((x)[2] & 4) | ((x)[3] & 8)))

/* Whether this CPU has the registers of WIDER functions, and the library these functions. */
bool assay_wider(void)
{
#ifdef WIDER
    return __builtin_cpu_supports("x86-64-v4");
#else
    return false;
#endif
}

#define REAL double
#define LANES 4
#define TURNED 4
#define VERSIONS WIDE
#define VEC Doubles
#define MASK Longs
#define ALL DOUBLES
#define EXP EXP_DOUBLES
#define TURN TURN_DOUBLES
#define LEAST -700.0
#define WIDE_VEC Doubles
#define WIDE_MASK Longs
#define WIDE_ALL DOUBLES
#define LOG LOG_DOUBLES
#define PARTS 1
#define WIDEN(into, x) ((into)[0] = (x))
#define ADD_FOURS(sum, x) ((sum) += (x))
#define BITS BITS_4
#define NAME(x) x##_double
#include "rows.h"

#include "tally.h"

/* A ranking from n negated scores in ascending order, and the m among them that were errors: the distinct scores, which
 * may take the place of the negated ones, how many samples have at least each, and how many errors; `kept` and `wrong`
 * begin with 0. Returns how many are distinct.
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

/* The bin of a confidence c among bins of equal width, of which b ends with upper[b]: the one that rounding suggests, or
 * one beside it.
 */
static inline int64_t bin_of(double c, const double *upper, int64_t bins)
{
    const double within = c > 0 ? c < 1 ? c : 1 : 0;
    int64_t b = (int64_t)(within * (double)bins);
    b -= b == bins;
    b -= (b > 0) & (c <= upper[b - (b > 0)]);
    b += (b < bins - 1) & (c > upper[b]);
    return b;
}

/* Adds n samples to bins of equal width in [0, 1]: a bin's four numbers in `out` [4, bins, 4] are how many there are, the
 * sum of their confidence, that of their hits, and 0. Neighbors go to different ones of the four tables, so that none
 * waits for the sum of the one before; in the end the first has the sums of all. The bin is looked up only in blocks where
 * a confidence is next to an edge.
 */
WIDE void assay_width_bins(const double *confidence, const bool *correct, int64_t n, const double *upper, int64_t bins,
                           double *out)
{
    const double many = (double)bins, edge = many * 1e-15;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t rows = n - start < BLOCK ? n - start : BLOCK;
        const double *c = confidence + start;
        int32_t place[BLOCK], near = 0;
        for (int64_t i = 0; i < rows; i++) {
            const double t = c[i] * many, inside = t > 0 ? t < many ? t : many - 0.5 : 0;
            place[i] = (int32_t)inside;
            const double past = inside - (double)place[i];
            near |= (past < edge) | (past > 1 - edge);
        }
        for (int64_t i = 0; near && i < rows; i++)
            place[i] = (int32_t)bin_of(c[i], upper, bins);
        for (int64_t i = 0; i < rows; i++) {
            double *cell = out + 4 * (i % 4 * bins + place[i]);
            Doubles sums;
            memcpy(&sums, cell, sizeof sums);
            sums += (Doubles){1, c[i], correct[start + i], 0};
            memcpy(cell, &sums, sizeof sums);
        }
    }
    for (int64_t i = 0; i < 4 * bins; i++)
        out[i] = (out[i] + out[4 * bins + i]) + (out[8 * bins + i] + out[12 * bins + i]);
}

/* Adds the terms of one score, or of four, to the sums of a ranking. */
#define ADD_AREAS(TYPE, sums, score, kept, wrong, from)                                                                \
    do {                                                                                                               \
        TYPE c, before, after, wrong_before, wrong_after;                                                              \
        memcpy(&c, (score) + (from), sizeof c);                                                                        \
        memcpy(&before, (kept) + (from), sizeof before);                                                               \
        memcpy(&after, (kept) + (from) + 1, sizeof after);                                                             \
        memcpy(&wrong_before, (wrong) + (from), sizeof wrong_before);                                                  \
        memcpy(&wrong_after, (wrong) + (from) + 1, sizeof wrong_after);                                                \
        const TYPE size = after - before, misses = wrong_after - wrong_before, hits = size - misses;                   \
        const TYPE precision = (after - wrong_after) / after;                                                          \
        (sums)[0] += (before - wrong_before + hits * 0.5) * misses;                                                    \
        (sums)[1] += precision * hits;                                                                                 \
        (sums)[2] += precision * size;                                                                                 \
        (sums)[3] += (errors - wrong_before) / (n - before) * misses;                                                  \
        (sums)[4] += (wrong_before + misses * 0.5) * size;                                                             \
        (sums)[5] += c * hits;                                                                                         \
        (sums)[6] += c * misses;                                                                                       \
        (sums)[7] += c * c * size;                                                                                     \
    } while (0)

/* The sums that metrics of a ranking share, see `plain.Areas`, from its scores [t] and cumulative counts [t + 1]. */
WIDE void assay_areas(const double *restrict score, const double *restrict kept, const double *restrict wrong,
                      int64_t t, double *restrict out)
{
    const double n = kept[t], errors = wrong[t];
    Doubles sums[8] = {0};
    int64_t i = 0;
    for (; i + 4 <= t; i += 4)
        ADD_AREAS(Doubles, sums, score, kept, wrong, i);
    for (int j = 0; j < 8; j++)
        out[j] = (sums[j][0] + sums[j][2]) + (sums[j][1] + sums[j][3]);
    for (; i < t; i++)
        ADD_AREAS(double, out, score, kept, wrong, i);
}

/* Of bins of a ranking, bin b its rows start[b + 1] to start[b]: rows of `out` [5, bins] are how many samples it has, the
 * sum of their confidence, how many are right, and sums of how far the confidence is from the accuracy of the bin, and
 * of the square of that. Returns how many bins.
 */
WIDE int64_t assay_between(const double *restrict score, const double *restrict kept, const double *restrict wrong,
                           int64_t t, const int64_t *restrict start, int64_t bins, double *restrict out)
{
    for (int64_t b = 0; b < bins; b++)
        if (start[b + 1] < 0 || start[b] > t || start[b + 1] > start[b])
            return -1;
    for (int64_t b = 0; b < bins; b++) {
        const int64_t from = start[b + 1], to = start[b];
        const double n = kept[to] - kept[from], errors = wrong[to] - wrong[from], accuracy = n > 0 ? 1 - errors / n : 0;
        Doubles claims = {0}, gaps = {0}, squares = {0};
        int64_t i = from;
        for (; i + 4 <= to; i += 4) {
            Doubles c, before, after;
            memcpy(&c, score + i, sizeof c);
            memcpy(&before, kept + i, sizeof before);
            memcpy(&after, kept + i + 1, sizeof after);
            const Doubles size = after - before, gap = c - accuracy;
            claims += c * size;
            gaps += (Doubles)((Longs)gap & INT64_MAX) * size; /* without its sign */
            squares += gap * gap * size;
        }
        double *found = out + b;
        found[0] = n;
        found[bins] = (claims[0] + claims[2]) + (claims[1] + claims[3]);
        found[2 * bins] = n > errors ? n - errors : 0; /* sums of weights round */
        found[3 * bins] = (gaps[0] + gaps[2]) + (gaps[1] + gaps[3]);
        found[4 * bins] = (squares[0] + squares[2]) + (squares[1] + squares[3]);
        for (; i < to; i++) {
            const double size = kept[i + 1] - kept[i], gap = score[i] - accuracy;
            found[bins] += score[i] * size;
            found[3 * bins] += fabs(gap) * size;
            found[4 * bins] += gap * gap * size;
        }
    }
    return bins;
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

/* sum of hits log c + misses log(1 - c) over a ranking's t scores c, between the least normal number and 1. */
WIDE double assay_log_likelihood(const double *score, const double *kept, const double *wrong, int64_t t)
{
    Doubles sums = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + 4 <= t; i += 4) { /* one logarithm each, for few scores have both */
        Doubles c, before, after, wrong_before, wrong_after, logarithm;
        memcpy(&c, score + i, sizeof c);
        memcpy(&before, kept + i, sizeof before);
        memcpy(&after, kept + i + 1, sizeof after);
        memcpy(&wrong_before, wrong + i, sizeof wrong_before);
        memcpy(&wrong_after, wrong + i + 1, sizeof wrong_after);
        const Doubles misses = wrong_after - wrong_before, hits = after - before - misses;
        const Longs any = hits > DOUBLES(0.0), both = any & (misses > DOUBLES(0.0));
        const Doubles x = (Doubles)(((Longs)c & any) | ((Longs)(DOUBLES(1.0) - c) & ~any));
        LOG_DOUBLES(logarithm, x);
        const Doubles terms = (Doubles)(((Longs)hits & any) | ((Longs)misses & ~any)) * logarithm;
        sums += (Doubles)((Longs)terms & ((hits > DOUBLES(0.0)) | (misses > DOUBLES(0.0))));
        if (both[0] | both[1] | both[2] | both[3])
            for (int l = 0; l < 4; l++)
                sum += both[l] ? misses[l] * any_log(1 - c[l]) : 0;
    }
    for (; i < t; i++) {
        const double misses = wrong[i + 1] - wrong[i], hits = kept[i + 1] - kept[i] - misses;
        sum += (hits > 0 ? hits * any_log(score[i]) : 0) + (misses > 0 ? misses * any_log(1 - score[i]) : 0);
    }
    return sum + ((sums[0] + sums[2]) + (sums[1] + sums[3]));
}

/* sum_ij d_i d_j exp(-|c_i - c_j| / width) over the samples of a ranking's t scores c; d = correct - confidence. Once
 * c_i >= c_j the kernel is exp(-c_i / width) / exp(-c_j / width): one running sum.
 */
WIDE double assay_laplacian(const double *score, const double *kept, const double *wrong, int64_t t, double width)
{
    double x[BLOCK] = {0}, decay[BLOCK], excess[BLOCK], above = 0, sum = 0;
    for (int64_t start = 0; start < t; start += BLOCK) {
        const int64_t rows = t - start < BLOCK ? t - start : BLOCK;
        const double *c = score + start, *k = kept + start, *w = wrong + start;
        for (int64_t i = 0; i < rows; i++) {
            x[i] = -c[i] / width;
            excess[i] = (1 - c[i]) * (k[i + 1] - k[i]) - (w[i + 1] - w[i]);
        }
        for (int64_t i = 0; i < rows; i += 4) {
            Doubles some, found;
            memcpy(&some, x + i, sizeof some);
            EXP_DOUBLES(found, some);
            memcpy(decay + i, &found, sizeof found);
        }
        for (int64_t i = 0; i < rows; i++) {
            above += excess[i] * decay[i];
            sum += excess[i] * (2 * above / decay[i] - excess[i]);
        }
    }
    return sum;
}

/* Adds confidence less correctness of the samples of a ranking's t scores, none below 0, to `cells` of equal width; what
 * is 1 or more is in the last.
 */
void assay_residuals(const double *score, const double *kept, const double *wrong, int64_t t, int64_t cells,
                     double *out)
{
    for (int64_t i = 0; i < t; i++) {
        const double size = kept[i + 1] - kept[i], hits = size - (wrong[i + 1] - wrong[i]);
        const double place = score[i] > 0 ? score[i] * (double)cells : 0; /* also where a ranking is none */
        out[place < (double)cells ? (int64_t)place : cells - 1] += score[i] * size - (hits > 0 ? hits : 0);
    }
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
