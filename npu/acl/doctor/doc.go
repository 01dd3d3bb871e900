// Package doctor examines a machine for training on Ascend NPUs: what is installed, whether its parts fit together, what the devices and their network
// say, what the environment means. The verb `gotrain doctor` prints the report.
//
//	r := doctor.Check(ctx, system, doctor.Options{})
//	fmt.Print(r.Text(doctor.Style{}))
//	os.Exit(r.ExitCode())
//
// The package is pure. A System is what it sees of the machine: a file system, the environment, the output of commands, and Probe, which loads libraries
// and opens devices in a process of its own, because a broken driver may hang or crash it. Recorded is a System made of a folder of files.
//
// # Findings
//
// A finding has a severity, what was found, where it was read, and a remedy where there is something to do. ok: as it should be. note: worth knowing.
// warning: training may work, but something is likely to go wrong or to be slow. error: training on NPUs does not work, or cannot be trusted. The exit
// code is 0 without errors, also with warnings, and 69 with an error. A Section that is not right, wrong kernels or tables, has code 70.
//
// A machine without NPUs is not broken: the report says so in one sentence, and the host is examined.
//
// # Recorded machines
//
//	etc/hccn.conf  etc/ascend_install.info  dev/davinci0 …  proc/…  sys/…  usr/local/Ascend/…
//	cmd/env.txt                         the environment, as env prints it
//	cmd/npu-smi_info.txt                the output of `npu-smi info`
//	cmd/hccn_tool_-i_0_-link_-g.txt     of `hccn_tool -i 0 -link -g`
//	cmd/probe_libraries.txt             of a Probe, as JSON; also dcmi, devices and host
//
// A command without a file is one that the machine does not have.
//
// # Status
//
// File formats and outputs are those of CANN 8.1 to 9.x and of drivers from 23.0 as documents, sources and reports of users show them. They were
// not compared with a machine.
package doctor
