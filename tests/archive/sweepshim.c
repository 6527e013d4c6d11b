/* Fails the n-th system call of one kind on files below a directory; built and preloaded by test_syscalls.py.

   Calls are those that CPython makes for os.open, os.write, os.writev, os.close and os.rename. A descriptor is ours when
   it was opened below the directory. close() closes and then fails, as a full NFS server does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, WRITE, CLOSE, RENAME, KINDS };
static char root[4096];
static long counts[KINDS];
static int kind = -1, number, code;
static unsigned char ours[1 << 16];

void sweep_arm(const char *directory, int which, int nth, int error) {
    snprintf(root, sizeof root, "%s/", directory);
    memset(counts, 0, sizeof counts);
    memset(ours, 0, sizeof ours);
    kind = which;
    number = nth;
    code = error;
}

long sweep_count(int which) { return counts[which]; }

static int fails(int which) {
    if (!root[0]) return 0;
    long count = __sync_add_and_fetch(&counts[which], 1);
    return which == kind && count == number;
}

static int below(const char *path) { return root[0] && !strncmp(path, root, strlen(root)); }

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__)) dlsym(RTLD_NEXT, name)

static int opened(int descriptor) {
    if (descriptor >= 0 && descriptor < (int) sizeof ours) ours[descriptor] = 1;
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (!below(path) || !(flags & (O_WRONLY | O_RDWR))) return real(path, flags, mode);
    if (fails(OPEN)) {
        errno = code;
        return -1;
    }
    return opened(real(path, flags, mode));
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open64(path, flags, mode);
}

static int is_ours(int descriptor) { return descriptor >= 0 && descriptor < (int) sizeof ours && ours[descriptor]; }

ssize_t write(int descriptor, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (is_ours(descriptor) && fails(WRITE)) {
        errno = code;
        return -1;
    }
    return real(descriptor, data, size);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (is_ours(descriptor) && fails(WRITE)) {
        if (code != EINTR && count && parts[0].iov_len > 1) { /* a disk that fills up takes some of it first */
            struct iovec some = {parts[0].iov_base, parts[0].iov_len / 2};
            kind = WRITE;
            number = (int) counts[WRITE] + 1;
            return real(descriptor, &some, 1);
        }
        errno = code;
        return -1;
    }
    return real(descriptor, parts, count);
}

int close(int descriptor) {
    REAL(int, "close", int);
    int mine = is_ours(descriptor);
    if (mine) ours[descriptor] = 0;
    int result = real(descriptor);
    if (mine && fails(CLOSE)) {
        errno = code;
        return -1;
    }
    return result;
}

static int renamed(int result_of_fails) {
    if (result_of_fails) {
        errno = code;
        return -1;
    }
    return 0;
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    if (below(to) && renamed(fails(RENAME))) return -1;
    return real(from, to);
}
