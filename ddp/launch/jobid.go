package launch

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"github.com/gotrain/gotrain/internal/procfs"
)

// jobID returns the name that the ranks of one machine share. It is the launcher's own job name if there is one,
// otherwise derived from the parent process, which is the same for all local ranks unless each runs in a separate wrapper
// script (then set GOTRAIN_JOB_ID).
func jobID(r *reader, id Identity, parent func() string) string {
	name := ""
	switch {
	case r.has("GOTRAIN_JOB_ID"):
		return safeName(r.str("GOTRAIN_JOB_ID"))
	case id.Source == SourceTorchrun && (r.has("TORCHELASTIC_RUN_ID") || id.MasterPort != 0):
		// The run id of a static rendezvous is always "none", hence the port; a restarted group must not meet leftovers of the previous one.
		name = fmt.Sprintf("torch-%s-%d-%d", r.str("TORCHELASTIC_RUN_ID"), id.MasterPort, id.Restart)
	case id.Source == SourceOpenMPI && r.has("PMIX_NAMESPACE"):
		name = "ompi-" + r.str("PMIX_NAMESPACE")
	case id.Source == SourceOpenMPI && r.has("OMPI_MCA_ess_base_jobid"):
		name = "ompi-" + r.str("OMPI_MCA_ess_base_jobid")
	case id.Source == SourceSlurm && (r.has("SLURM_JOB_ID") || r.has("SLURM_JOBID")):
		job, step := r.str("SLURM_JOB_ID"), r.str("SLURM_STEP_ID")
		if job == "" {
			job = r.str("SLURM_JOBID")
		}
		if step == "" {
			step = r.str("SLURM_STEPID")
		}
		name = fmt.Sprintf("slurm-%s-%s-%d", job, step, id.Restart)
	case id.Source == SourceSingle:
		name = fmt.Sprintf("single-%d", os.Getpid())
	default:
		name = "parent-" + parent()
	}
	return safeName(name)
}

// safeName makes a string safe for use in a file name, with at most 64 bytes; a changed name carries a hash so that
// different names stay different.
func safeName(s string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}, s)
	if clean == s && len(s) <= 64 && !strings.HasPrefix(s, ".") {
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	if len(clean) > 40 {
		clean = clean[:40]
	}
	return fmt.Sprintf("j%s-%016x", clean, h.Sum64())
}

// parentID identifies the parent process, with its start time if the system provides it, because process ids are reused.
func parentID() string {
	pid := os.Getppid()
	if p, err := procfs.Read(pid); err == nil {
		return fmt.Sprintf("%d-%s", pid, p.Start)
	}
	return fmt.Sprint(pid)
}
