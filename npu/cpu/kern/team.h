// What teams (team.c), loops (run.c) and the Go side share.
#ifndef KERN_TEAM_H
#define KERN_TEAM_H
#include "kern.h"

typedef struct kern_team kern_team;

// A team of that many threads, the caller's included. With spin, a thread that has nothing to do spins for a moment before
// it sleeps. Returns null without memory.
kern_team *kern_team_new(int threads, int spin);
// Starts the team's own threads, on the processors of the calling thread: call it before the first region of OpenMP, which may bind that thread to one of them
// (OMP_PROC_BIND). Fewer may start than are wanted.
void kern_team_start(kern_team *t);
void kern_team_free(kern_team *t); // not while a thread uses it

// From here on the loops of the calling thread use the team; null: they use OpenMP again.
void kern_team_use(void *team);

// Gives a loop to the team of the calling thread: part is called for 0…parts-1, by any thread. Returns 0 if there is none. Loops within loops run where they
// are.
int kern_team_loop(void (*part)(void *loop, int64_t part), void *loop, int64_t parts);

// Into how many parts a loop of so many is cut: a team balances long ones better if they have more parts than threads.
int64_t kern_team_parts(int64_t parts, int64_t most);
#endif
