// Frames over a socket.
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hccl.h"

static bool put(int fd, const void *p, size_t n) {
	const char *b = p;
	while (n) {
		ssize_t k = send(fd, b, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return false;
		b += k;
		n -= (size_t)k;
	}
	return true;
}

static bool get(int fd, void *p, size_t n) {
	char *b = p;
	while (n) {
		ssize_t k = recv(fd, b, n, 0);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return false;
		b += k;
		n -= (size_t)k;
	}
	return true;
}

bool wire_send(int fd, const frame *f, const uint64_t *meta, const void *data) {
	return put(fd, f, sizeof *f) && put(fd, meta, (size_t)f->nmeta * 8) && put(fd, data, (size_t)f->bytes);
}

message *wire_receive(int fd) {
	message *m = fk_zalloc(sizeof *m);
	if (get(fd, &m->f, sizeof m->f) && m->f.magic == HUB_MAGIC && m->f.nmeta < 1 << 20 && m->f.bytes < (uint64_t)1 << 40) {
		m->meta = fk_zalloc((size_t)m->f.nmeta * 8);
		m->data = fk_zalloc((size_t)m->f.bytes + 1);
		if (get(fd, m->meta, (size_t)m->f.nmeta * 8) && get(fd, m->data, (size_t)m->f.bytes)) return m;
	}
	message_free(m);
	return NULL;
}

void message_free(message *m) {
	if (!m) return;
	free(m->meta);
	free(m->data);
	free(m);
}
