// Package queue holds the common part of host devices' streams and events: the queue of a stream's thread with its pending error, counts
// and profile, and an event that counts its Records.
//
// A device makes a [Worker] per stream and calls [Worker.Run] on the stream's thread:
//
//	w := queue.New("cpu", "compute", 1024, func(t task) bool { return t.kind == record })
//	go func() {
//		w.Run(func(t task, failed error, profile bool) error { … })
//		release()   // the thread's resources
//		w.Ended()
//	}()
//	err := w.Post(t)        // or returns the pending error
//	err = w.Sync(ctx)       // waits for all tasks posted before it; returns the pending error and clears it
//	err = w.Close()         // drains the queue, waits for Ended
//
// After an error the worker skips tasks, whose inputs would be garbage, until Sync has reported the error. Tasks that the device marks as
// "always" still run: events must be reached, or their waiters would hang.
//
// Posting allocates nothing: tasks are values in a channel.
package queue
