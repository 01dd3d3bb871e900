// Package cgroup finds the control groups of this process, of version 1 and 2, in containers and outside of them.
package cgroup
