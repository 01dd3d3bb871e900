// Package amount formats numbers for people, in the same form everywhere: 25,557,032 and 1.2 GiB. Numbers for programs (JSON, fields of log lines) do
// not use it.
package amount
