# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Start the ranks of a peer benchmark on this machine, each in its own tuned environment. Torch is not loaded by this module itself: OpenMP and malloc read
their variables when a process starts, so they must be set before torch is loaded."""
import importlib.metadata, os, resource, signal, socket, subprocess, sys, time

# Memory stays with the process: PyTorch's CPU allocator is malloc, and by default glibc gives large tensors back after every use, so that each
# step pays for fresh pages again.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "536870912"}


def environment(threads, tuned=True):
    env = dict(os.environ)
    for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env[k] = str(threads)
    env["GLOO_SOCKET_IFNAME"] = "lo"
    env.setdefault("BENCH_STARTED", repr(time.time()))
    if tuned:
        for k in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            env.pop(k, None)  # some shells export them for another machine
        for k, v in KEEP_MEMORY.items():
            env.setdefault(k, v)
        kernels = aten(env.pop("ATEN_CPU_CAPABILITY", ""), importlib.metadata.version("torch"))
        if kernels:
            env["ATEN_CPU_CAPABILITY"] = kernels
        # What torch.compile has made stays, so that only the first run on a machine compiles.
        env.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.path.expanduser("~"), ".cache", "gotrain-bench", "inductor"))
    return env


def aten(exported, torch, cpuinfo="/proc/cpuinfo"):
    """ATEN_CPU_CAPABILITY for this processor, or None to leave it out. PyTorch believes the variable: kernels that the processor lacks would crash it, so what
    a shell exports for another machine becomes what there is here. 2.x chooses well by itself, 1.x stops at AVX2 unless it is told."""
    best = capability(cpuinfo)
    if best is None:
        return None
    if exported:
        order = ("default", "avx2", "avx512")
        wanted = next((i for i, name in enumerate(order) if exported.startswith(name)), len(order))
        return exported if wanted <= order.index(best) else best
    return best if int(torch.split(".")[0]) < 2 else None


def capability(cpuinfo="/proc/cpuinfo"):
    """The widest kernels of PyTorch that this processor runs, or None if it does not tell: not Linux, or no x86."""
    try:
        with open(cpuinfo) as f:
            flags = next((set(line.split(":")[1].split()) for line in f if line.startswith("flags")), set())
    except OSError:
        return None
    if not flags:
        return None
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"} <= flags:
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else "default"


def launch(world, threads, tuned=True, pin=True):
    """In the parent: start `world` copies of this script, wait, exit. In a rank: return its number."""
    if "BENCH_RANK" in os.environ:
        return int(os.environ["BENCH_RANK"])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    cpus = sorted(os.sched_getaffinity(0))
    pin = pin and os.environ.get("BENCH_PIN") != "0" and world * threads <= len(cpus)
    spaces = [s for s in os.environ.get("BENCH_NAMESPACES", "").split(",") if s]  # a network namespace a rank, with interface v0, v1, ...
    master = os.environ.get("BENCH_MASTER", "127.0.0.1")
    ranks = []

    def stop(*_):
        for p in ranks:
            p.kill()
        sys.exit(1)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for r in range(world):
        env = dict(environment(threads, tuned), BENCH_RANK=str(r), RANK=str(r), WORLD_SIZE=str(world), MASTER_ADDR=master, MASTER_PORT=str(port))
        command = [sys.executable] + sys.argv
        if spaces:
            command = ["ip", "netns", "exec", spaces[r]] + command
            env["GLOO_SOCKET_IFNAME"] = "v%d" % r
        mine = cpus[r * threads:(r + 1) * threads]
        ranks.append(subprocess.Popen(command, env=env, preexec_fn=(lambda c=mine: os.sched_setaffinity(0, c)) if pin else None))
    left = list(ranks)
    while left:
        for p in left[:]:
            if p.poll() is not None:
                left.remove(p)
                if p.returncode:  # the others would wait for it for ever
                    stop()
        time.sleep(0.02)
    sys.exit(0)


def compress(net, hook):
    """Let DDP compress gradients."""
    if hook != "none":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        net.register_comm_hook(None, {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}[hook])


def leave():
    """End a rank. Without DDP, the threads of gloo do not end by themselves."""
    import torch.distributed as dist
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


def since_start():
    return time.time() - float(os.environ["BENCH_STARTED"])


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(step, a, rank):
    """Run a.warm and a.steps steps of step() -> loss, on all ranks together, and print a profile of one more where a.profile asks
    for it. Returns the losses, the times of the
    measured steps in seconds, when the first one was done, and the largest peak memory of a rank in MB. torch is loaded by now."""
    import torch
    import torch.distributed as dist
    losses = [step()]
    first = since_start()
    losses += [step() for _ in range(a.warm - 1)]
    times = []
    for _ in range(a.steps):
        if a.world > 1:
            dist.barrier()
        t = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - t)
    if a.profile and rank == 0 and a.world == 1:
        with torch.profiler.profile() as prof:
            step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))
    rss = torch.tensor([peak_rss_mb()])
    if a.world > 1:
        dist.all_reduce(rss, dist.ReduceOp.MAX)
    return losses, times, first, rss.item()
