// Package queue holds what the streams and events of host devices have in common: the queue of a stream's thread, its pending error, its
// counts and profile, and an event that counts its Records.
//
// A device makes a [Worker] per stream and calls [Worker.Run] on the stream's thread:
//
//	w := queue.New("cpu", "compute", 1024, func(t task) bool { return t.kind == record })
//	go func() {
//		w.Run(func(t task, failed error, profile bool) error { … })
//		release()   // what the thread used
//		w.Ended()
//	}()
//	err := w.Post(t)        // or the error that is pending
//	err = w.Sync(ctx)       // waits for what was posted before it; reports the pending error and clears it
//	err = w.Close()         // drains the queue, waits for Ended
//
// After an error the worker skips tasks, because they would compute on garbage, until Sync has reported the error. Tasks that the device
// marks as "always" still run: events must be reached, or their waiters would hang.
//
// Posting allocates nothing: tasks are values in a channel.
package queue
