// Graphs: tasks that a stream records instead of running them. A replay runs them one after the other, in the order in which they were recorded.
#include "rt.h"

typedef struct fk_graph {
	void *handle;
	fk_stream *origin;
	fk_task **tasks;
	int n, room, running;
	bool ended, destroyed;
} fk_graph;

typedef struct replay {
	fk_task t;
	fk_graph *g;
} replay;

bool fk_captures(fk_stream *s, fk_task *t) {
	fk_graph *g = s->capture;
	if (!g) return false;
	if (g->n == g->room) {
		g->room = g->room ? 2 * g->room : 64;
		g->tasks = realloc(g->tasks, (size_t)g->room * sizeof *g->tasks);
		if (!g->tasks) abort();
	}
	t->replayed = true;
	g->tasks[g->n++] = t;
	return true;
}

static void graph_free(fk_graph *g) {
	for (int i = 0; i < g->n; i++) fk_task_end(g->tasks[i]);
	free(g->tasks);
	free(g);
}

int32_t f_aclmdlRICaptureBegin(void *stream, int32_t mode) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	if (s && (mode < 0 || mode > 2)) {
		code = fk_error(107000, "mode is %d", mode);
	} else if (s && fk_sw.soc == SOC_910) {
		code = fk_error(207000, "the device records no graphs");
	} else if (s && (!stream || s->capture)) {
		code = fk_violation(107000, "%s", stream ? "the stream records a graph already" : "the default stream cannot record");
	} else if (s) {
		fk_graph *g = fk_zalloc(sizeof *g);
		g->origin = s;
		s->capture = g;
	}
	fk_release();
	return code;
}

int32_t f_aclmdlRICaptureEnd(void *stream, void *model) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	if (s && (!model || !s->capture || s->capture->origin != s)) {
		code = fk_violation(107000, "%s", !model ? "model is null" : s->capture ? "the recording began on another stream" : "the stream records nothing");
	} else if (s) {
		fk_graph *g = s->capture;
		for (fk_stream *o = fk_streams; o; o = o->next) {
			if (o->capture == g) o->capture = NULL;
		}
		g->ended = true;
		*(void **)model = g->handle = fk_handle(K_GRAPH, g);
		fk_count.graphs++;
	}
	fk_release();
	return code;
}

static int32_t replay_run(fk_task *t) {
	fk_graph *g = ((replay *)t)->g;
	for (int i = 0; i < g->n; i++) {
		fk_task *r = g->tasks[i];
		r->stream = t->stream;
		int32_t code = fk_run_task(r);
		if (code) {
			snprintf(t->why, sizeof t->why, "task %d of the graph, %s: %.300s", i, r->name, r->why);
			return code;
		}
	}
	return 0;
}

static void replay_free(fk_task *t) {
	fk_graph *g = ((replay *)t)->g;
	if (!--g->running && g->destroyed) graph_free(g);
	free(t);
}

int32_t f_aclmdlRIExecuteAsync(void *model, void *stream) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	fk_graph *g = fk_object(model, K_GRAPH);
	if (s && !g) {
		code = fk_violation(107017, "model is %s", fk_handle_is(model));
	} else if (s && s->capture) {
		code = fk_violation(107000, "the stream records a graph");
	} else if (s) {
		replay *r = fk_zalloc(sizeof *r);
		r->t = (fk_task){.name = "graph", .run = replay_run, .free = replay_free};
		r->g = g;
		g->running++;
		fk_enqueue(s, &r->t);
	}
	fk_release();
	return code;
}

int32_t f_aclmdlRIDestroy(void *model) {
	int32_t code = 0;
	fk_acquire();
	fk_graph *g = fk_object(model, K_GRAPH);
	if (!g) {
		code = fk_violation(107017, "model is %s", fk_handle_is(model));
	} else {
		fk_handle_end(model);
		fk_count.graphs--;
		g->destroyed = true;
		if (!g->running) graph_free(g);
	}
	fk_release();
	return code;
}
