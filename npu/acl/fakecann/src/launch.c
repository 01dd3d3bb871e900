// Launches: an operator as a task of a stream.
#include "rt.h"

typedef struct launch {
	fk_task t;
	const fk_desc *d;
	fk_binding *b;
	char *ws; // device address, NULL: none
	int64_t ws_bytes;
	struct launch *next_running;
} launch;

static launch *running; // those that use a workspace now

static void launch_free(fk_task *t) {
	launch *l = (launch *)t;
	fk_unbind(l->b);
	free(l);
}

// reach_all translates the addresses of all tensors. Lock held.
static bool reach_all(launch *l, int device, ft *t) {
	for (int i = 0; i < l->b->tensors; i++) {
		t[i] = l->b->t[i];
		if (!ft_numel(&t[i])) continue;
		char err[200];
		t[i].base = fk_reach(device, t[i].base, t[i].storage * dtype_size(t[i].dtype), err, sizeof err);
		if (!t[i].base) {
			snprintf(l->t.why, sizeof l->t.why, "The DDR address of the MTE instruction is out of range: tensor %d: %s", i, err);
			return false;
		}
	}
	return true;
}

// claim takes the workspace for the time of the kernel: two kernels in it at once is a fault of the program. Lock held.
static char *claim(launch *l, int device) {
	for (launch *o = running; o; o = o->next_running) {
		if (o->ws < l->ws + l->ws_bytes && l->ws < o->ws + o->ws_bytes) {
			fk_violation(0, "aclnn%s uses the workspace in which aclnn%s still runs, on another stream", l->d->name, o->d->name);
			break;
		}
	}
	char *ws = fk_reach(device, l->ws, l->ws_bytes, l->t.why, sizeof l->t.why);
	if (ws) {
		l->next_running = running;
		running = l;
	}
	return ws;
}

static void give_up(launch *l) {
	for (launch **p = &running; *p; p = &(*p)->next_running) {
		if (*p == l) {
			*p = l->next_running;
			return;
		}
	}
}

// is_output says which arguments an operator writes: those with the code of outputs, and those that are updated in place.
static bool is_output(const fk_desc *d, int i) {
	if (d->codes[i] == C_To || d->codes[i] == C_TLo) return true;
	const char *n = d->names[i];
	size_t len = strlen(n);
	return (d->codes[i] == C_T || d->codes[i] == C_TL) && (strncmp(n, "out", 3) == 0 || (len > 3 && strcmp(n + len - 3, "Ref") == 0) || (len > 3 &&
		strcmp(n + len - 3, "Out") == 0));
}

// saturate does what a device that is not in INF/NAN mode does to f16: infinity becomes 65504, NaN zero. It returns how many values it changed.
static int saturate(const ft *t) {
	if (!t || t->dtype != DT_F16) return 0;
	int changed = 0;
	int64_t n = ft_numel(t);
	for (int64_t i = 0; i < n; i++) {
		uint16_t *v = (uint16_t *)t->base + ft_at(t, i);
		if ((*v & 0x7c00) != 0x7c00) continue;
		*v = *v & 0x3ff ? 0 : (uint16_t)((*v & 0x8000) | 0x7bff);
		changed++;
	}
	return changed;
}

static int saturate_all(const fk_desc *d, const fcall *c) {
	int changed = 0;
	for (int i = 0; i < d->n; i++) {
		if (!is_output(d, i)) continue;
		if (d->codes[i] == C_T || d->codes[i] == C_To) {
			changed += saturate(c->a[i].t);
		} else if (c->a[i].l) {
			for (int64_t k = 0; k < c->a[i].l->n; k++) changed += saturate(c->a[i].l->t[k]);
		}
	}
	return changed;
}

static int32_t run(fk_task *task) {
	launch *l = (launch *)task;
	int device = task->stream->ctx->device;
	fcall call;
	ft *t = fk_zalloc((size_t)l->b->tensors * sizeof *t);
	char *ws = NULL;
	fk_acquire();
	bool ok = reach_all(l, device, t);
	if (ok && l->ws) ok = (ws = claim(l, device)) != NULL;
	uint64_t seed = fake_random(&fk_sw.seed);
	bool saturates = fk_sw.soc != SOC_950 && fk_devices[device].sat_mode == 0;
	fk_release();
	int32_t code = 507015;
	if (ok) {
		void *lists = fk_call_on(l->d, l->b, t, &call);
		call.seed = seed;
		call.ws = call.ws_bytes ? ws : NULL;
		code = l->d->op->run(&call);
		int changed = saturates && !code ? saturate_all(l->d, &call) : 0;
		free(lists);
		if (ws) memset(ws, 0xDB, (size_t)l->ws_bytes); // nothing may be left there for the next
		fk_last(task); // its workspace is in use so long
		fk_acquire();
		if (ws) give_up(l);
		fk_devices[device].overflow |= changed != 0;
		fk_release();
		if (code) snprintf(task->why, sizeof task->why, "the kernel ended with %d", code);
	}
	free(t);
	return code;
}

// ordered notes what an operator touches. Lock held.
static void ordered(fk_stream *s, const launch *l) {
	if (!fk_sw.order) return;
	fk_order_begin(s);
	for (int i = 0; i < l->d->n; i++) {
		const farg *a = &l->b->call.a[i];
		int code = l->d->codes[i];
		if ((code == C_T || code == C_To) && a->t) fk_order_tensor(s, l->d->name, a->t, is_output(l->d, i));
		for (int64_t k = 0; (code == C_TL || code == C_TLo) && a->l && k < a->l->n; k++) {
			if (a->l->t[k]) fk_order_tensor(s, l->d->name, a->l->t[k], is_output(l->d, i));
		}
	}
	if (l->ws) fk_order_access(s, l->d->name, l->ws, l->ws_bytes, true);
}

int32_t fk_launch(fk_executor *e, fk_stream *s, void *workspace) {
	launch *l = fk_zalloc(sizeof *l);
	l->d = &fk_ops[e->op];
	l->t = (fk_task){.name = l->d->name, .run = run, .free = launch_free};
	l->b = e->b;
	l->b->refs++;
	l->ws = workspace;
	l->ws_bytes = e->workspace;
	ordered(s, l);
	fk_enqueue(s, &l->t);
	return 0;
}
