//go:build !linux && !darwin

package checkpoint

func free(string) (int64, error) { return -1, nil }
