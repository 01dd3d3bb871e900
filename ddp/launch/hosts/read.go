package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// maxFile bounds what is read of a file: a rank table of 10,000 devices has 2 MiB.
const maxFile = 16 << 20

// lookAgain is how often a rank table that is initializing is read again.
const lookAgain = 500 * time.Millisecond

// Read reads a host file or a rank table. It waits until a rank table is complete, as long as ctx allows.
func Read(ctx context.Context, path string) (List, error) {
	for {
		text, err := readFile(path)
		if err != nil {
			return List{}, launch.WithCode(launch.ExitNoInput, fmt.Errorf("hosts: %w", err))
		}
		l, err := Parse(text, path)
		if !errors.Is(err, ErrInitializing) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return List{}, launch.WithCode(launch.ExitTimeout, fmt.Errorf("%w\nhint: the device plugin of the cluster completes it; see its log", err))
		case <-time.After(lookAgain):
		}
	}
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB, so it is no list of hosts", path, maxFile>>20)
	}
	return b, err
}

// volcanoFolder is where Volcano's plugin svc leaves one file for each task of a job.
const volcanoFolder = "/etc/volcano"

// Default returns the hosts that the environment gives where the user names none; false: there are none, so the job runs on this machine. The
// first of these decides:
//
//	RANK_TABLE_FILE                                a rank table
//	OMPI_MCA_orte_default_hostfile,                a host file; the MPI operator of Kubeflow sets them
//	HYDRA_HOST_FILE, I_MPI_HYDRA_HOST_FILE
//	MPI_HOST                                       a list; plugin mpi of Volcano. It is a part of the next
//	/etc/volcano/*.host with VC_TASK_NUM           plugin svc of Volcano: a file for each task, in the order of their names
//	SLURM_JOB_NODELIST                             in salloc and sbatch, outside of a step
func Default(ctx context.Context, lookup launch.Lookup) (List, bool, error) {
	return defaults(ctx, lookup, volcanoFolder)
}

func defaults(ctx context.Context, lookup launch.Lookup, volcano string) (List, bool, error) {
	str := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	for _, name := range []string{"RANK_TABLE_FILE", "OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"} {
		if path := str(name); path != "" {
			l, err := Read(ctx, path)
			l.From = name + "=" + path
			if err != nil {
				err = fmt.Errorf("%w (from %s)", err, name)
			}
			return l, err == nil, err
		}
	}
	if list := str("MPI_HOST"); list != "" {
		l, err := Parse([]byte(strings.ReplaceAll(list, ",", "\n")), "MPI_HOST")
		return l, err == nil, err
	}
	if files, _ := filepath.Glob(filepath.Join(volcano, "*.host")); len(files) > 0 && str("VC_TASK_INDEX") != "" {
		l, err := volcanoHosts(files, str)
		return l, err == nil, err
	}
	if nodes := str("SLURM_JOB_NODELIST"); nodes != "" && (str("SLURM_PROCID") == "" || !inStep(str)) {
		l, err := slurmHosts(nodes, str)
		return l, err == nil, err
	}
	return List{}, false, nil
}

// inStep reports whether this process was started by srun among others: then it is a rank, and starts none.
func inStep(str func(string) string) bool {
	return (str("SLURM_STEP_ID") != "" || str("SLURM_STEPID") != "") && str("SLURM_STEP_NUM_TASKS") != "1"
}

// volcanoHosts reads the files of all tasks. VC_TASK_NUM says how many lines the file of a task will have.
func volcanoHosts(files []string, str func(string) string) (List, error) {
	slices.Sort(files)
	l := List{From: filepath.Dir(files[0])}
	for _, path := range files {
		text, err := readFile(path)
		if err != nil {
			return List{}, launch.WithCode(launch.ExitNoInput, fmt.Errorf("hosts: %w", err))
		}
		part, err := Parse(text, path)
		if err != nil {
			return List{}, err
		}
		task := strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".host"), "-", "_"))
		if n, err := strconv.Atoi(str("VC_" + task + "_NUM")); err == nil && n != len(part.Hosts) {
			return List{}, &Error{From: path, Msg: fmt.Sprintf("it has %d hosts, but VC_%s_NUM=%d", len(part.Hosts), task, n),
				Hint: "wait until Volcano has updated the file, or name the hosts with -H"}
		}
		for _, h := range part.Hosts {
			l.add(h)
		}
	}
	return l, nil
}

// slurmHosts reads the nodes of an allocation, and how many tasks each may have.
func slurmHosts(nodes string, str func(string) string) (List, error) {
	l := List{From: "SLURM_JOB_NODELIST", Scheduler: true}
	names, err := launch.SlurmHosts(nodes)
	if err != nil {
		return List{}, &Error{From: l.From, Msg: err.Error()}
	}
	var counts []int
	if v := str("SLURM_TASKS_PER_NODE"); v != "" {
		if counts, err = launch.SlurmTasks(v); err != nil || len(counts) != len(names) {
			return List{}, &Error{From: "SLURM_TASKS_PER_NODE", Text: v, Msg: fmt.Sprintf("this does not give the tasks of %d nodes", len(names)),
				Hint: "name the hosts with -H"}
		}
	}
	for i, name := range names {
		if !hostname(name) {
			return List{}, &Error{From: l.From, Text: name, Msg: "this is not the name of a host"}
		}
		h := Host{Name: name}
		if counts != nil {
			h.Slots = counts[i]
		}
		l.Hosts = append(l.Hosts, h)
	}
	return l, nil
}
