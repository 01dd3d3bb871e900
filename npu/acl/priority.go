package acl

// priority puts the family before the host's kernels, which have 10.
const priority = 20
