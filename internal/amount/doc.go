// Package amount writes numbers for people, in one form everywhere: 25,557,032 and 1.2 GiB. Numbers for programs (JSON, fields of log lines)
// are not written with it.
package amount
