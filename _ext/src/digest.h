/* MD5 and SHA1 of one stream, or of many messages side by side in SIMD lanes. */
#ifndef DUMPSIM_DIGEST_H
#define DUMPSIM_DIGEST_H

#include <stdint.h>

enum { DS_MD5, DS_SHA1 };

#define DS_DIGEST_LANES 16 /* messages side by side at most */

/* An incremental digest. */
typedef struct {
    uint32_t state[5];
    int algorithm, level;
    uint64_t length;
    uint8_t pending[64];
} ds_stream;

void ds_stream_begin(ds_stream *stream, int algorithm, int level);
void ds_stream_update(ds_stream *stream, const uint8_t *data, uint64_t length);
/* Writes 16 (MD5) or 20 (SHA1) bytes. */
void ds_stream_end(ds_stream *stream, uint8_t *digest);

/* A whole message; `digest` receives the result. */
typedef struct {
    const uint8_t *data;
    uint64_t length;
    uint8_t digest[20];
} ds_message;

typedef struct {
    ds_message *message; /* NULL: an idle lane */
    const uint8_t *at;
    uint64_t blocks; /* left of this part */
    int tail_blocks; /* the padded end, 0 once it is being read */
    uint8_t tail[128];
    uint32_t state[5];
} ds_lane;

/* The state of many messages that share the lanes. */
typedef struct {
    ds_message *messages;
    int64_t count, next;
    int algorithm, level;
    ds_lane lane[DS_DIGEST_LANES];
} ds_batch;

void ds_batch_begin(ds_batch *batch, ds_message *messages, int64_t count, int algorithm, int level);
/* Reads about `budget` bytes; 0 when all messages are done. */
int ds_batch_run(ds_batch *batch, int64_t budget);

#endif
