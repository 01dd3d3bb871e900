package npu

// Products says how a device computes products of tensors of bf16: of matrices, and convolutions. It changes the last bits of results, never their meaning.
type Products string

const (
	// NativeProducts are those of the processor's bf16 instructions, which round tensors between the steps of a kernel to bf16.
	NativeProducts Products = "native"
	// WideProducts are float32: the tensors are bf16 in memory only.
	WideProducts Products = "f32"
)

// Multiplier is a Device that can compute products of bf16 in both ways. Ranks of a job must use the same, and a resumed run that of its checkpoint.
type Multiplier interface {
	Device
	// Products is the way in force, "" if this machine has only one. fixed means that the device's options have asked for it; otherwise it is the faster one.
	Products() (p Products, fixed bool)
	// UseProducts changes it for all that is chosen and compiled from then on.
	UseProducts(p Products) error
}
