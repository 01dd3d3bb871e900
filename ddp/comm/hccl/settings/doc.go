// Package settings turns the environment and the options of a run into the settings of HCCL: the configuration of a communicator, variables that
// HCCL reads, and gotrain's own deadline. It is pure: Read takes an environment as a map and returns settings, the text that a run prints at its
// start, and all that is wrong, at once.
//
//	s, err := settings.Read(settings.Input{Env: settings.Environ(), Ranks: 8})
//	fmt.Println(s)                     // what was set, by whom, what it became
//	for _, v := range s.Setenv { … }   // before the first call of HCCL
//	config := s.Config.Bytes()         // for HcclCommInitRootInfoConfig
//
// # Two kinds of names
//
// HCCL has its own variables (HCCL_BUFFSIZE, HCCL_ALGO, …), which are passed on after a check of their range. Articles and older scripts use four names
// that HCCL does not read, and ignores without a word: HCCL_TOPOLOGY, HCCL_BUFFER_SIZE (bytes), HCCL_GRAD_COMPRESS and HCCL_TIMEOUT (seconds). Read
// gives them the meaning that their authors expect, in terms of the real ones. A value that means nothing, and two settings that contradict each other,
// are errors: HCCL itself would start, and train with something else, or hang.
//
// A variable that Read does not know is passed on and mentioned: a newer HCCL may know it.
//
// # Who wins
//
// A variable that the user set is never overwritten. An option of the recipe that differs from the environment is a contradiction, not a question
// of priority. What neither sets gets gotrain's default, or is left to HCCL.
//
// # Status of the facts
//
// Names, ranges and the layout of the configuration come from CANN's documentation and were compared with its headers (8.1.RC1 and the torch-npu
// wheels). Nothing of this package has run on an NPU.
package settings
