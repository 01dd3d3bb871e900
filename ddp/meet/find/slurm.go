package find

import (
	"fmt"
	"strconv"

	"github.com/gotrain/gotrain/ddp/meet"
)

// Ports for jobs of Slurm: jobs that share a host have different numbers, and so do the steps of one job.
const (
	slurmPort  = 20000
	slurmPorts = 10000
	slurmStep  = 2503
)

// slurm places rank 0 on the first host of the step.
func (f *finder) slurm() (meet.Place, error) {
	name := "SLURM_JOB_ID"
	if !f.has(name) {
		name = "SLURM_JOBID"
	}
	job, err := strconv.ParseUint(f.str(name), 10, 63)
	if err != nil {
		return meet.Place{}, f.wrong(name, fmt.Errorf("%q is not a job's number\nhint: set GOTRAIN_MASTER_ADDR and GOTRAIN_MASTER_PORT", f.str(name)))
	}
	step := f.str("SLURM_STEP_ID")
	if step == "" {
		step = f.str("SLURM_STEPID")
	}
	n, err := strconv.ParseUint(step, 10, 31)
	if err != nil {
		n = 0 // the numbers of special steps are words in some versions
	}
	port := slurmPort + int((job%slurmPorts+n%slurmPorts*slurmStep)%slurmPorts)
	return f.at(f.id.MasterAddr, port, fmt.Sprintf("%s:%d (first host of Slurm's step %s.%s)", f.id.MasterAddr, port, f.str(name), step))
}
