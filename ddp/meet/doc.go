// Package meet brings the ranks of a job on several hosts together, and tells each of them how the others are.
package meet
