/* The tracepoint that probe_hits has where it is compiled for LTTng-UST: what a place costs that is in the source. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER clew_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "probe_hits_ust.h"
#if !defined(PROBE_HITS_UST_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROBE_HITS_UST_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(clew_bench, hit, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(clew_bench, values, LTTNG_UST_TP_ARGS(long, a, long, b, const char *, text, long, d),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, a, a) lttng_ust_field_integer(long, b, b)
                                               lttng_ust_field_integer_hex(long, c, (long)text)
                                               lttng_ust_field_integer(long, d, d) lttng_ust_field_string(text, text)))
#endif
#include <lttng/tracepoint-event.h>
