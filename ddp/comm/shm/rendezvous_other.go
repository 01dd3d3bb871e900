//go:build !linux

package shm

import (
	"context"
	"errors"
	"time"
)

var errLinux = errors.New("ranks in several processes need Linux")

func forget(Config) {}

// Sweep does nothing: ranks in several processes need Linux.
func Sweep(string) {}

func create(Config) (files, func(error), error)                { return files{}, nil, errLinux }
func attach(context.Context, Config, time.Time) (files, error) { return files{}, errLinux }
