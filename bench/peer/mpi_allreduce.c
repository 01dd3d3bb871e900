// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
//
// The other peer: MPI_Allreduce, in-place sum of float32, 4 KiB to 256 MiB. One JSON line a size (median of the slowest rank).
//   mpicc -O2 mpi_allreduce.c -o mpi_allreduce
//   mpirun -np 2 ./mpi_allreduce [LARGEST SIZE IN BYTES]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, world;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    const size_t max = argc > 1 ? strtoull(argv[1], 0, 10) : 256u << 20;
    float *x = malloc(max);
    if (!x) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t bytes = 4096; bytes <= max; bytes *= 4) {
        int n = (int)(bytes / 4), reps = bytes < (1u << 20) ? 100 : bytes < (64u << 20) ? 20 : 5;
        double times[100], median, slowest;
        for (int i = -2; i < reps; i++) {  // two to warm up
            for (int j = 0; j < n; j++) x[j] = 1;
            MPI_Barrier(MPI_COMM_WORLD);
            double t = MPI_Wtime();
            MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (i >= 0) times[i] = MPI_Wtime() - t;
        }
        if (x[0] != world || x[n - 1] != world) MPI_Abort(MPI_COMM_WORLD, 2);
        qsort(times, reps, sizeof *times, ascending);
        median = times[reps / 2];
        MPI_Reduce(&median, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("{\"peer\": \"openmpi\", \"op\": \"allreduce\", \"world\": %d, \"bytes\": %zu, \"us\": %.1f, \"gb_s\": %.3f}\n", world, bytes, slowest * 1e6,
                   bytes / slowest / 1e9);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
