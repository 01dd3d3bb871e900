package dirlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gotrain/gotrain/train/dirlock"
)

func Example() {
	dir, err := os.MkdirTemp("", "dirlock")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	first, err := dirlock.Take(context.Background(), dir, dirlock.Options{})
	fmt.Println("first:", err)
	_, err = dirlock.Take(context.Background(), dir, dirlock.Options{})
	var busy *dirlock.BusyError
	fmt.Println("second is refused:", errors.As(err, &busy), busy.Owner.PID == os.Getpid())
	fmt.Println(first.Check(), first.Release())

	third, err := dirlock.Take(context.Background(), dir, dirlock.Options{})
	fmt.Println("third:", err)
	os.RemoveAll(dir)
	fmt.Println("lost:", errors.Is(third.Check(), dirlock.ErrLost))
	third.Release()
	// Output:
	// first: <nil>
	// second is refused: true true
	// <nil> <nil>
	// third: <nil>
	// lost: true
}
