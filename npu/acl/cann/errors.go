package cann

import (
	"fmt"
	"strings"
)

// Error is a call of CANN that failed.
type Error struct {
	Call   string // the C function, such as "aclrtMalloc" or "aclnnAdd, first phase"
	Op     string // the operator, where it was one
	Code   int32
	Detail string // CANN's own text, as aclGetRecentErrMsg gave it; "" if there was none
	Fatal  bool   // the context is dead: every later call fails, and only a new process helps
}

// The codes that gotrain treats specially.
const (
	codeInitialised = 100002
	CodeStub        = 100039 // a library for linking, from the folder devlib, was loaded
	CodeNoContext   = 107002
	CodeUnsupported = 207000
	CodeOutOfMemory = 207001
	CodeNoEvents    = 207007
	// CodeDeviceOutOfMemory is what some calls return instead of CodeOutOfMemory.
	CodeDeviceOutOfMemory = 207018
	CodeStreamTimeout     = 507046 // the deadline of our own wait, not a fault of the device
	CodeEventTimeout      = 507047
	CodeNotReusable       = 561000 // aclSetAclOpExecutorRepeatable: the operator must have a new executor for each launch
	codeAbsent            = -1 << 31
	codeNoRoom            = -1<<31 + 1
)

// meaning is what a code means, and what the user can do. The tables are lists, which need no code to be filled when the program starts.
type meaning struct {
	code       int32
	name, hint string
}

const (
	hintDoctor  = "run gotrain doctor on this machine; dmesg and npu-smi info tell more"
	hintReport  = "this is an error in gotrain or in CANN: please report it with CANN's text above"
	hintMatch   = "driver, firmware and CANN do not fit each other, or a container lacks devices: compare their versions with gotrain doctor"
	hintRestart = "the process cannot use the device any more: start the same command again, it resumes from the last checkpoint"
	hintKernels = "install the package of operator kernels (opp_kernel) for this SoC, of the same version as the toolkit, and source set_env.sh"
	hintPeer    = "another rank may be gone or late; look at the first error among the ranks"
)

// meanings is the table of codes. Codes of 507xxx and three of 107xxx are fatal.
var meanings = []meaning{
	{codeAbsent, "the installed libraries do not have this function", "this feature needs a newer CANN"},
	{codeNoRoom, "the operator wants more workspace than when it was prepared", hintReport},
	{100000, "invalid parameter", hintReport}, {100001, "CANN is not initialised", hintReport}, {codeInitialised, "CANN is initialised already", ""},
	{100037, "CANN is finalised already", hintReport},
	{CodeStub, "a library for linking was loaded instead of the real one",
		"remove the toolkit's folder devlib from LD_LIBRARY_PATH and source set_env.sh"},
	{107000, "invalid parameter", hintReport},
	{107001, "no such device, or the driver is not loaded", "check ASCEND_RT_VISIBLE_DEVICES (ascending, without blanks) and npu-smi info"},
	{CodeNoContext, "the thread has no context", hintReport}, {107003, "the stream belongs to another context", hintReport},
	{107006, "an event has no time stamp", hintReport}, {107007, "events are in reverse order", hintReport}, {107017, "a handle is no longer valid", hintReport},
	{107019, "a wait on the device timed out", hintPeer}, {107020, "a task on the device timed out", hintPeer},
	{107022, "tasks of the device were aborted", hintRestart}, {107023, "a stream was aborted", hintRestart},
	{148049, "bad path of the operator package", "source set_env.sh of the toolkit"},
	{161001, "a required argument is NULL", hintReport},
	{161002, "an operator does not accept an argument", hintReport},
	{200000, "no host memory", "free memory of the host"}, {200001, "not supported", "this feature needs another CANN or device"},
	{200006, "not supported", "this feature needs another CANN or device"}, {CodeUnsupported, "not supported", "this feature needs another CANN or device"},
	{CodeOutOfMemory, "out of device memory", "use a smaller batch, train.recompute = \"layer\", or more ranks; npu-smi info shows who else uses the device"},
	{207003, "overflow in an AI core", hintReport},
	{207004, "no usable device", "check ASCEND_RT_VISIBLE_DEVICES (ascending, without blanks) and npu-smi info"},
	{207005, "a resource is exhausted", "use fewer processes on this device"}, {207006, "no permission for the device",
		"add the user to the group HwHiAiUser, or pass /dev/davinci* to the container"},
	{CodeNoEvents, "events are exhausted", hintReport}, {207008, "streams are exhausted", "use fewer processes on this device"},
	{CodeDeviceOutOfMemory, "out of memory on the device", "use a smaller batch or more ranks"},
	{361001, "a call of the runtime failed inside of an operator", hintDoctor},
	{500000, "internal error", hintReport}, {500001, "failure in the operator compiler", hintKernels}, {500002, "failure in the graph engine", hintReport},
	{500003, "failure in the runtime", hintDoctor}, {500004, "failure in the driver", hintMatch}, {500005, "failure in profiling", hintReport},
	{507000, "internal error of the runtime", hintRestart}, {507001, "internal error of the task scheduler", hintRestart},
	{507008, "the package does not fit this SoC", "install the CANN packages for this SoC"}, {507010, "the device lost its heartbeat", hintRestart},
	{507011, "a kernel failed", hintRestart}, {507013, "error of the copy engine", hintRestart}, {507014, "timeout of an AI core", hintRestart},
	{507015, "exception of an AI core", hintRestart}, {507017, "timeout of an AI CPU", hintRestart}, {507018, "exception of an AI CPU", hintRestart},
	{507033, "the device did not start", hintMatch}, {507034, "timeout of a vector core", hintRestart}, {507035, "exception of a vector core", hintRestart},
	{CodeStreamTimeout, "a stream is not done in time", hintPeer}, {CodeEventTimeout, "an event is not reached in time", hintPeer},
	{507048, "timeout of a fused task", hintRestart}, {507049, "exception of a fused task", hintRestart},
	{507053, "memory error of the device", "the device may be broken: " + hintDoctor},
	{507054, "uncorrectable memory error (ECC) of the device", "the device may be broken: take it out of service and " + hintDoctor},
	{507056, "error of a link between devices", "check the links: gotrain doctor"}, {507057, "suspected error of a remote device", hintPeer},
	{507899, "internal error of the driver", hintRestart}, {507900, "internal error of an AI CPU", hintRestart},
	{507901, "the channel between host and device is lost", hintRestart}, {507904, "HCCL gave up after retries", hintPeer},
	{561001, "the operator cannot tell its shape", hintReport}, {561002, "the operator has no tiling for these shapes", hintReport},
	{CodeNotReusable, "internal error of the operator library", hintReport},
	{561003, "the operator has no kernel for this device", hintKernels},
	{561101, "no executor", hintReport}, {561102, "no executor", hintReport}, {561103, "an internal pointer is NULL", hintMatch},
	{561107, "ASCEND_OPP_PATH is not set or wrong", "source set_env.sh of the toolkit"}, {561108, "configuration of operators not found", hintKernels},
	{561109, "configuration of operators not found", hintKernels}, {561110, "configuration of operators not found", hintKernels},
	{561111, "configuration of operators not found", hintKernels}, {561112, "package of operator kernels not found", hintKernels},
}

// hcclMeanings is the table of HcclResult.
var hcclMeanings = []meaning{
	{codeAbsent, "the installed libraries do not have this function", "this feature needs a newer CANN"},
	{1, "parameter", hintReport}, {2, "null pointer", hintReport}, {3, "memory", "use a smaller communication buffer (HCCL_BUFFSIZE)"},
	{4, "internal", hintReport}, {5, "not supported", "this device cannot reduce this type or operation"}, {6, "not found", hintPeer},
	{7, "unavailable", hintPeer}, {8, "system call", hintDoctor}, {9, "timeout", hintPeer}, {10, "open file", hintDoctor},
	{11, "TCP connect", "a port may be in use by another job: set HCCL_IF_BASE_PORT, or HCCL_HOST_SOCKET_PORT_RANGE=auto"}, {12, "RoCE connect", hintPeer},
	{13, "TCP transfer", hintPeer}, {14, "RoCE transfer", hintPeer}, {15, "call of the runtime", hintDoctor}, {16, "driver", hintMatch},
	{17, "profiling", hintReport}, {18, "CCE", hintDoctor}, {19, "network", hintPeer}, {20, "busy", hintReport}, {21, "remote", hintPeer},
	{22, "suspending", hintRestart}, {23, "retry failed", hintPeer}, {24, "out of memory", "use a smaller communication buffer (HCCL_BUFFSIZE)"},
	{1041, "communicator in error status", hintPeer},
}

// hccl reports whether the call is one of HCCL, whose codes are small numbers of their own.
func (e *Error) hccl() bool { return strings.HasPrefix(e.Call, "Hccl") }

func (e *Error) meaning() meaning {
	table := meanings
	if e.hccl() {
		table = hcclMeanings
	}
	for _, m := range table {
		if m.code == e.Code {
			return m
		}
	}
	return meaning{}
}

// Name says in words what the code means; "" for a code that is not in the table.
func (e *Error) Name() string { return e.meaning().name }

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Call)
	b.WriteString(": ")
	m := e.meaning()
	switch {
	case e.Code == codeAbsent || e.Code == codeNoRoom:
		b.WriteString(m.name)
	case m.name != "":
		fmt.Fprintf(&b, "error %d (%s)", e.Code, m.name)
	default:
		fmt.Fprintf(&b, "error %d", e.Code)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if m.hint != "" {
		b.WriteString("\nhint: " + m.hint)
	} else if m.name == "" {
		b.WriteString("\nhint: look the number up in the documentation of this CANN version")
	}
	return b.String()
}

// ExitCode is the exit code of a program that ends because of the error, as ddp/launch documents it: 69, "device or collective not available".
func (e *Error) ExitCode() int { return 69 }

// fatal reports whether a code of the runtime or of an operator kills the context.
func fatal(code int32) bool {
	switch code {
	case CodeStreamTimeout, CodeEventTimeout:
		return false
	case 107022, 107023:
		return true
	}
	return code >= 507000 && code <= 507999
}

// notReusable reports whether a code of aclSetAclOpExecutorRepeatable means that the operator must have a new executor for each launch. 9.x returns
// CodeNotReusable; what 8.1 returns is not documented, so all codes of the operator library (561xxx) count: a new executor is right in any case.
func notReusable(code int32) bool { return code >= 561000 && code <= 561999 }

// newError makes the error of a call from its code and CANN's text.
func newError(call, op string, code int32, detail string) *Error {
	e := &Error{Call: call, Op: op, Code: code, Detail: clean(detail)}
	e.Fatal = !e.hccl() && fatal(code)
	return e
}

// clean makes CANN's text, which has lines and tables, one line without control characters, and no longer than a screen.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == ' ' }), " ")
	const most = 1500
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + " …"
	}
	return strings.ToValidUTF8(s, "?")
}
