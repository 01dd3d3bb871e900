package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	argv []string // program and its arguments
	help bool
	done string // completion script to print for this shell

	ranks    int    // -n; 0: not given
	hosts    string // -H
	hostfile string
	perNode  int // ranks per host; 0: not given
	include  string
	exclude  string

	nnodes   int
	nproc    string // --nproc_per_node: a number, auto, npu, gpu or cpu
	nodeRank int    // -1: not given
	master   string
	port     int
	endpoint string // --rdzv_endpoint
	id       string // --rdzv_id
	alone    bool   // --standalone

	env      []string // -x: NAME or NAME=value
	wdir     string
	logs     string
	tagAll   bool
	noPin    bool
	grace    time.Duration
	start    time.Duration
	restarts int

	sshPort int
	sshKey  string
	rsh     string
	iface   string
	check   bool
	copy    bool
	spread  bool // --oversubscribe: more ranks than slots are wanted

	ignored []string // spellings that have no effect here
}

// option is one row of the table of options.
type option struct {
	names string // spellings, separated by blanks; ours first. In names with two dashes, _ is as good as -
	args  int    // values that it takes
	arg   string // what help calls the value
	help  string // "": not in the help
	set   func(o *options, v []string) error
}

// table has all options. Spellings of mpirun, torchrun, horovodrun, deepspeed and hccl_test are accepted, because people have scripts.
var table = []option{
	{"-n -np --np --nproc --num-proc", 1, "N", "ranks; with hosts, in total (without -n: all slots)", func(o *options, v []string) error { return count(&o.ranks, v[0], "ranks") }},
	{"-H --host --hosts -host -hosts", 1, "LIST", "hosts and their slots: n1:8,n2:8; a bare name has one slot", text(func(o *options) *string { return &o.hosts })},
	{"--hostfile -hostfile --machinefile -machinefile -f -F", 1, "FILE", "hosts by line: n1 slots=8, or n1:8, or n1 (all its devices); or a rank table (JSON)",
		text(func(o *options) *string { return &o.hostfile })},
	{"--npernode -npernode -N --ppn -ppn --slots-per-host --ntasks-per-node", 1, "M", "ranks on each host",
		func(o *options, v []string) error { return count(&o.perNode, v[0], "ranks") }},
	{"--include", 1, "LIST", "use these hosts, and devices of them: n1:0,2@n2", text(func(o *options) *string { return &o.include })},
	{"--exclude -e", 1, "LIST", "do not use these", text(func(o *options) *string { return &o.exclude })},
	{"--check", 0, "", "examine all hosts, print one table, and start nothing", func(o *options, _ []string) error { o.check = true; return nil }},
	{"--copy", 0, "", "send hcclrun, and the program if it is one of gotrain's, to hosts that lack it",
		func(o *options, _ []string) error { o.copy = true; return nil }},
	{"-x --env -env --export", 1, "NAME[=VALUE]", "send a variable to the ranks. GOTRAIN_*, HCCL_*, ASCEND_*, OMP_*, PATH and LD_LIBRARY_PATH are sent anyway,\n" +
		"but no name with TOKEN, KEY, PASSWORD, SECRET or CREDENTIAL", variable},
	{"--wdir -wdir --chdir -wd", 1, "DIR", "working directory of the ranks on every host; this one if not given", text(func(o *options) *string { return &o.wdir })},
	{"--output --output-filename --log-dir", 1, "DIR", "also write the output of each rank to DIR/rank.N/stdout and stderr, on this host",
		text(func(o *options) *string { return &o.logs })},
	{"--tag-output", 0, "", "begin the lines of rank 0 with its host and number too", func(o *options, _ []string) error { o.tagAll = true; return nil }},
	{"--max-restarts --reset-limit", 1, "N", "start all ranks again after a failure, at most N times (0); an hour of progress counts as a success",
		func(o *options, v []string) error { return number(&o.restarts, v[0]) }},
	{"--grace", 1, "TIME", "how long ranks may take to end after a stop request (30s). After that time they get a second request, or are killed if\n" +
		"a rank failed; after twice the time they are killed. hcclrun waits for a rank that is saving",
		func(o *options, v []string) error { return duration(&o.grace, v[0]) }},
	{"--start-timeout", 1, "TIME", "how long hosts may take to answer (30s)", func(o *options, v []string) error { return duration(&o.start, v[0]) }},
	{"--bind", 1, "auto|cpus|none", "bind each rank to its own cores, or not (auto: if there are enough)", bind},
	{"--ssh-port -p", 1, "PORT", "port of sshd on the hosts", func(o *options, v []string) error { return port(&o.sshPort, v[0]) }},
	{"--ssh-key --ssh-identity-file", 1, "FILE", "private key for ssh", text(func(o *options) *string { return &o.sshKey })},
	{"--rsh --launch-agent --plm-rsh-agent", 1, "CMD", "start CMD HOST COMMAND… instead of ssh", text(func(o *options) *string { return &o.rsh })},
	{"--interface --network-interface --network-interfaces --nics --iface", 1, "IF", "network between hosts: names of interfaces, or networks (10.0.0.0/8)",
		text(func(o *options) *string { return &o.iface })},
	{"--master_addr", 1, "ADDR", "address of rank 0, where ranks of several hosts meet; found by trying if not given", text(func(o *options) *string { return &o.master })},
	{"--master_port", 1, "PORT", "its port; a free one if not given", func(o *options, v []string) error { return port(&o.port, v[0]) }},
	{"--nnodes -nnodes", 1, "N", "number of hosts, each with an hcclrun of its own (torchrun's way, without ssh)", nnodes},
	{"--node_rank", 1, "K", "which of them this is, from 0", func(o *options, v []string) error { return number(&o.nodeRank, v[0]) }},
	{"--nproc_per_node", 1, "M", "ranks on each of them: a number, or auto (one for each device, or for each core)",
		text(func(o *options) *string { return &o.nproc })},
	{"--rdzv_endpoint", 1, "HOST:PORT", "the same as --master_addr and --master_port", text(func(o *options) *string { return &o.endpoint })},
	{"--rdzv_id", 1, "ID", "name of the job, equal on all hosts", text(func(o *options) *string { return &o.id })},
	{"--standalone", 0, "", "this host only", func(o *options, _ []string) error { o.alone = true; return nil }},
	{"--completion", 1, "bash|zsh|fish", "print a completion script", text(func(o *options) *string { return &o.done })},
	{"-h --help -help", 0, "", "show this help", func(o *options, _ []string) error { o.help = true; return nil }},

	// Other programs' ways to say the same.
	{"--rdzv_backend", 1, "", "", backend},
	{"-i", 1, "", "", key},
	{"--map-by -map-by", 1, "", "", mapBy},
	{"--bind-to -bind-to", 1, "", "", bind},
	{"--no-pin --no-bind", 0, "", "", func(o *options, _ []string) error { o.noPin = true; return nil }},
	{"--bind_cores_to_rank", 0, "", "", func(o *options, _ []string) error { o.noPin = false; return nil }},
	{"--mca -mca --gmca -gmca", 2, "", "", mca},
	{"-genv", 2, "", "", func(o *options, v []string) error { return variable(o, []string{v[0] + "=" + v[1]}) }},
	{"-envlist --envlist -genvlist", 1, "", "", envList},
	{"--oversubscribe -oversubscribe", 0, "", "", func(o *options, _ []string) error { o.spread = true; return nil }},
	{"--allow-run-as-root --gloo --mpi --verbose -v -q --quiet --autotune --use-hwthread-cpus --no-python --run_path --disable-cache --report-bindings " +
		"--display-map --tcp --nooversubscribe --no-ssh-check --force_multi -genvall --genvall -l -prepend-rank", 0, "", "", nil},
	{"--prefix --tee -t --redirects -r --role --monitor_interval --start_method --rdzv_conf --local_addr --launcher --launcher_args --logs_specs " +
		"--timeout --fusion-threshold-mb --cycle-time-ms --cache-capacity", 1, "", "", nil},
}

// find returns the option of a spelling.
func find(name string) (option, bool) {
	plain := plainName(name)
	for _, o := range table {
		for n := range strings.FieldsSeq(o.names) {
			if plainName(n) == plain {
				return o, true
			}
		}
	}
	return option{}, false
}

// plainName is a long name with dashes instead of underscores.
func plainName(s string) string {
	if strings.HasPrefix(s, "--") {
		return strings.ReplaceAll(s, "_", "-")
	}
	return s
}

// parse reads the options up to the program. It does not use package flag, which would also parse the flags of the program and does not support -np.
func parse(args []string) (o options, err error) {
	o.nodeRank = -1
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		name, value, inline := strings.Cut(args[0], "=")
		args = args[1:]
		opt, ok := find(name)
		if !ok {
			return o, unknown(name)
		}
		var v []string
		switch {
		case inline && opt.args == 0:
			return o, fmt.Errorf("%s takes no value, got %q", name, value)
		case inline && opt.args == 1:
			v = []string{value}
		case len(args) < opt.args:
			return o, fmt.Errorf("%s needs a value", name)
		default:
			v, args = args[:opt.args], args[opt.args:]
		}
		if opt.set == nil {
			o.ignored = append(o.ignored, strings.Join(append([]string{name}, v...), " "))
			continue
		}
		if err := opt.set(&o, v); err != nil {
			return o, fmt.Errorf("%s: %w", name, err)
		}
		if o.help {
			return o, nil
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	o.argv = args
	return o, nil
}

// text is the setter of an option that is kept as it is.
func text(field func(*options) *string) func(*options, []string) error {
	return func(o *options, v []string) error {
		if v[0] == "" {
			return fmt.Errorf("the value is empty")
		}
		*field(o) = v[0]
		return nil
	}
}

func number(to *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1<<20 {
		return fmt.Errorf("%q is not a number", v)
	}
	*to = n
	return nil
}

func count(to *int, v, what string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 1<<16 {
		return fmt.Errorf("needs a positive number of %s, got %q", what, v)
	}
	*to = n
	return nil
}

func port(to *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q is not a port", v)
	}
	*to = n
	return nil
}

func duration(to *time.Duration, v string) error {
	d, err := time.ParseDuration(v)
	if n, e := strconv.Atoi(v); e == nil { // horovodrun: seconds
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 || d > 1000*time.Hour {
		return fmt.Errorf("needs a duration such as 30s, got %q", v)
	}
	*to = d
	return nil
}
