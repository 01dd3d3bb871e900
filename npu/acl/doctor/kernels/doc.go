// Package kernels runs every kind of kernel on a real device and compares the results with package npu/ref, by the suite npu/nputest, as a program:
// `gotrain doctor --device` prints what it returns.
//
//	r, err := kernels.Run(ctx, kernels.Options{Open: open, Modes: kernels.Modes("npu")})
//	fmt.Print(r.Text())
//
// # Modes
//
// An NPU runs the suite three times: with executors that are prepared once and reused, with a fresh executor for each launch, and with determinism off,
// where a second run may give other bits. In each mode each launch runs twice, so the first mode also compares the first use of an executor with the
// second. Other devices have one mode.
//
// # Bounds
//
// They are those of nputest, widened where lower.Slack says that CANN rounds on the way. An error is given as a part of what is allowed: 1 is the bound,
// 0 is equal.
package kernels
