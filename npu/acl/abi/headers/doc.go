// Package headers compares the tables of package abi with installed C headers of CANN, by a C++ compiler: `gotrain doctor --abi`.
//
//	r, err := headers.Run(ctx, headers.Options{Roots: headers.Installed("/usr/local/Ascend/ascend-toolkit/latest")})
//	fmt.Print(r.Text())
//
// Each function of a table becomes a static_assert: the types of result and arguments of the header's declaration, as classes (pointer, integer or enum by
// size and sign, float by size, bool, structure by size), must be those of the table. The compiler only checks; nothing is linked or run. The language
// is C++ because it can take a declaration apart, and because HCCL's headers are not C.
//
// Functions that no header declares are absent, not different: versions differ in what they have. Sizes and offsets of structures, and numbers of enums,
// that gotrain relies on are checked the same way.
//
// Headers are looked for below the roots, wherever a release has them. They are read, never copied.
package headers
